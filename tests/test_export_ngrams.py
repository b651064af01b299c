"""Laws of an exported table with n-grams: its code is ours and needs nothing of ours, and all that
load it give our vectors, whatever the line, its neighbours and the threads."""

import ast
import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT
from made.models import write_model

from ems import Encoder
from ems.base.errors import EmsError
from ems.commands.cli import main
from ems.corpora.demo.grammar import read_free
from ems.export import folder as of_folder
from ems.export import onnx
from ems.model.encode import SentenceEncoder

TEXT = [text for sentence in read_free() for text in sentence.values()]
ODD = ["a", "?!…", "🙂👍🏽", "  x ", "Ж", "字", "a_b-c/d@e.f", "<pad> <2en>", "x" * 300, "½ ﬁ Å"]
ODD += [
    " ".join(TEXT[:60]),
    "1984",
    "naïve Zürich",
    "москва",
    "μόσχα",
    "मास्को",
    "モスクワ",
    "- - -",
]
LINES = [*TEXT[-60:], *ODD]
LIMIT = 500
SIZES = {"layers": 0, "table": 24, "ngrams": 1009, "max_tokens": LIMIT}
LOADS = """
import sys
for name in ("ems", "anyascii", "sentencepiece"):
    sys.modules[name] = None
import numpy as np
from sentence_transformers import SentenceTransformer
folder, again, lines, out = sys.argv[1:]
model = SentenceTransformer(folder, device="cpu", local_files_only=True, trust_remote_code=True)
model.save(again)
other = SentenceTransformer(again, device="cpu", local_files_only=True, trust_remote_code=True)
lines = open(lines, encoding="utf-8", newline="\\n").read().split("\\n")
np.save(out, [each.encode(lines, batch_size=5) for each in (model, other)])
print(other.max_seq_length, other.get_embedding_dimension(), np.abs(model.encode([""])).max())
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Our model folder."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("ngrams") / "models/ems"
    return write_model(folder, ["en", "de"], TEXT, 2500, sizes=SIZES, byte_fallback=True)


@pytest.fixture(scope="module")
def exported(model):
    """The exported folder, whose name is no identifier."""
    out = model.parents[1] / "my export-1.0"
    assert main(["export", "--model", str(model), "--out", str(out), "--onnx"]) == 0
    return out


@pytest.fixture(scope="module")
def loaded(exported):
    """The model of sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(
        str(exported), device="cpu", local_files_only=True, trust_remote_code=True
    )


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def ours_of(model, lines):
    return unit(SentenceEncoder(model, "cpu").encode(lines, "de"))


# --- the code


def own_imports(text):
    """(modules that a source imports, those of its own folder)."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    names = {
        each.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import)
        for each in node.names
    }
    away = names | {node.module for node in nodes if not node.level}
    return away, {node.module for node in nodes if node.level}


def test_the_code_is_ours_and_imports_nothing_of_ems(exported):
    written = {path.name: path.read_text() for path in exported.glob("*.py")}
    assert sorted(written) == ["ngram_embedding.py", "table.py"]
    packages = set()
    for name in of_folder.NGRAM_CODE:
        source = (ROOT / "ems" / name).read_text()
        text = written[name.rpartition("/")[2]]
        away, beside = own_imports(text)
        assert {f"{each}.py" for each in beside} <= set(written)
        packages |= {each.partition(".")[0] for each in away} - set(sys.stdlib_module_names)
        pairs = list(zip(source.split("\n"), text.split("\n"), strict=True))
        changed = [pair for pair in pairs if pair[0] != pair[1]]
        assert len(changed) == len(beside)
        assert all(re.fullmatch(r"from ems\.model\.\w+ import \w+", one) for one, _ in changed)
    assert packages == {"torch", "tokenizers", "sentence_transformers"}
    assert own_imports((ROOT / "ems/model/table.py").read_text())[0] == {
        "torch",
        "torch.nn",
    }


def test_code_is_run_only_by_those_who_allow_it(exported):
    from sentence_transformers import SentenceTransformer

    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(exported), device="cpu", local_files_only=True)


def test_a_process_without_ems_gives_our_vectors_also_of_what_it_saves(model, exported, tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    words = [exported, tmp_path / "saved", tmp_path / "lines.txt", tmp_path / "out.npy"]
    environment = {**os.environ, "HF_MODULES_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", LOADS, *map(str, words)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(LIMIT), "24", "0.0"]
    for vectors in np.load(tmp_path / "out.npy"):
        assert np.abs(vectors - ours_of(model, LINES)).max() < 1e-6


# --- its vectors


def random_batch(seed, pieces, ids=40):
    """(ids, numbers of them) of sentences of any pieces, some of them empty."""
    draw = random.Random(seed)
    lengths = [draw.choice([0, 1, 2, draw.randint(3, ids)]) for _ in range(draw.randint(1, 9))]
    tokens = [draw.randrange(pieces) for _ in range(sum(lengths))]
    return torch.tensor(tokens, dtype=torch.long), torch.tensor(lengths)


@pytest.mark.parametrize("seed", range(20))
def test_the_module_and_the_graph_give_our_vectors_of_random_pieces(seed, model, loaded, exported):
    """Also of byte pieces and special ones, which no text has, and of sentences without a piece."""
    ours = SentenceEncoder(model, "cpu")
    tokens, lengths = random_batch(seed, ours.vocabulary.get_piece_size())
    expected = np.zeros((len(lengths), 24), np.float32)
    for at, each in enumerate(tokens.split(lengths.tolist())):
        if len(each):
            expected[at] = unit(ours.encoder(each, torch.tensor([len(each)])).detach().numpy())[0]
    features = {"input_ids": tokens, "lengths": lengths}
    vectors = loaded(features)["sentence_embedding"].detach().numpy()
    assert np.abs(vectors - expected).max() < 1e-6
    ids = [each.tolist() for each in tokens.split(lengths.tolist())]
    for left in (False, True):
        assert np.abs(of_graph(exported, ids, left=left) - expected).max() < 1e-5


def of_graph(folder, ids, left=False, threads=4, extra=0, name="model"):
    """The graph's vectors of ids in one batch, padded with any id on one of both sides."""
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads
    session = InferenceSession(folder / f"onnx/{name}.onnx", options)
    longest = max(map(len, ids)) + extra
    padded = np.full((len(ids), longest), 7)
    mask = np.zeros_like(padded)
    for row, one in enumerate(ids):
        place = slice(longest - len(one), longest) if left else slice(len(one))
        padded[row, place], mask[row, place] = one, 1
    (vectors,) = session.run(None, {"input_ids": padded, "attention_mask": mask})
    return vectors


@pytest.mark.parametrize("threads", [1, 4])
def test_the_graph_gives_our_vectors_of_odd_lines_alone_and_beside_long_ones(
    model, exported, threads
):
    tokens = [ids[:LIMIT].tolist() for ids in SentenceEncoder(model).tokenise(LINES, "de")]
    assert max(map(len, tokens)) == LIMIT
    expected = ours_of(model, LINES)
    whole = of_graph(exported, tokens, threads=threads, extra=3)
    assert np.abs(whole - expected).max() < 1e-5
    for at, ids in enumerate(tokens):
        if LINES[at] in ODD:
            alone = of_graph(exported, [ids], threads=threads)
            assert np.abs(alone - expected[at]).max() < 1e-5
    assert not of_graph(exported, [[]]).any()
    assert not of_graph(exported, [[], []], extra=2).any()


def test_ems_reads_the_folder_back(model, exported, tmp_path):
    whole = Encoder(model, "cpu").encode(LINES)
    assert Encoder(exported, "cpu").encode(LINES, "de").tobytes() == whole.tobytes()
    source, out = tmp_path / "lines.txt", tmp_path / "lines.npy"
    source.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    words = ["--model", str(exported), "--source", str(source), "--out", str(out)]
    assert main(["encode", *words]) == 0
    assert np.abs(np.load(out) - whole).max() < 1e-6


# --- refused


def test_layers_beside_a_table_are_refused_in_one_line(tmp_path, capfd):
    sizes = {**SIZES, "layers": 1, "ngrams": 0}
    folder = write_model(tmp_path / "model", ["en", "de"], TEXT, 2500, sizes=sizes)
    assert main(["export", "--model", str(folder), "--out", str(tmp_path / "out")]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert (
        "ems export cannot write a model with layers and a table (layers: 1, table: 24); use it with"
        in last
    )
    assert not (tmp_path / "out").exists()


def test_code_that_computes_something_else_is_not_exported(model, tmp_path, monkeypatch, capfd):
    other = tmp_path / "table.py"
    source = (ROOT / "ems/model/table.py").read_text()
    other.write_text(source.replace("WEIGHT * self", "(WEIGHT + 1) * self"))
    own = [other if "table" in name else name for name in of_folder.NGRAM_CODE]
    monkeypatch.setattr(of_folder, "NGRAM_CODE", own)
    out = tmp_path / "out"
    assert main(["export", "--model", str(model), "--out", str(out)]) == 1
    assert "the float32 vectors are not ours" in capfd.readouterr().err
    assert not out.exists()


def test_a_graph_that_hashes_otherwise_is_not_exported(model, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(onnx, "MIX", onnx.MIX + 2)
    out = tmp_path / "out"
    assert main(["export", "--model", str(model), "--out", str(out), "--onnx"]) == 1
    assert "the onnx vectors are not ours" in capfd.readouterr().err
    assert not out.exists()


def test_a_system_that_would_run_the_code_is_told_of_the_kind_that_does_not(exported):
    from ems.bench.peers import SentenceTransformersEncoder

    with pytest.raises(EmsError, match="sentence-transformers would run; declare the system with"):
        SentenceTransformersEncoder(str(exported), "cpu")
