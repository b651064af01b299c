"""Laws of an exported folder: its tokens and vectors are ours, for everyone who loads it, or there
is no folder."""

import hashlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import SHARED, needs
from made.corpora import write_tatoeba
from made.experiments import MINIMAL, Settings
from made.models import write_model
from safetensors import SafetensorError

from ems.commands.cli import main
from ems.corpora.demo.grammar import read_free
from ems.export import onnx, tokenizer, verify
from ems.export.tokenizer import make_tokenizer
from ems.model import devices
from ems.model.encode import SentenceEncoder
from ems.text.subwords import UNK

TEXT = [text for sentence in read_free() for text in sentence.values()]
OF_EACH = TEXT[: 8 * 60]  # eight languages
SIZES = {"layers": 2, "width": 24, "heads": 3, "feed_forward": 40, "max_tokens": 20}
MATRYOSHKA = {"system": {"objectives": {"matryoshka": {"weight": 1, "dimensions": [10]}}}}
KINDS = {  # name: (sizes, segmenter, settings of the vocabulary, flags)
    "mean": (SIZES, "none", {}, ["--onnx", "--int8"]),
    "mean-max": (
        {**SIZES, "pooling": "mean-max", "activation": "gelu", "positions": "none"},
        "unicode",
        {"byte_fallback": True, "character_coverage": 0.99},
        ["--onnx", "--dimensions", "10"],
    ),
    "static": ({**SIZES, "layers": 0, "positions": "none"}, "unicode", {}, ["--onnx", "--int8"]),
    "table": ({**SIZES, "layers": 0, "table": 24}, "none", {}, ["--onnx", "--dimensions", "10"]),
    "ngrams": (
        {**SIZES, "layers": 0, "table": 24, "ngrams": 1009},
        "unicode",
        {"byte_fallback": True, "character_coverage": 0.99},
        ["--onnx", "--int8", "--dimensions", "10"],
    ),
}
STATIC = {"static", "table"}  # of one vector for each piece
BY_CODE = {"ngrams"}
INT8 = {name for name, kind in KINDS.items() if "--int8" in kind[3]}
CUT = {name for name, kind in KINDS.items() if "--dimensions" in kind[3]}
IN_ANOTHER_PROCESS = {"mean", "ngrams"}  # each takes seconds to import sentence-transformers


def made_model(folder, kind):
    sizes, segmenter, vocabulary, _ = KINDS[kind]
    write_model(folder, ["en", "de"], TEXT, 2500, segmenter=segmenter, sizes=sizes, **vocabulary)
    path = folder / "model.json"
    description = json.loads(path.read_text()) | {"name": "ems", "training": MATRYOSHKA}
    path.write_text(json.dumps(description))
    return folder


def verify_lines(folder):
    path = folder / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in OF_EACH), encoding="utf-8")
    return path


def figures_here(folder, expected):
    """What `--verify` asks another process for, of this one."""
    with np.load(io.BytesIO(expected)) as given:
        return verify.figures(folder, given)


def run(model, out, *flags, expect=0, here=False):
    """Export; `here` verifies in this process."""
    words = ["export", "--model", str(model), "--out", str(out), *map(str, flags)]
    with pytest.MonkeyPatch.context() as patch:
        if here:
            patch.setattr(verify, "_in_another_process", figures_here)
        assert main(words) == expect


@pytest.fixture(scope="module", params=KINDS)
def exported(request, tmp_path_factory):
    """(kind, our model folder, the exported one)."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp(request.param)
    model = made_model(folder / "models" / "ems", request.param)
    flags = KINDS[request.param][3]
    here = request.param not in IN_ANOTHER_PROCESS
    run(model, folder / "out", *flags, "--verify", verify_lines(folder), here=here)
    return request.param, model, folder / "out"


def ours_of(kind, model, lines):
    vectors = SentenceEncoder(model, "cpu").encode(lines, "de")
    vectors = vectors[:, :10] if kind in CUT else vectors
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_sentence_transformers_gives_our_vectors_of_text_that_the_export_never_saw(exported):
    """Short and cut, capitals, special pieces as text; `trust_remote_code` for n-grams alone."""
    from sentence_transformers import SentenceTransformer

    kind, model, folder = exported
    lines = [
        *TEXT[-80:],
        *(line.upper() for line in TEXT[-30:]),
        " ".join(TEXT[-9:]),
        "<pad> <2en>",
    ]
    loaded = SentenceTransformer(
        str(folder), device="cpu", local_files_only=True, trust_remote_code=kind in BY_CODE
    )
    vectors = loaded.encode(lines, batch_size=7, show_progress_bar=False)
    expected = ours_of(kind, model, lines)
    assert np.abs(vectors - expected).max() < 1e-5
    assert np.abs(expected - expected.mean(0)).max() > 0.01  # vectors differ
    assert not loaded.encode([""] * (kind in STATIC | BY_CODE)).any()


def test_the_graph_gives_our_vectors_at_every_length_and_batch(exported):
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    kind, model, folder = exported
    body = folder / "0_StaticEmbedding" if kind in STATIC else folder
    cut = Tokenizer.from_file(str(body / "tokenizer.json"))
    session = InferenceSession(folder / "onnx/model.onnx")
    lines = sorted(TEXT[-40:], key=len)
    for batch in (lines[:1], lines[:9], lines[-1:], lines[::7]):
        ids = [encoded.ids for encoded in cut.encode_batch(batch)]
        longest = max(map(len, ids))
        padded = np.array([one + [0] * (longest - len(one)) for one in ids])
        mask = np.array([[1] * len(one) + [0] * (longest - len(one)) for one in ids])
        given = {"input_ids": padded, "attention_mask": mask}
        vectors, *states = session.run(sorted(out.name for out in session.get_outputs()), given)
        assert [each.shape[:2] for each in states] == [padded.shape] * (
            "table" not in KINDS[kind][0]
        )
        assert np.abs(vectors - ours_of(kind, model, batch)).max() < 1e-5


def test_ems_reads_the_folder_back(exported):
    kind, model, folder = exported
    expected = ours_of(kind, model, TEXT[-9:])
    vectors = SentenceEncoder(folder, "cpu").encode(TEXT[-9:], "de")[:, : expected.shape[1]]
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(vectors - expected).max() < 1e-6


def test_the_card_is_one_of_the_hub_and_the_sums_are_those_of_the_files(exported):
    kind, _, folder = exported
    card = (folder / "README.md").read_text(encoding="utf-8")
    matter = yaml.safe_load(card.split("---\n")[1])
    assert matter["language"] == ["en", "de"]
    assert matter["library_name"] == "sentence-transformers"
    assert ("8 bits" in card or "int8" in card) == (kind in INT8)
    assert ("trust_remote_code=True" in card) == (kind in BY_CODE)
    assert ("The model ignores word order" in card) == (kind != "mean")
    assert "The token ids of 0 lines differ." in card
    assert ("SiLU" in card) == (kind == "mean")
    for code in re.findall(r"```python\n(.*?)```", card, re.DOTALL):
        compile(code, "card", "exec")
        assert code.count("\n") <= 7
    listed = dict(
        line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().split("\n")[:-1]
    )
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} - {"SHA256SUMS"}
    assert set(listed) == files
    for name, sha256 in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256


# --- no folder


def test_a_folder_whose_tokens_are_not_ours_is_not_written(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(tokenizer, "CONTROL", "e")  # as if it took letters for control characters
    model = made_model(tmp_path / "model", "static")
    run(model, tmp_path / "out", "--verify", verify_lines(tmp_path), expect=1, here=True)
    assert "the tokenizer.json differs from ours in" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_graph_that_is_not_ours_is_not_written(tmp_path, monkeypatch, capfd):
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(onnx, "FAR", 0.0)  # padding is attended to
    model = made_model(tmp_path / "model", "mean")
    lines = verify_lines(tmp_path)
    run(model, tmp_path / "out", "--onnx", "--verify", lines, expect=1, here=True)
    assert "the onnx vectors are not ours" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_one_clear_error_and_leaves_no_folder(tmp_path, monkeypatch, capfd):
    full = SafetensorError("Error while serializing: I/O error: No space left on device")
    monkeypatch.setattr(devices, "save_file", lambda *of: (_ for _ in ()).throw(full))
    model = made_model(tmp_path / "model", "mean")
    run(model, tmp_path / "out" / "ems", expect=1)
    last = capfd.readouterr().err.splitlines()[-1]
    assert re.search(r"error: cannot write .*model\.safetensors.*No space left", last)
    assert list((tmp_path / "out").iterdir()) == []


def test_dimensions_that_were_not_trained_are_refused(tmp_path, capfd):
    model = made_model(tmp_path / "model", "mean")
    run(model, tmp_path / "out", "--dimensions", "9", expect=1)
    assert "trained for 10, 24; choose one" in capfd.readouterr().err


def test_a_folder_that_is_no_export_is_never_replaced(tmp_path, capfd):
    model = made_model(tmp_path / "model", "mean")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "diary.txt").write_text("mine")
    run(model, tmp_path / "out", expect=1)
    assert "found a folder with other files in it" in capfd.readouterr().err


# --- segmenters


@pytest.fixture
def segmented(tmp_path, monkeypatch):
    """A project with a model whose German is segmented by a tool, and Tatoeba in its place."""
    Settings(tmp_path, MINIMAL)
    pairs = list(zip(TEXT[1::8][:30], TEXT[0::8][:30], strict=True))
    write_tatoeba(tmp_path, "deu", pairs)
    write_tatoeba(tmp_path, "fra", pairs)
    place = tmp_path / "data/evalsets/tatoeba/toy"
    place.parent.mkdir(parents=True)
    (tmp_path / "tatoeba").rename(place)
    model = made_model(tmp_path / "model", "static")
    path = model / "model.json"
    description = json.loads(path.read_text())
    description["segmenters"] |= {"de": "sacremoses", "und": "jieba"}
    path.write_text(json.dumps(description))
    monkeypatch.chdir(tmp_path)
    return model


def test_segmenters_are_refused_by_their_names_and_languages(segmented, capfd):
    run(segmented, "out", expect=1)
    error = capfd.readouterr().err
    assert "these segmenters: sacremoses: de. Train with" in error  # und is no language
    assert not Path("out").exists()


def test_without_segmenters_the_card_has_what_they_are_worth(segmented):
    run(segmented, "out", "--without-segmenters", "--verify", verify_lines(Path()), here=True)
    (row,) = re.findall(
        r"^\| de \| (.*?) \| (.*?) \| (.*?) \|$", Path("out/README.md").read_text(), re.M
    )
    with_, without, change = map(float, row)
    assert change == pytest.approx(without - with_, abs=0.11)
    assert 0 <= without <= 100


# --- tokens

SPOKEN = ["none", "unicode"]
VOCABULARIES = {
    "bpe": {},
    "bytes": {"byte_fallback": True, "character_coverage": 0.98},
    "unknown": {"character_coverage": 0.98},
    "unigram": {"type": "unigram"},
}


def differing(model, segmenter, lines, format_characters="keep"):
    """The lines whose ids are not ours."""
    path = model / "model.json"
    description = json.loads(path.read_text()) | {"format_characters": format_characters}
    path.write_text(json.dumps(description))
    expected = [ids.tolist() for ids in SentenceEncoder(model, "cpu").tokenise(lines, "en")]
    vocabulary = model / "vocabulary.model"
    made = make_tokenizer(vocabulary, segmenter, format_characters, 10_000).encode_batch(lines)
    found = [encoded.ids or [UNK] for encoded in made]
    return [line for line, a, b in zip(lines, expected, found, strict=True) if a != b]


ODD = ["", "  a\tb\u3000c ", "e\u0301 ½ ﬁ Å ´x΄", "ΟΔΟΣ ΣΟΦΟΣ", "STRASSE İ ǅ", "<2en> <mask>"]
ODD += [
    "a\u200bb\u00adc \u202edef\u202c",
    "می\u200cخواهم",
    "🙂👍🏽 ♥\ufe0f™",
    "a_b▁c▁▁d",
    "ＡＢＣ１２３",
    "x" * 300,
]


@pytest.mark.parametrize("segmenter", SPOKEN)
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_the_ids_of_eight_languages_and_of_odd_lines_are_ours(segmenter, vocabulary, tmp_path):
    of = VOCABULARIES[vocabulary]
    model = write_model(tmp_path / "m", ["en", "de"], TEXT, 2500, segmenter=segmenter, **of)
    names = ["<pad> <unk>"] if vocabulary != "unigram" else []  # found there, where `<` is unknown
    lines = [*TEXT, *(line.upper() for line in TEXT), *ODD, *names]
    for format_characters in ("keep", "drop"):
        assert differing(model, segmenter, lines, format_characters) == []


@pytest.mark.parametrize("segmenter", SPOKEN)
def test_the_ids_of_all_languages_of_tatoeba_are_ours(segmenter, tmp_path):
    needs(SHARED.is_dir(), "the real Tatoeba does not lie beside the project")
    paths = sorted((SHARED / "tatoeba_v1").glob("tatoeba.*-eng.*"))
    files = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in paths]
    assert len(files) == 2 * 112
    lines = [line for file in files for line in file[:90]]
    of = {"byte_fallback": True, "character_coverage": 0.999}
    model = write_model(tmp_path / "m", ["en", "de"], lines, 6000, segmenter=segmenter, **of)
    assert differing(model, segmenter, lines) == []
