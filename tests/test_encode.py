"""Laws of encoding: a sentence's vector is its own, and a model folder holds all that it needs."""

import json
import os
import random
import shutil

import numpy as np
import pytest
import torch
from made.models import SIZES, write_model

from ems.base.errors import EmsError
from ems.base.files import sha256_file
from ems.config.model import EncoderSettings
from ems.model import encoder as module
from ems.model.encode import SentenceEncoder
from ems.model.encoder import Encoder, embed_tokens
from ems.text.subwords import UNK, load_vocabulary

SEGMENTERS = {"en": "sacremoses", "zh": "jieba", "xx": "none"}
MAX_TOKENS = SIZES["max_tokens"]


def made_up_lines(count):
    """Lines of 1 to 12 words, among them repeated ones, capitals and punctuation."""
    draw = random.Random(2)
    syllables = ["ka", "lo", "mi", "ne", "ru", "so", "ti", "va"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(60)]
    lines = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count)]
    return [f"{line.capitalize()}, {draw.choice(words)}!" for line in lines]


def describe(folder, **changes):
    """Write model.json for the files that are there, some entries changed."""
    whole = json.loads((folder / "model.json").read_text())
    files = {name: sha256_file(folder / name) for name in whole["sha256"]}
    whole |= {"segmenters": SEGMENTERS, "sha256": files, **changes}
    (folder / "model.json").write_text(json.dumps(whole))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model folder with random weights, as training writes it."""
    folder = tmp_path_factory.mktemp("made") / "model"
    write_model(folder, list(SEGMENTERS), made_up_lines(400), pieces=200)
    describe(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(folder):
    return SentenceEncoder(folder)


@pytest.fixture
def copy(folder, tmp_path):
    """A copy of the model folder to spoil."""
    return shutil.copytree(folder, tmp_path / "copy")


# --- vectors


def test_encoding_many_equals_encoding_one_sentence_at_a_time(encoder, monkeypatch):
    lines = made_up_lines(150)
    monkeypatch.setattr(module, "BATCH_TOKENS", 100)  # so that there are several batches
    together = encoder.encode(lines, "en")
    assert together.dtype == np.float32
    assert together.shape == (150, 16)
    for line, vector in zip(lines, together, strict=True):
        alone = encoder.encode([line], "en")[0]
        np.testing.assert_allclose(vector, alone, rtol=0, atol=1e-5)
    distinct = {vector.round(3).tobytes() for vector in together}
    assert len(distinct) > 100  # so that a mix-up would show


def test_the_order_of_the_lines_is_kept_and_encoding_twice_gives_the_same_bytes(encoder, folder):
    lines = made_up_lines(60)
    forward, backward = encoder.encode(lines, "en"), encoder.encode(lines[::-1], "en")
    np.testing.assert_allclose(forward, backward[::-1], rtol=0, atol=1e-5)
    assert encoder.encode(lines, "en").tobytes() == forward.tobytes()
    assert SentenceEncoder(folder).encode(lines, "en").tobytes() == forward.tobytes()
    assert encoder.encode([], "en").shape == (0, 16)


def test_an_encoder_in_train_mode_encodes_without_dropout():
    torch.manual_seed(0)
    model = Encoder(EncoderSettings(**SIZES), 50).train()
    sentences = [np.array([3, 1, 4]), np.array([1, 5])]
    first = embed_tokens(model, sentences)
    assert first.tobytes() == embed_tokens(model, sentences).tobytes()


@pytest.mark.parametrize("line", ["", "   ", "\u2028\ufeff"])
def test_a_line_without_text_gives_a_finite_vector_and_shifts_nothing(line, encoder):
    vectors = encoder.encode(["Kalo mi.", line, "Ne ru so."], "en")
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors[1]) > 0
    plain = encoder.encode(["Kalo mi.", "Ne ru so."], "en")
    np.testing.assert_allclose(vectors[[0, 2]], plain, rtol=0, atol=1e-5)
    assert encoder.tokenise([line], "en")[0].tolist() == [UNK]


def test_a_sentence_is_cut_at_max_tokens(encoder):
    tokens = np.arange(10, 15 + MAX_TOKENS)
    at_limit, over, under = embed_tokens(
        encoder.encoder, [tokens[:MAX_TOKENS], tokens, tokens[: MAX_TOKENS - 1]]
    )
    np.testing.assert_allclose(over, at_limit, rtol=0, atol=1e-6)
    assert np.abs(over - under).max() > 1e-3


# --- text to tokens


def test_each_language_uses_the_segmenter_that_the_model_folder_names(encoder, copy):
    line = "kalo(mi)ne"
    separate, whole = (encoder.tokenise([line], code)[0].tolist() for code in ("en", "xx"))
    assert separate != whole
    describe(copy, segmenters={**SEGMENTERS, "en": "none"})
    assert SentenceEncoder(copy).tokenise([line], "en")[0].tolist() == whole


def test_the_vocabulary_is_the_one_of_the_model_folder(encoder, copy, tmp_path):
    other = write_model(tmp_path / "other", ["xx"], [x[::-1] for x in made_up_lines(400)], 200)
    shutil.copy(other / "vocabulary.model", copy)
    describe(copy)
    expected = load_vocabulary(copy / "vocabulary.model").encode("kalo mine")
    tokens = SentenceEncoder(copy).tokenise(["kalo mine"], "xx")[0].tolist()
    assert tokens == expected
    assert tokens != encoder.tokenise(["kalo mine"], "xx")[0].tolist()


# --- errors


def test_an_unknown_language_is_an_error_that_names_the_known_ones(encoder):
    with pytest.raises(EmsError, match=r"language 'de'.*trained for en, xx, zh"):
        encoder.encode(["Hallo"], "de")


@pytest.mark.parametrize(
    "changes", [{"width": 32}, {"layers": 2}, {"layers": 0}, {"max_tokens": 50}]
)
def test_weights_of_another_size_are_refused(changes, copy):
    describe(copy, model={**SIZES, **changes})
    with pytest.raises(EmsError, match=r"model\.json: model\.safetensors does not fit"):
        SentenceEncoder(copy)


def test_weights_of_another_model_of_the_same_size_are_refused(copy, tmp_path):
    other = write_model(tmp_path / "other", ["xx"], made_up_lines(400), pieces=200, seed=1)
    shutil.copy(other / "model.safetensors", copy)
    with pytest.raises(EmsError, match=r"model\.safetensors: its sha256 is not the one in"):
        SentenceEncoder(copy)


@pytest.mark.parametrize(
    ("file", "spoil"),
    [
        *(("model.safetensors", lambda path, n=n: os.truncate(path, n)) for n in (0, 5, 1000)),
        ("vocabulary.model", lambda path: path.write_bytes(b"no vocabulary")),
        *((name, os.remove) for name in ("model.safetensors", "model.json", "vocabulary.model")),
    ],
)
def test_a_spoilt_or_missing_file_is_named(file, spoil, copy):
    spoil(copy / file)
    with pytest.raises(EmsError, match=file.replace(".", r"\.")):
        SentenceEncoder(copy)
