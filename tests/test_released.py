"""Laws of the authors' checkpoint: the same vectors and losses, or a clear refusal."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from conftest import ROOT
from made.corpora import write_lines
from made.experiments import changed, one_line, shipped
from made.golden import replay
from made.references import REFERENCES, encoder_states
from made.released import (
    BERT,
    HEADS,
    LANGUAGES,
    MOST,
    WIDTH,
    checkpoint,
    make_state,
    weights_for_reference,
    write_vocabulary,
)
from made.shards import in_order, unpacked
from made.train import validate_model

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.base.records import Json
from ems.base.schema import plain
from ems.commands.cli import main
from ems.model.encode import SentenceEncoder
from ems.model.objectives.masking import Masker, Pieces
from ems.model.released import import_released, sizes
from ems.shards.index import shards_in
from ems.shards.reader import PairStore
from ems.shards.writer import write_shards


def write_released(folder):
    """Their two files in a folder, which is returned: weights.pt and spm.model."""
    pieces = write_vocabulary(folder / "spm.model").get_piece_size()
    torch.save(checkpoint(make_state(pieces)), folder / "weights.pt")
    return folder


def imported(folder):
    out = folder / "models" / "released"
    import_released(folder / "weights.pt", folder / "spm.model", out, HEADS, "sacremoses")
    return out


def state_of(folder):
    return torch.load(folder / "weights.pt", weights_only=False)["state_dict"]


LINES = ["kalo mine", "ne ru so ti kalo mine va", "va", "Ne RU so ti va lo mi ka kalo mine so so"]


@pytest.fixture
def made(tmp_path):
    return write_released(tmp_path)


def refusal(folder):
    message = one_line(imported, folder)
    assert not (folder / "models" / "released" / "model.json").exists()
    return message


def test_the_imported_encoder_has_the_vectors_of_their_architecture(made):
    out, state = imported(made), state_of(made)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(made / "spm.model"))
    vectors = SentenceEncoder(out, "cpu").encode(LINES, "en")
    ids = [pieces.encode(line.lower()) for line in LINES]
    assert max(map(len, ids)) > MOST  # one is cut
    weights = weights_for_reference(state)
    expected = [encoder_states(weights, own[:MOST], HEADS).mean(0).numpy() for own in ids]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=2e-5)


def test_the_result_is_a_model_folder_without_a_pickle(made):
    out = imported(made)
    names = {"model.json", "model.safetensors", "heads.safetensors", "vocabulary.model"}
    assert {path.name for path in out.iterdir()} == names
    description = read_json(out / "model.json", Json)
    assert description["languages"] == LANGUAGES
    assert description["model"]["max_tokens"] == MOST
    assert description["model"]["norm_eps"] == 1e-12
    segmenters = {"en": "sacremoses", "de": "sacremoses", "und": "sacremoses"}
    assert description["segmenters"] == segmenters | {"zh": "jieba", "ja": "jumanpp"}


def test_attention_heads_are_64_wide_by_default(tmp_path):
    state = {"tokens.weight": torch.zeros(7, 1024), "positions.weight": torch.zeros(120, 1024)}
    state |= {f"layers.{at}.inner.weight": torch.zeros(4096, 1024) for at in (0, 5)}
    made = sizes(state, 0, tmp_path)
    assert (made.layers, made.width, made.heads) == (6, 1024, 16)
    assert (made.feed_forward, made.max_tokens) == (4096, 120)  # the released EMS
    assert sizes(state, 8, tmp_path).heads == 8
    with pytest.raises(EmsError, match="--heads 7: the width"):
        sizes(state, 7, tmp_path)


def test_older_names_and_a_checkpoint_saved_without_ddp_are_read(made):
    files = ("model.safetensors", "heads.safetensors")
    first = [(imported(made) / name).read_bytes() for name in files]
    state = {
        key.replace("model.transform", "model.decoder.transform").removeprefix("module."): value
        for key, value in state_of(made).items()
    }
    torch.save(checkpoint(state), made / "weights.pt")
    assert [(imported(made) / name).read_bytes() for name in files] == first


def test_a_weight_that_does_not_fit_is_named(made):
    """Each line of the golden file is a weight, and the value and the shape that it gets."""
    whole = state_of(made)

    def refusal_of(line):
        key, *value = line.split()
        name = key if key.startswith("module.") else f"{BERT}{key}"
        state = {other: tensor for other, tensor in whole.items() if other != name}
        if value:
            state[name] = torch.full([*map(int, value[1:])], float(value[0]))
        torch.save(checkpoint(state), made / "weights.pt")
        return refusal(made).replace(f"{made}/", "")

    replay("released.txt", refusal_of)


VOCABULARIES = [  # arguments of `write_vocabulary`, words of the error
    ({"size": 40}, "embeddings of"),
    ({"symbols": ("<2en>", "<2de>", "<MASK>", "<2zh>", "<2ja>")}, "<pad>, <unk>, <mask> first"),
    ({"symbols": ("<MASK>", "<x1>", "<x2>", "<x3>", "<x4>")}, "language tokens like <2en>"),
]


@pytest.mark.parametrize(("changes", "words"), VOCABULARIES)
def test_a_vocabulary_of_another_size_or_layout_is_refused(made, changes, words):
    write_vocabulary(made / "spm.model", **changes)
    assert words in refusal(made)


def test_a_file_that_is_no_checkpoint_or_vocabulary_is_refused(made):
    for value in ([1, 2], {"state": {}}, {"state_dict": {"a": 1}}):
        torch.save(value, made / "weights.pt")
        assert "`state_dict`" in refusal(made)
    for content in (b"", b"PK\x03\x04 half a zip", b"text"):
        (made / "weights.pt").write_bytes(content)
        assert "weights.pt: not a checkpoint" in refusal(made)
    write_released(made)
    (made / "spm.model").write_bytes(b"none")
    assert "not a SentencePiece model" in refusal(made)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def test_code_in_a_checkpoint_is_refused_and_never_runs(made, monkeypatch):
    monkeypatch.chdir(made)
    torch.save({"state_dict": {}, "best_loss": Evil()}, made / "weights.pt")
    assert "not a checkpoint of tensors and numbers only" in refusal(made)
    assert not Path("evil").exists()


def test_the_command_imports_and_names_a_missing_file(made, capfd, monkeypatch):
    monkeypatch.chdir(made)
    arguments = ["import-released", "--spm", "spm.model", "--out", "released", "--heads", "3"]
    assert main([*arguments, "--weights", "weights.pt"]) == 0
    assert "2 layers, width 12, 3 heads" in capfd.readouterr().err
    assert main([*arguments, "--weights", "nope.pt"]) == 1
    message = "nope.pt: no such file (--weights: checkpoint file of the authors, https:"
    assert message in capfd.readouterr().err


PAIRS = ["kalo mine so\tne ru", "va\tso ti kalo mine", "ru so so ti\tlo mi ka va va"]
PAIRS += ["lo lo\tmine kalo ne", "ti ka mi\tru"]  # de, en


def make_shards(folder, out):
    lines = [f"{pair}\t{at}" for at, pair in enumerate(PAIRS, 1)]
    source = write_lines(folder / "de-en.tsv", lines)
    write_shards(source, out / "vocabulary.model", folder / "shards")
    return folder / "shards"


def pairs_for_reference(out, shards):
    """Both sentences of each pair, with the masks of validation, for made/references.py."""
    (batch,) = in_order(PairStore(shards_in(shards), LANGUAGES, MOST), 152)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(out / "vocabulary.model"))
    masked = replace(batch, tokens=Masker("one", Pieces.classify(pieces), MOST)(batch, 0, 0).inputs)
    return [
        [
            {"language": language, "tokens": tokens, "input": seen}
            for (language, tokens), (_, seen) in zip(*sides, strict=True)
        ]
        for sides in zip(unpacked(batch), unpacked(masked), strict=True)
    ]


def test_the_imported_model_has_the_losses_of_the_authors_code(made):
    out, state = imported(made), state_of(made)
    shards = make_shards(made, out)
    row = validate_model(out, [shards])
    assert row["total"] == pytest.approx(row["xtr"] + row["contrastive"], rel=1e-4)
    assert row["p1_by_language"].keys() == {"de"}
    contrastive = {"temperature": 0.1, "margin": 0, "both_sides": False, "mask_duplicates": False}
    parts, pairs = weights_for_reference(state), pairs_for_reference(out, shards)
    for name, part in (("xtr distinct", "xtr"), ("contrastive", "contrastive")):
        loss = REFERENCES[name](parts, pairs, settings={"contrastive": contrastive}) / len(PAIRS)
        assert loss.item() == pytest.approx(row[part], rel=1e-4)


def test_its_settings_equal_ems_released_except_for_the_sizes(made):
    own = read_json(imported(made) / "model.json", Json)["training"]["system"]
    released = {key: plain(getattr(shipped("ems62").systems["ems-released"], key)) for key in own}
    same = {"head": {"language_width": 128}, "contrastive": {"width": 128}}
    assert changed(own["objectives"], same) == released["objectives"]
    for part, keys in (
        ("model", own["model"].keys() - {"layers", "width", "heads", "feed_forward", "max_tokens"}),
        ("train", ("steps", "batch_pairs", "amsgrad", "input_mask")),
    ):
        assert {k: own[part][k] for k in keys} == {k: released[part][k] for k in keys}


def test_heads_may_share_the_embeddings_and_lack_the_projection(made):
    state = state_of(made)
    words = state[f"{BERT}embedding.word_embedding.embedding.weight"]
    shared = {key: value for key, value in state.items() if "alignproj" not in key}
    shared["module.model.target_embedding.weight"] = words
    shared["module.model.decoder.decoder.weight"] = words
    for name, size in (("dense.weight", (WIDTH, WIDTH + 8)), ("dense.bias", (WIDTH,))):
        shared[f"module.model.transform.{name}"] = torch.randn(size)
    for kind in ("weight", "bias"):
        shared[f"module.model.transform.LayerNorm.{kind}"] = torch.ones(WIDTH)
    torch.save(checkpoint(shared), made / "weights.pt")
    out = imported(made)
    row = validate_model(out, [make_shards(made, out)])
    assert row.keys() == {"xtr", "total", "p1", "p1_by_language"}


def test_validation_refuses_another_vocabulary_and_missing_heads(made):
    out = imported(made)
    shards = make_shards(made, out)
    write_vocabulary(made / "spm.model", size=48)
    state = make_state(48)
    torch.save(checkpoint(state), made / "weights.pt")
    out = imported(made)
    with pytest.raises(EmsError, match=r"not the vocabulary of the shards .*; make shards .*vocab"):
        validate_model(out, [shards])
    shards = make_shards(made, out)
    (out / "heads.safetensors").unlink()
    with pytest.raises(EmsError, match=r"heads\.safetensors: no such file"):
        validate_model(out, [shards])
    imported(made)
    words = ["--model", str(out), "--shards", str(shards)]
    script = [sys.executable, str(ROOT / "perf/validate.py"), *words]
    shown = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert json.loads(shown).keys() >= {"xtr", "contrastive", "total", "p1"}
