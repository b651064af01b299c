"""Laws of the authors' checkpoint as one of our models: the same vectors, or a clear refusal."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from made.released import (
    BERT,
    LANGUAGES,
    MOST,
    checkpoint,
    imported,
    reference,
    state_of,
    write_released,
    write_vocabulary,
)

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.base.schema import Json
from ems.commands.cli import main
from ems.model.encode import SentenceEncoder
from ems.model.released import sizes

LINES = ["kalo mine", "ne ru so ti kalo mine va", "va", "Ne RU so ti va lo mi ka kalo mine so so"]


@pytest.fixture
def made(tmp_path):
    return write_released(tmp_path)


def refusal(folder):
    with pytest.raises(EmsError) as error:
        imported(folder)
    assert not (folder / "models" / "released" / "model.json").exists()
    assert "\n" not in str(error.value)
    return str(error.value)


# --- the same vectors


def test_the_imported_encoder_gives_the_vectors_of_their_architecture(made):
    out, state = imported(made), state_of(made)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(made / "spm.model"))
    vectors = SentenceEncoder(out, "cpu").encode(LINES, "en")
    ids = [pieces.encode(line.lower()) for line in LINES]
    assert max(map(len, ids)) > MOST  # so that the cut shows
    expected = np.stack([reference(state, each) for each in ids])
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=2e-5)
    assert np.abs(expected[0] - expected[1]).max() > 0.1


def test_each_part_of_the_reference_matters(made):
    """A guard: a reference that ignored a weight could not see it mapped wrongly."""
    state = state_of(made)
    ids = [5, 9, 11]
    before = reference(state, ids)
    for key in [key for key in state if key.startswith(BERT)]:
        changed = {**state, key: state[key].flip(0)}
        same = np.allclose(reference(changed, ids), before, atol=1e-9)
        assert same == key.endswith("self_attention.key.bias"), key  # softmax takes no constant


def test_what_is_written_is_a_model_folder_without_any_pickle(made):
    out = imported(made)
    names = {"model.json", "model.safetensors", "heads.safetensors", "vocabulary.model"}
    assert {path.name for path in out.iterdir()} == names
    description = read_json(out / "model.json", Json)
    assert description["languages"] == LANGUAGES
    assert description["model"]["max_tokens"] == MOST
    assert description["model"]["norm_eps"] == 1e-12
    segmenters = {"en": "sacremoses", "de": "sacremoses", "und": "sacremoses"}
    assert description["segmenters"] == segmenters | {"zh": "jieba", "ja": "jumanpp"}
    first = {name: (out / name).read_bytes() for name in names}
    imported(made)
    assert {name: (out / name).read_bytes() for name in names} == first


def test_heads_are_64_wide_unless_said_otherwise(tmp_path):
    state = {"tokens.weight": torch.zeros(7, 1024), "positions.weight": torch.zeros(120, 1024)}
    state |= {f"layers.{at}.inner.weight": torch.zeros(4096, 1024) for at in (0, 5)}
    made = sizes(state, 0, tmp_path)
    assert (made.layers, made.width, made.heads) == (6, 1024, 16)
    assert (made.feed_forward, made.max_tokens) == (4096, 120)  # the released EMS
    assert sizes(state, 8, tmp_path).heads == 8
    with pytest.raises(EmsError, match="--heads 7: the width"):
        sizes(state, 7, tmp_path)


def test_the_names_of_an_older_checkpoint_and_one_saved_without_ddp_are_known(made):
    files = ("model.safetensors", "heads.safetensors")
    first = [(imported(made) / name).read_bytes() for name in files]
    state = {
        key.replace("model.transform", "model.decoder.transform").removeprefix("module."): value
        for key, value in state_of(made).items()
    }
    torch.save(checkpoint(state), made / "weights.pt")
    assert [(imported(made) / name).read_bytes() for name in files] == first


# --- refusals


HEAD = "module.model."
ATTENTION = "encoder.layer.0.attention.self_attention.key"
POSITIONS = "embedding.position_embedding.position_embeddings.weight"
WORDS = "embedding.word_embedding.embedding.weight"
REFUSED = [  # key, its value (None: it is missing), words of the error
    ("pooler.dense.weight", torch.zeros(2), f"unknown weights, {BERT}pooler.dense.weight"),
    ("encoder.layer.1.output.dense.bias", None, "missing weights, layers.1.outer.bias"),
    (f"{ATTENTION}.weight", None, "missing weights, key of layers.0.attention"),
    (POSITIONS, None, "missing weights, positions.weight"),
    ("embedding.layer_norm.weight", None, "missing weights, input_norm.weight"),
    ("encoder.layer.1.output.dense.weight", torch.zeros(12, 21), "layers.1.outer.weight has"),
    (f"{ATTENTION}.bias", torch.zeros(13), "parts of unlike"),
    ("embedding.layer_norm.bias", torch.zeros(11), "input_norm.bias has the shape [11]"),
    (WORDS, torch.zeros(60), "tokens.weight has the shape [60]"),
    ("embedding.layer_norm.bias", torch.full((12,), math.nan), "has a value that is not finite"),
    ("module.alignproj.0.bias", None, "missing weights, heads.contrastive.inner.bias"),
    ("module.alignproj.1.bias", torch.zeros(2), "unknown weights, module.alignproj.1.bias"),
    (f"{HEAD}decoder.decoder.bias", torch.zeros(2), "unknown weights, heads.generative.output.b"),
    (f"{HEAD}transform.dense.bias", torch.zeros(2), "generative.mix.bias has the shape [2]"),
    (f"{HEAD}la_tag_linear.embedding.weight", torch.zeros(3), "has the shape [3], expected two"),
    (f"{HEAD}la_tag_linear.embedding.weight", torch.zeros(3, 8), "generative.languages.weight has"),
]


@pytest.mark.parametrize(("key", "value", "words"), REFUSED, ids=[row[2] for row in REFUSED])
def test_a_weight_that_is_not_the_authors_is_named(made, key, value, words):
    state = state_of(made)
    name = key if key.startswith("module.") else f"{BERT}{key}"
    state.pop(name, None)
    state |= {} if value is None else {name: value}
    torch.save(checkpoint(state), made / "weights.pt")
    assert words in refusal(made)


def test_a_vocabulary_of_another_size_or_layout_is_refused(made):
    write_vocabulary(made / "spm.model", size=40)
    assert "but" in refusal(made)
    assert "embeddings of" in refusal(made)
    write_vocabulary(made / "spm.model", symbols=("<2en>", "<2de>", "<MASK>", "<2zh>", "<2ja>"))
    assert "expected the pieces <pad>, <unk>, <mask> first" in refusal(made)
    write_vocabulary(made / "spm.model", symbols=("<MASK>", "<x1>", "<x2>", "<x3>", "<x4>"))
    assert "expected language tokens like <2en>" in refusal(made)
    (made / "spm.model").write_bytes(b"none")
    assert "not a SentencePiece model" in refusal(made)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a zip", b"text"])
def test_a_file_that_is_no_checkpoint_is_refused(made, content):
    (made / "weights.pt").write_bytes(content)
    assert "weights.pt: not a checkpoint" in refusal(made)
    for value in ([1, 2], {"state": {}}, {"state_dict": {"a": 1}}):
        torch.save(value, made / "weights.pt")
        assert "`state_dict`" in refusal(made)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def test_a_checkpoint_that_holds_code_is_refused_and_nothing_of_it_runs(made, monkeypatch):
    monkeypatch.chdir(made)
    torch.save({"state_dict": {}, "best_loss": Evil()}, made / "weights.pt")
    assert "not a checkpoint of tensors and numbers only" in refusal(made)
    assert not Path("evil").exists()


def test_the_command_imports_and_names_a_missing_file_in_one_line(made, capfd, monkeypatch):
    monkeypatch.chdir(made)
    arguments = ["import-released", "--spm", "spm.model", "--out", "released", "--heads", "3"]
    assert main([*arguments, "--weights", "weights.pt"]) == 0
    assert "2 layers, width 12, 3 heads" in capfd.readouterr().err
    assert main([*arguments, "--weights", "nope.pt"]) == 1
    assert "nope.pt: no such file; https://github.com/Mao-KU/EMS" in capfd.readouterr().err
