"""Laws of an exported folder: its tokens and vectors are ours for every library that loads it, or
there is no folder. The code for n-grams in it is ours and needs nothing of ours."""

import hashlib
import json
import random
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from conftest import ROOT, SHARED, needs
from made.corpora import write_lines, write_tatoeba
from made.experiments import MINIMAL, Settings
from made.models import export, write_model
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ems import Encoder
from ems.base.errors import EmsError
from ems.bench.peers import SentenceTransformersEncoder
from ems.commands.cli import main
from ems.corpora.demo.grammar import read_free
from ems.export import folder as export_folder
from ems.export import onnx, tokenizer
from ems.export import plain as plain_table
from ems.export.folder import Exported
from ems.export.tokenizer import make_tokenizer
from ems.model import devices
from ems.model.encode import SentenceEncoder
from ems.model.static import load_encoder
from ems.model.weights import mapped
from ems.text.subwords import UNK
from ems.use.files import check_model

pytestmark = pytest.mark.slow
TEXT = [text for sentence in read_free() for text in sentence.values()]  # of eight languages
STATIC = {"static", "table"}  # kinds of one vector for each piece
LIMIT = 500
SIZES = {"layers": 2, "width": 24, "heads": 3, "feed_forward": 40, "max_tokens": 20}
BYTES = {"byte_fallback": True, "character_coverage": 0.99}
MATRYOSHKA = {"system": {"objectives": {"matryoshka": {"weight": 1, "dimensions": [10]}}}}
TABLE = {**SIZES, "layers": 0, "table": 24}
POOLED = {**SIZES, "pooling": "mean-max", "activation": "gelu", "positions": "none"}
NGRAMS = {**TABLE, "ngrams": 1009, "max_tokens": LIMIT}
KINDS = {  # name: (sizes, segmenter, settings of the vocabulary, flags)
    "mean": (SIZES, "none", {}, "--onnx --int8"),
    "mean-max": (POOLED, "unicode", BYTES, "--onnx --dimensions 10"),
    "static": ({**SIZES, "layers": 0, "positions": "none"}, "unicode", {}, "--onnx --int8"),
    "table": (TABLE, "none", {}, "--onnx --dimensions 10"),
    "ngrams": (NGRAMS, "unicode", BYTES, "--onnx --int8 --dimensions 10"),
}
ODD = [" ".join(TEXT[:60]), "x" * 300, "a", "?!…", "🙂👍🏽 ♥\ufe0f™", "  a\tb\u3000c ", "Ж", "字"]
ODD += ["a_b-c/d@e.f", "<pad> <2en>", "<mask>", "- - -", "naïve Zürich", "москва", "मास्को"]
ODD += ["モスクワ", "ＡＢＣ１２３", "ΟΔΟΣ ΣΟΦΟΣ", "STRASSE İ ǅ", "a_b▁c▁▁d", "می\u200cخواهم"]
ODD += ["e\u0301 ½ ﬁ Å ´x΄", "a\u200bb\u00adc \u202edef\u202c"]
LINES = [*TEXT[-60:], *ODD]


def made_model(folder, kind):
    sizes, segmenter, vocabulary, _ = KINDS[kind]
    write_model(folder, ["en", "de"], TEXT, 2500, segmenter=segmenter, sizes=sizes, **vocabulary)
    path = folder / "model.json"
    description = json.loads(path.read_text()) | {"name": "ems", "training": MATRYOSHKA}
    path.write_text(json.dumps(description))
    return folder


def verify_lines(folder):
    return write_lines(folder / "lines.txt", TEXT[: 8 * 60])


@pytest.fixture(scope="module", params=KINDS)
def exported(request, tmp_path_factory):
    """The kind of a model, its folder and the exported folder."""
    pytest.importorskip("onnxruntime")
    kind, folder = request.param, tmp_path_factory.mktemp(request.param)
    model, out = made_model(folder / "models/ems", kind), folder / "my export-1.0"
    flags = [*KINDS[kind][3].split(), "--verify", verify_lines(folder)]
    export(model, out, *flags, here=kind != "ngrams")
    return kind, model, out


of_ngrams = pytest.mark.parametrize("exported", ["ngrams"], indirect=True)


def load(folder, trust=True):
    from sentence_transformers import SentenceTransformer

    options = {"device": "cpu", "local_files_only": True, "trust_remote_code": trust}
    return SentenceTransformer(str(folder), **options)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def ours_of(kind, model, lines):
    vectors = SentenceEncoder(model, "cpu").encode(lines, "de")
    return unit(vectors[:, :10] if "--dimensions" in KINDS[kind][3] else vectors)


def of_graph(folder, ids, left=False, threads=4, extra=0):
    """The outputs of the graph for ids in one batch, padded with any id on one side."""
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads
    session = InferenceSession(folder / "onnx/model.onnx", options)
    longest = max(map(len, ids)) + extra
    padded = np.full((len(ids), longest), 7)
    mask = np.zeros_like(padded)
    for row, one in enumerate(ids):
        place = slice(longest - len(one), longest) if left else slice(len(one))
        padded[row, place], mask[row, place] = one, 1
    names = sorted(out.name for out in session.get_outputs())
    return session.run(names, {"input_ids": padded, "attention_mask": mask})


# --- every kind of model


def test_sentence_transformers_gives_our_vectors_of_text_that_the_export_never_saw(exported):
    kind, model, folder = exported
    lines = [*TEXT[-80:], *(line.upper() for line in TEXT[-30:]), " ".join(TEXT[-9:]), "<2en>"]
    loaded = load(folder, trust=kind == "ngrams")
    vectors = loaded.encode(lines, batch_size=7, show_progress_bar=False)
    expected = ours_of(kind, model, lines)
    assert np.abs(vectors - expected).max() < 1e-5
    assert np.abs(expected - expected.mean(0)).max() > 0.01  # vectors differ
    assert not loaded.encode([""] * (kind in STATIC | {"ngrams"})).any()


def test_the_graph_gives_our_vectors_at_every_length_and_batch(exported):
    from tokenizers import Tokenizer

    kind, model, folder = exported
    (path,) = folder.rglob("tokenizer.json")
    lines = sorted(TEXT[-40:], key=len)
    for batch in (lines[:1], lines[:9], lines[-1:], lines[::7]):
        ids = [encoded.ids for encoded in Tokenizer.from_file(str(path)).encode_batch(batch)]
        vectors, *states = of_graph(folder, ids)
        shape = (len(batch), max(map(len, ids)))
        assert [each.shape[:2] for each in states] == [shape] * ("table" not in KINDS[kind][0])
        assert np.abs(vectors - ours_of(kind, model, batch)).max() < 1e-5


def test_the_graph_gives_zeros_for_a_text_without_tokens(exported):
    vectors, *_ = of_graph(exported[2], [[], [7, 8]])
    assert not vectors[0].any()
    assert vectors[1].any()


def test_ems_reads_the_folder_back(exported, tmp_path):
    kind, model, folder = exported
    vectors = load_encoder(folder, "cpu").encode(TEXT[-9:], "de")[:, :10]
    for other in (SentenceEncoder(folder, "cpu"), SentenceEncoder(model, "cpu")):
        expected = other.encode(TEXT[-9:], "de")[:, :10]
        assert np.abs(unit(vectors) - unit(expected)).max() < 1e-6
    assert Encoder(folder).encode(TEXT[-9:])[:, :10].tobytes() == vectors.tobytes()
    spoilt = shutil.copytree(folder, tmp_path / "spoilt")
    (weights,) = spoilt.rglob("*.safetensors") if kind in STATIC else [spoilt / "model.safetensors"]
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(EmsError, match=r"model\.safetensors: its SHA-256 is not the one"):
        check_model(spoilt)


@pytest.mark.parametrize("sizes", [{"ngrams": 64}, {}])
def test_int8_rows_give_nearly_the_same_vectors_and_are_read_by_both_engines(sizes, tmp_path):
    model = write_model(tmp_path / "m", ["de", "en"], TEXT, 2500, sizes=TABLE | sizes)
    out, call = tmp_path / "small", ("export", "--model", str(model), "--out")
    assert main([*call, str(out), "--quantised"]) == 0
    assert main([*call, str(out), "--quantised"]) == 0  # it may be replaced
    kinds = {name: each.dtype for name, each in mapped(out / "model.safetensors", None).items()}
    letters = {"uint8"} if sizes else set()
    assert {str(kind) for kind in kinds.values()} == {"int8", "float32"} | letters
    small, exact = load_encoder(out), SentenceEncoder(model, "cpu").encode(TEXT, "de")
    vectors = small.encode(TEXT, "de")
    assert (unit(vectors) * unit(exact)).sum(1).min() > 0.999
    assert vectors.tobytes() == load_encoder(model, precision="int8").encode(TEXT, "de").tobytes()
    np.testing.assert_allclose(SentenceEncoder(out, "cpu").encode(TEXT, "de"), vectors, atol=1e-5)
    check_model(out)


def test_the_card_is_valid_for_the_hub_and_the_sums_match_the_files(exported):
    kind, _, folder = exported
    card = (folder / "README.md").read_text(encoding="utf-8")
    matter = yaml.safe_load(card.split("---\n")[1])
    assert matter["language"] == ["en", "de"]
    assert matter["library_name"] == "sentence-transformers"
    assert ("int8" in card) == ("--int8" in KINDS[kind][3])
    assert ("trust_remote_code=True" in card) == (kind == "ngrams")
    assert ("The model ignores word order" in card) == (kind != "mean")
    assert "The token ids of 0 lines differ." in card
    assert ("SiLU" in card) == (kind == "mean")
    for code in re.findall(r"```python\n(.*?)```", card, re.DOTALL):
        compile(code, "card", "exec")
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    listed = dict(line.split("  ")[::-1] for line in lines)
    files = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
    files.pop("SHA256SUMS")
    assert listed == {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in files.items()}


# --- n-grams


@of_ngrams
def test_the_code_is_ours_and_imports_nothing_of_ems(exported):
    packages, folder = set(), exported[2]
    for name in export_folder.NGRAM_CODE:
        source, text = (ROOT / "ems" / name).read_text(), (folder / Path(name).name).read_text()
        assert text == re.sub(
            r"from ems\.model\.(table|hashing) import", r"from .\1 import", source
        )
        packages |= set(re.findall(r"^ *(?:from|import) (\w+)", text, re.MULTILINE))
    packages -= set(sys.stdlib_module_names)
    assert packages == {"torch", "tokenizers", "sentence_transformers"}
    assert {path.name for path in folder.glob("*.py")} == {
        Path(n).name for n in export_folder.NGRAM_CODE
    }


@of_ngrams
def test_code_runs_only_if_the_user_allows_it(exported):
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        load(exported[2], trust=False)
    with pytest.raises(EmsError, match="code that sentence-transformers would run"):
        SentenceTransformersEncoder(str(exported[2]), "cpu")


@of_ngrams
def test_what_another_library_saves_gives_our_vectors_too(exported, tmp_path):
    kind, model, folder = exported
    load(folder).save(str(tmp_path))
    saved = load(tmp_path)
    assert (saved.max_seq_length, saved.get_embedding_dimension()) == (LIMIT, 10)
    vectors = saved.encode(LINES, batch_size=5)
    assert np.abs(vectors - ours_of(kind, model, LINES)).max() < 1e-6
    assert not saved.encode([""]).any()


@of_ngrams
@pytest.mark.parametrize("threads", [1, 4])
def test_the_module_and_the_graph_give_our_vectors_of_any_pieces(exported, threads):
    """Byte pieces and special ones, which no text has, sentences without a piece, odd lines."""
    _, model, folder = exported
    ours, loaded = SentenceEncoder(model, "cpu"), load(folder)
    lines = [ids[:LIMIT].tolist() for ids in ours.tokenise(LINES, "de")]
    assert max(map(len, lines)) == LIMIT
    batches = [lines, *([ids] for ids in lines[60:]), [[]], [[], []]]
    for seed in range(20):
        draw, pieces = random.Random(seed), ours.vocabulary.get_piece_size()
        lengths = [draw.choice([0, 1, 2, draw.randint(3, 40)]) for _ in range(draw.randint(1, 9))]
        batches.append([[draw.randrange(pieces) for _ in range(length)] for length in lengths])
    for at, ids in enumerate(batches):
        expected = np.zeros((len(ids), 10), np.float32)
        for row, own in enumerate(ids):
            if own:
                vector = ours.encoder(torch.tensor(own), torch.tensor([len(own)]))
                expected[row] = unit(vector.detach().numpy()[:, :10])[0]
        tokens = torch.tensor([one for each in ids for one in each], dtype=torch.long)
        features = loaded({"input_ids": tokens, "lengths": torch.tensor(list(map(len, ids)))})
        vectors = features["sentence_embedding"].detach().numpy()
        assert np.abs(vectors - expected).max() < 1e-6
        (vectors,) = of_graph(folder, ids, left=at % 2 == 1, threads=threads, extra=at % 3)
        assert np.abs(vectors - expected).max() < 1e-5


# --- plain


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The folder of a plain export of a model with n-grams."""
    pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("plain")
    pairs = (f"{en}\t{de}" for en, de in zip(TEXT[0::8], TEXT[1::8], strict=True))
    write_lines(folder / "text/segmented/pairs.tsv", [*pairs, *TEXT[2::8]])  # where a run has it
    model = made_model(folder / "models/ems", "ngrams")
    return export(model, folder / "plain", "--plain", "--verify", verify_lines(folder))


@pytest.mark.filterwarnings("error")
def test_a_plain_export_needs_no_code_and_no_warning(plain, caplog):
    assert check_model(plain) == 8
    caplog.clear()
    loaded = load(plain, trust=False)
    vectors = loaded.encode([*LINES, ""], batch_size=7, show_progress_bar=False)
    assert (caplog.messages, vectors.dtype, vectors[-1].any()) == ([], np.float32, False)
    assert np.abs(Encoder(plain).encode([*LINES, ""]) - vectors).max() < 1e-6
    tensors, mean = load_file(plain / "model.safetensors"), {}  # as model2vec reads it
    rows = tensors["embeddings"].astype(np.float32) * tensors["weights"][:, None]
    assert (tensors["embeddings"].dtype, len(rows)) == (np.int8, plain_tokenizer(plain)[1])
    for at, encoded in enumerate(plain_tokenizer(plain)[0].encode_batch_fast(LINES)):
        mean[at] = unit(rows[encoded.ids].mean(0, keepdims=True))[0] if encoded.ids else 0 * rows[0]
    assert np.abs(np.stack(list(mean.values())) - vectors[:-1]).max() < 1e-6
    assert json.loads((plain / "config.json").read_text())["normalize"] is True


def plain_tokenizer(folder):
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return made, made.get_vocab_size()


def test_no_word_is_taken_for_the_beginning_of_another(plain):
    tokenizer, _ = plain_tokenizer(plain)
    closed = [entry for entry in tokenizer.get_vocab() if re.fullmatch("▁[^▁]{2,}\3", entry)]
    assert len(closed) > 100
    for entry in closed:
        word = entry[1:-1]
        tokens = tokenizer.encode(f"{word} {word}s, {word}{word}.").tokens
        assert (tokens[0], tokens.count(entry)) == (entry, 1)
        assert "".join(tokens) == f"▁{word}\3▁{word}s\3▁,▁{word}{word}\3▁."
        assert all("\3" not in token[:-1] for token in tokens)


def test_training_brings_a_plain_table_nearer_and_is_the_same_again(plain, monkeypatch):
    loss = json.loads((plain / "plain.json").read_text())["loss"]
    assert loss["pairs"] > 5
    with monkeypatch.context() as patch:
        patch.setattr(plain_table, "EPOCHS", 0)  # the closed form
        made = plain_table.make_plain(Exported(plain.parent / "models/ems", "unicode"), ())
    assert made.loss["cosine"] + 0.01 < loss["cosine"]
    sums = (plain / "SHA256SUMS").read_bytes()
    export(plain.parent / "models/ems", plain, "--plain", "--verify", plain.parent / "lines.txt")
    assert (plain / "SHA256SUMS").read_bytes() == sums
    assert f"| {loss['exact']:.1f} | {loss['plain']:.1f} |" in (plain / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "expected training text in .*/text/segmented, found none; name files with --text"),
        ("line\n", "expected at least 50 pairs .* found 1 lines and 0 pairs to measure on in 1"),
    ],
)
def test_a_plain_table_needs_text(text, message, tmp_path):
    if text:
        (tmp_path / "text/segmented").mkdir(parents=True)
        (tmp_path / "text/segmented/a.tsv").write_text(text)
    with pytest.raises(EmsError, match=message):
        plain_table.read_text(tmp_path / "models/m", ())


def test_long_text_is_sampled(tmp_path, monkeypatch):
    path = write_lines(tmp_path / "a.tsv", [f"line {at}\tZeile {at}" for at in range(9_000)])
    lines, held = plain_table.read_text(tmp_path, [path])
    assert len(lines) + 2 * len(held) == 18_000
    monkeypatch.setattr(plain_table, "TEXT_MB", 1e-6 * path.stat().st_size / 3)
    fewer, _ = plain_table.read_text(tmp_path, [path])
    assert 5_000 < len(fewer) < 7_000
    assert set(fewer) < set(lines)


# --- no folder (tests/refused/export.yaml has the others)


def other_code(folder):
    """Code for n-grams that weighs them differently."""
    source = (ROOT / "ems/model/table.py").read_text()
    assert "WEIGHT * self" in source
    (folder / "table.py").write_text(source.replace("WEIGHT * self", "(WEIGHT + 1) * self"))
    return [folder / "table.py" if "table" in n else n for n in export_folder.NGRAM_CODE]


def full_disk(*_):
    raise SafetensorError("Error while serializing: I/O error: No space left on device")


@pytest.mark.parametrize(
    ("kind", "place", "value", "flags", "message"),
    [
        ("static", (tokenizer, "CONTROL"), "e", "", "the tokenizer.json differs from ours in"),
        ("mean", (onnx, "FAR"), 0.0, "--onnx", "the onnx vectors are not ours"),
        ("ngrams", (onnx, "MIX"), onnx.MIX + 2, "--onnx", "the onnx vectors are not ours"),
        ("ngrams", (export_folder, "NGRAM_CODE"), other_code, "", "the float32 vectors are not"),
        ("mean", (devices, "save_file"), full_disk, "", r"write .*model\.safetensors.*No space"),
    ],
)
def test_a_folder_that_is_not_ours_is_not_written(
    kind, place, value, flags, message, tmp_path, monkeypatch, capfd
):
    pytest.importorskip("onnxruntime")
    model = made_model(tmp_path / "model", kind)
    monkeypatch.setattr(*place, other_code(tmp_path) if value is other_code else value)
    flags = [*flags.split(), "--verify", verify_lines(tmp_path)]
    export(model, tmp_path / "out/ems", *flags, expect=1)
    assert re.search(f"error: .*{message}", capfd.readouterr().err.splitlines()[-1])
    assert list((tmp_path / "out").iterdir()) == []


# --- segmenters and tokens


def test_without_segmenters_the_card_has_the_loss(tmp_path, monkeypatch):
    Settings(tmp_path, MINIMAL)
    pairs = list(zip(TEXT[1::8][:30], TEXT[0::8][:30], strict=True))
    for code in ("deu", "fra"):
        write_tatoeba(tmp_path, code, pairs)
    place = tmp_path / "data/evalsets/tatoeba/toy"
    place.parent.mkdir(parents=True)
    (tmp_path / "tatoeba").rename(place)
    path = made_model(tmp_path / "model", "static") / "model.json"
    path.write_text(path.read_text().replace('"de": "unicode"', '"de": "sacremoses"'))
    monkeypatch.chdir(tmp_path)
    export("model", "out", "--without-segmenters", "--verify", verify_lines(Path()))
    card = Path("out/README.md").read_text()
    (row,) = re.findall(r"^\| de \| (.*?) \| (.*?) \| (.*?) \|$", card, re.M)
    with_, without, change = map(float, row)
    assert change == pytest.approx(without - with_, abs=0.11)
    assert 0 <= without <= 100


VOCABULARIES = {
    "bpe": {},
    "bytes": {"byte_fallback": True, "character_coverage": 0.98},
    "unknown": {"character_coverage": 0.98},
    "unigram": {"type": "unigram"},
    "tatoeba": {"byte_fallback": True, "character_coverage": 0.999, "pieces": 6000},
}


def differing(model, segmenter, lines, format_characters="keep"):
    """The lines whose ids are not ours."""
    path = model / "model.json"
    description = json.loads(path.read_text()) | {"format_characters": format_characters}
    path.write_text(json.dumps(description))
    expected = [ids.tolist() for ids in SentenceEncoder(model, "cpu").tokenise(lines, "en")]
    vocabulary = model / "vocabulary.model"
    made = make_tokenizer(vocabulary, segmenter, format_characters, 10_000).encode_batch(lines)
    ids = [encoded.ids or [UNK] for encoded in made]
    return [line for line, a, b in zip(lines, expected, ids, strict=True) if a != b]


@pytest.mark.parametrize("segmenter", tokenizer.SEGMENTERS)
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_the_ids_of_eight_languages_and_of_odd_lines_are_ours(segmenter, vocabulary, tmp_path):
    text = TEXT
    if vocabulary == "tatoeba":  # in 112 languages
        needs(SHARED.is_dir(), "the real Tatoeba is not in the folder next to the project")
        paths = sorted((SHARED / "tatoeba_v1").glob("tatoeba.*-eng.*"))
        files = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in paths]
        text = [line for file in files for line in file[:90]]
    settings = {"pieces": 2500} | VOCABULARIES[vocabulary]
    model = write_model(tmp_path / "m", ["en", "de"], text, segmenter=segmenter, **settings)
    lines = ["", *text[::3], *(line.upper() for line in text[::3]), *ODD]
    if vocabulary == "unigram":  # <pad> is found where `<` is unknown
        lines.remove("<pad> <2en>")
    for format_characters in ("keep", "drop"):
        assert differing(model, segmenter, lines, format_characters) == []
