"""Laws of a model in use: a line is a row whatever it holds and whatever dies, and the command, the
function and the benchmark find the same."""

import gzip
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from conftest import SHARED, needs
from made.bench import scored
from made.cli import Cli
from made.models import SIZES, write_exported, write_model, write_peer, write_segmented
from made.scores import means

from ems.base.errors import EmsError
from ems.base.files import state_of
from ems.bench.nearest import nearest
from ems.benchmarks.bucc2018.data import read_part
from ems.benchmarks.families.mining import best_threshold
from ems.model.encode import SentenceEncoder
from ems.use import files, mining, stream
from ems.use.encoder import Encoder, mine, score

DRAW = random.Random(7)
SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "so", "ti", "va"]
WORDS = ["".join(DRAW.choices(SYLLABLES, k=DRAW.randint(1, 4))) for _ in range(60)]


def sentences(count):
    """Lines of 1 to 10 words."""
    return [" ".join(DRAW.choices(WORDS, k=DRAW.randint(1, 10))) for _ in range(count)]


LINES = sentences(60)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("use") / "model", ["de", "en"], sentences(300))


@pytest.fixture(scope="module")
def encoder(model):
    return Encoder(model)


@pytest.fixture
def ems(tmp_path, monkeypatch):
    """The command line, with pieces of 7 lines."""
    monkeypatch.setattr(files, "PIECE_LINES", 7)
    return Cli(tmp_path)


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def left(folder):
    """The hidden files and folders that a command has left."""
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


# --- the encoder


def test_vectors_are_those_of_the_model_and_the_options_are_what_they_say(model, encoder):
    plain = SentenceEncoder(model).encode(LINES, "de")
    assert encoder.encode(LINES).tobytes() == plain.tobytes()
    unit = encoder.encode(LINES, "en", normalise=True, dimensions=5)
    assert unit.shape == (60, 5)
    lengths = np.linalg.norm(plain[:, :5], axis=1, keepdims=True)
    np.testing.assert_allclose(unit, plain[:, :5] / lengths, atol=1e-6)
    half = encoder.encode(LINES, half=True)
    assert half.dtype == np.float16
    assert half.tobytes() == plain.astype(np.float16).tobytes()
    assert encoder.encode([]).shape == (0, 16)
    with pytest.raises(EmsError, match="expected at most 16"):
        encoder.encode(LINES, dimensions=17)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_a_lower_precision_gives_nearly_the_same_vectors(model, encoder, precision):
    rows = Encoder(model, "cpu", precision).encode(LINES, normalise=True)
    cosine = (rows * encoder.encode(LINES, normalise=True)).sum(1)
    assert (cosine > 0.99).all()
    assert (rows != encoder.encode(LINES, normalise=True)).any()


def test_a_sentence_transformers_folder_is_an_encoder_too(tmp_path):
    needs_peer = pytest.importorskip("sentence_transformers")
    folder = write_peer(tmp_path / "peer", WORDS)
    expected = needs_peer.SentenceTransformer(str(folder), device="cpu").encode(LINES)
    rows = Encoder(folder, "cpu").encode(LINES)
    np.testing.assert_allclose(rows, expected, atol=1e-5)
    with pytest.raises(EmsError, match=r"found none of them"):
        Encoder(tmp_path)


def test_an_exported_folder_gives_the_vectors_of_its_model(model, encoder, tmp_path):
    exported = Encoder(write_exported(tmp_path / "whole", model))
    assert exported.encode(LINES, "de").tobytes() == encoder.encode(LINES).tobytes()
    part = Encoder(write_exported(tmp_path / "part", model, dimensions=6)).encode(LINES)
    assert part.tobytes() == np.ascontiguousarray(encoder.encode(LINES)[:, :6]).tobytes()
    weights = tmp_path / "part" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(EmsError, match=r"model\.safetensors: its sha256 is not the one"):
        Encoder(tmp_path / "part")


def test_the_vector_of_a_sentence_in_an_exported_table_is_the_mean_of_its_pieces(model, tmp_path):
    ours = SentenceEncoder(model)
    table = torch.randn(ours.vocabulary.get_piece_size(), 5)
    rows = Encoder(write_exported(tmp_path / "table", model, table, 5)).encode(LINES)
    expected = [table[ids[: SIZES["max_tokens"]]].mean(0) for ids in ours.tokenise(LINES, "de")]
    np.testing.assert_allclose(rows, torch.stack(expected), atol=1e-6)


def test_the_language_is_needed_only_where_it_matters(model, tmp_path):
    own = write_segmented(tmp_path / "own", model)
    with pytest.raises(EmsError, match=r"segments by none, sacremoses; give one of de, en, und"):
        Encoder(own).encode(LINES)
    assert Encoder(own).encode(LINES, "en").tobytes() == Encoder(model).encode(LINES).tobytes()


# --- encode


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz"])
def test_a_file_gives_the_rows_of_its_lines_in_any_form(ems, model, encoder, name):
    write(ems.folder / "lines.txt", LINES)
    (ems.folder / "lines.txt.gz").write_bytes(
        gzip.compress((ems.folder / "lines.txt").read_bytes())
    )
    words = ("encode", "--model", model, "--source", name, "--normalise")
    ems(*words, "--out", "out.npy")
    ems(*words, "--out", "out.f32")
    ems(*words, "--out", "half.npy", "--half", "--dimensions", "4")
    rows = np.load(ems.folder / "out.npy")
    np.testing.assert_allclose(rows, encoder.encode(LINES, normalise=True), atol=1e-6)
    assert (ems.folder / "out.f32").read_bytes() == rows.tobytes()
    half = np.load(ems.folder / "half.npy")
    assert (half.dtype, half.shape) == (np.float16, (60, 4))
    assert left(ems.folder) == []


def test_a_stream_gives_the_bytes_of_the_file(model, tmp_path):
    write(tmp_path / "lines.txt", LINES)
    ems = Cli(tmp_path, own_process=True)
    ems("encode", "--model", model, "--source", "lines.txt", "--out", "out.npy")
    command = [sys.executable, "-m", "ems.commands.cli", "encode", "--model", str(model)]
    command += ["--source", "-", "--out", "-"]
    with open(tmp_path / "lines.txt", "rb") as lines:
        done = subprocess.run(command, stdin=lines, capture_output=True, check=True)
    assert done.stdout == np.load(tmp_path / "out.npy").tobytes()


def test_an_empty_text_gives_no_rows(ems, model):
    write(ems.folder / "lines.txt", [])
    ems("encode", "--model", model, "--source", "lines.txt", "--out", "out.npy")
    assert np.load(ems.folder / "out.npy").shape == (0, 16)


BAD = {3: b"\xff\xfe", 12: b"a\0b", 13: b"x" * (stream.LONGEST + 1)}
FAULTS = {3: "not UTF-8", 12: "a NUL in it", 13: "longer than 1,000,000 bytes"}


def spoilt(path):
    """Lines of which some are bad, one without an end."""
    lines = [line.encode() for line in LINES]
    for number, line in BAD.items():
        lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))


def test_a_bad_line_is_an_error_with_its_number(ems, model):
    for number, line in BAD.items():
        (ems.folder / "lines.txt").write_bytes(b"a\n" * (number - 1) + line + b"\nb\n")
        words = ("encode", "--model", model, "--source", "lines.txt", "--out", "out.npy")
        message = ems.error(*words)
        assert message.startswith(f"lines.txt: line {number}: {FAULTS[number]}; ")
        assert not (ems.folder / "out.npy").exists()


def test_skipped_lines_are_counted_and_shift_nothing(ems, model):
    spoilt(ems.folder / "lines.txt")
    words = ("encode", "--model", model, "--source", "lines.txt", "--out", "out.npy")
    log = "\n".join(ems(*words, "--bad", "skip"))
    for number, fault in FAULTS.items():
        assert f"1 bad lines skipped ({fault}): line {number}" in log
    rows = np.load(ems.folder / "out.npy")
    assert len(rows) == 60
    bad = np.flatnonzero(~rows.any(axis=1)) + 1
    assert bad.tolist() == list(BAD)
    write(ems.folder / "good.txt", LINES)
    ems("encode", "--model", model, "--source", "good.txt", "--out", "good.npy")
    good = np.load(ems.folder / "good.npy")
    kept = rows.any(axis=1)
    np.testing.assert_allclose(rows[kept], good[kept], atol=1e-5)


def records(state):
    """How many pieces are recorded in a state folder, which changes meanwhile."""
    return sum(len(names) for root, _, names in os.walk(state) if root.endswith("done"))


def kill(ems, words, out, done):
    """Start a command and kill it when so many pieces are recorded."""
    slow = "lambda *given: (sleep(0.02), block(*given))[1]"  # so that it is not done before
    program = (
        "from time import sleep; from ems.use import files; from ems.commands.cli import main; "
        "files.PIECE_LINES = 7; block = files.EncodingJob.block; "
        f"files.EncodingJob.block = {slow}; main({words})"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ems.folder, stderr=-3)
    state, end = state_of(ems.folder / out), time.monotonic() + 120
    while records(state) < done and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_encode_killed_and_run_again_gives_the_same_bytes(ems, model):
    write(ems.folder / "lines.txt", LINES * 4)
    words = ["encode", "--model", str(model), "--source", "lines.txt", "--out"]
    ems(*words, "whole.npy")
    for done in (1, 20):
        kill(ems, [*words, "out.npy"], "out.npy", done)
        assert not (ems.folder / "out.npy").exists()
    assert "resumed" in "\n".join(ems(*words, "out.npy"))
    assert (ems.folder / "out.npy").read_bytes() == (ems.folder / "whole.npy").read_bytes()
    assert left(ems.folder) == []


def test_what_another_text_or_another_form_has_left_is_not_used(ems, model):
    write(ems.folder / "lines.txt", LINES * 4)
    words = ["encode", "--model", str(model), "--source", "lines.txt", "--out", "out.npy"]
    kill(ems, words, "out.npy", 3)
    write(ems.folder / "lines.txt", ["other", *LINES])
    assert "resumed" not in "\n".join(ems(*words))
    assert len(np.load(ems.folder / "out.npy")) == 61


@pytest.mark.parametrize(
    "words",
    [
        "encode --source lines.txt --out out.npy",
        "mine --source lines.txt --target lines.txt --out out.tsv",
        "score --source pairs.tsv --out out.txt",
        "score --source pairs.tsv --margin ratio --out out.txt",
    ],
)
def test_a_full_disk_is_an_error_and_leaves_no_half_file(model, tmp_path, words):
    write(tmp_path / "lines.txt", LINES * 50)
    write(tmp_path / "pairs.tsv", [f"{line}\t{line}" for line in LINES * 50])
    words = f"-m ems.commands.cli {words} --model {model}"
    command = f"ulimit -f 20; trap '' XFSZ; exec {sys.executable} {words}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot write" in done.stderr.splitlines()[-1]
    assert "ulimit -f" in done.stderr.splitlines()[-1]
    assert {path.name for path in tmp_path.iterdir()} == {"lines.txt", "pairs.tsv"}


# --- score


PAIRS = [*zip(LINES, sentences(60), strict=True), ("gleich", "gleich")]
ROWS = [f"{first}\t{second}\tmore" for first, second in PAIRS]


def test_the_score_of_a_row_is_the_cosine_of_its_pair(ems, model, encoder):
    write(ems.folder / "pairs.tsv", ROWS)
    words = ("score", "--model", model, "--source", "pairs.tsv")
    ems(*words, "--out", "scores.txt")
    written = [float(line) for line in (ems.folder / "scores.txt").read_text().split()]
    expected = score(encoder, *zip(*PAIRS, strict=True))
    np.testing.assert_allclose(written, expected, atol=2e-6)
    assert written[-1] == pytest.approx(1)
    least = float(np.median(expected)) + 1e-5
    ems(*words, "--out", "kept.tsv", "--threshold", str(least))
    kept = (ems.folder / "kept.tsv").read_text().splitlines()
    assert kept == [row for row, value in zip(ROWS, expected, strict=True) if value >= least]
    assert 10 < len(kept) < 50


def test_the_margin_of_a_row_is_that_of_the_function(ems, model, encoder):
    write(ems.folder / "pairs.tsv", ROWS)
    words = ("score", "--model", model, "--source", "pairs.tsv", "--out", "scores.txt")
    for margin in ("ratio", "distance"):
        ems(*words, "--margin", margin)
        written = [float(line) for line in (ems.folder / "scores.txt").read_text().split()]
        expected = score(encoder, *zip(*PAIRS, strict=True), margin=margin)
        np.testing.assert_allclose(written, expected, atol=1e-5)
    assert left(ems.folder) == []


@pytest.mark.parametrize("margin", ["absolute", "ratio"])
def test_a_bad_row_keeps_its_place_among_the_scores(ems, model, margin):
    rows = [row.encode() for row in ROWS]
    rows[8], rows[20] = b"one column", b"\xff\tb"
    (ems.folder / "pairs.tsv").write_bytes(b"\n".join(rows) + b"\n")
    words = ("score", "--model", model, "--source", "pairs.tsv", "--margin", margin)
    message = ems.error(*words, "--out", "scores.txt")
    assert message.startswith("pairs.tsv: line 9: one column, expected two or more; ")
    log = "\n".join(ems(*words, "--out", "scores.txt", "--bad", "skip"))
    assert "line 9" in log
    assert "line 21" in log
    scores = (ems.folder / "scores.txt").read_text().split()
    assert len(scores) == len(ROWS)
    assert [at for at, value in enumerate(scores) if value == "nan"] == [8, 20]


def test_score_is_a_filter_between_two_pipes(model, tmp_path):
    command = [sys.executable, "-m", "ems.commands.cli", "score", "--model", str(model)]
    content = "".join(f"{row}\n" for row in ROWS)
    done = subprocess.run(
        [*command, "--threshold", "0.9999"], input=content, capture_output=True, text=True
    )
    assert done.stdout == "gleich\tgleich\tmore\n"


# --- mine


def two_sides(encoder):
    """Texts of which every third line of the first is in the second, with blank lines in both."""
    first, second = sentences(50), sentences(40)
    return [*first, "", " "], [*first[::3], "", *second]


def test_mined_pairs_are_those_of_plain_loops(ems, model, encoder):
    first, second = two_sides(encoder)
    write(ems.folder / "a.txt", first)
    write(ems.folder / "b.txt", second)
    words = ("mine", "--model", model, "--source", "a.txt", "--target", "b.txt")
    ems(*words, "--out", "m.tsv", "--one-to-one", "--numbers")
    rows = [line.split("\t") for line in (ems.folder / "m.tsv").read_text().split("\n")[:-1]]
    pairs = [(int(row[3]) - 1, int(row[4]) - 1) for row in rows]
    assert [(row[1], row[2]) for row in rows] == [(first[a], second[b]) for a, b in pairs]
    assert all(first[a].strip() and second[b].strip() for a, b in pairs)
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    scores = [float(row[0]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    kept = [at for at, line in enumerate(first) if line.strip()]
    found = mine(encoder, [first[at] for at in kept], [line for line in second if line])
    assert {(first[a], second[b]) for a, b in pairs[:17]} == {
        (first[kept[a]], [line for line in second if line][b])
        for a, b in zip(found.first[:17].tolist(), found.second[:17].tolist(), strict=True)
    }
    ems(*words, "--out", "best.tsv", "--threshold", str(scores[9]))
    best = (ems.folder / "best.tsv").read_text().splitlines()
    assert len(best) >= 10  # without --one-to-one there may be more
    assert all(float(row.split("\t")[0]) >= scores[9] for row in best)
    assert len(set(best)) == len(best)


def test_mine_killed_and_run_again_gives_the_same_bytes(ems, model):
    write(ems.folder / "a.txt", sentences(60))
    write(ems.folder / "b.txt", sentences(40))
    words = ["mine", "--model", str(model), "--source", "a.txt", "--target", "b.txt"]
    ems(*words, "--out", "whole.tsv")
    for done in (2, 11):
        kill(ems, [*words, "--out", "out.tsv"], "out.tsv", done)
    log = "\n".join(ems(*words, "--out", "out.tsv"))
    assert "resumed" in log
    assert (ems.folder / "out.tsv").read_bytes() == (ems.folder / "whole.tsv").read_bytes()
    assert left(ems.folder) == []


def test_a_comparison_in_parts_finds_what_one_of_the_whole_finds(encoder, tmp_path, monkeypatch):
    rows = [encoder.encode(sentences(count), normalise=True) for count in (61, 45)]
    sides = []
    for at, own in enumerate(rows):
        (tmp_path / f"{at}").mkdir()
        for number, start in enumerate(range(0, len(own), 9)):
            own[start : start + 9].tofile(tmp_path / f"{at}" / f"{number}")
        files = sorted((tmp_path / f"{at}").iterdir(), key=lambda path: int(path.name))
        sides.append(mining.Vectors(files, 16))
        assert sides[-1][3:31].tobytes() == own[3:31].tobytes()
    whole = nearest(*rows, 4, what="")
    monkeypatch.setattr(mining, "ROWS", 7)
    monkeypatch.setattr(mining, "LEAST_ROWS", 7)
    with mining.compared(*sides, mining.SearchOptions(4), "", tmp_path / "state") as parts:
        for one, other in zip(parts, whole, strict=True):
            assert (one.index == other.index).all()
            np.testing.assert_allclose(one.similarity, other.similarity, atol=1e-6)


def f1_of(ems, model, folder, code):
    """F1 in percent of the pairs that the command mines of a language of BUCC."""
    part = read_part(folder, code, "training")
    for name, texts in (("a.txt", part.sentences), ("b.txt", part.english)):
        write(ems.folder / name, texts.values())
    words = ("mine", "--model", model, "--source", "a.txt", "--target", "b.txt")
    ems(*words, "--out", "m.tsv", "--one-to-one", "--numbers")
    rows = [line.split("\t") for line in (ems.folder / "m.tsv").read_text().split("\n")[:-1]]
    ids, gold = [list(part.sentences), list(part.english)], set(part.gold)
    found = [(ids[0][int(row[-2]) - 1], ids[1][int(row[-1]) - 1]) for row in rows]
    correct = np.array([pair in gold for pair in found])
    scores = np.array([float(row[0]) for row in rows])
    count = int((scores >= best_threshold(scores, correct, len(gold))).sum())
    return 200 * int(correct[:count].sum()) / (count + len(gold))


def same_as_the_benchmark(ems, model, folder, tmp_path, codes):
    entry = {"version": "v2018", "languages": codes, "path": str(folder)}
    changes = {"evalsets": {"bucc2018": entry}, "benchmarks": ["bucc2018"]}
    scores = scored(tmp_path / "run", "bucc2018", folder, SentenceEncoder(model), **changes)
    for code in codes:
        expected = means(scores)[code]
        assert f1_of(ems, model, folder, code) == expected
        assert 0 < expected < 100


def test_mining_gives_the_f1_of_the_benchmark(ems, model, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE_LINES", 1 << 15)
    own, other = sentences(80), sentences(60)
    for part in ("training", "sample"):
        for name, texts in (("de", own), ("en", [f"{line} ka" for line in own[:50]] + other)):
            rows = [f"{name}-{at}\t{text}" for at, text in enumerate(texts)]
            path = tmp_path / "bucc" / "de-en" / f"de-en.{part}.{name}"
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, rows)
        gold = [f"de-{at}\ten-{at}" for at in range(50)]
        write(tmp_path / "bucc" / "de-en" / f"de-en.{part}.gold", gold)
    same_as_the_benchmark(ems, model, tmp_path / "bucc", tmp_path, ["de"])


def test_mining_bucc_mini_gives_the_f1_of_the_benchmark(ems, tmp_path, monkeypatch):
    needs((SHARED / "bucc_mini").is_dir(), "the benchmarks do not lie beside the project")
    monkeypatch.setattr(files, "PIECE_LINES", 1 << 15)
    part = read_part(SHARED / "bucc_mini", "de", "sample")
    text = [*part.sentences.values(), *part.english.values()]
    model = write_model(tmp_path / "model", ["de", "en"], text, pieces=400)
    same_as_the_benchmark(ems, model, SHARED / "bucc_mini", tmp_path, ["de"])


def test_faiss_finds_nearly_the_same_pairs(ems, model, encoder):
    pytest.importorskip("faiss")
    first, second = two_sides(encoder)
    write(ems.folder / "a.txt", first)
    write(ems.folder / "b.txt", second)
    words = ("mine", "--model", model, "--source", "a.txt", "--target", "b.txt")
    ems(*words, "--out", "exact.tsv", "--one-to-one")
    ems(*words, "--out", "near.tsv", "--one-to-one", "--faiss-above", "5")
    exact, near = (
        {tuple(row.split("\t")[1:]) for row in (ems.folder / name).read_text().split("\n")[:-1]}
        for name in ("exact.tsv", "near.tsv")
    )
    assert len(exact & near) > 0.8 * len(exact)


# --- search


def test_search_finds_the_line_itself_with_and_without_an_index(ems, model):
    write(ems.folder / "corpus.txt", LINES)
    words = ("search", "--model", model, "--index", "corpus.txt")
    found, _ = ems.run(*words, LINES[11], "--k", "3")
    assert len(found.splitlines()) == 3
    assert found.splitlines()[0] == f"1.0000\t12\t{LINES[11]}"
    assert not (ems.folder / "corpus.txt.index").exists()
    ems(*words, "--build")
    assert ems.run(*words, LINES[11], "--k", "3")[0] == found
    write(ems.folder / "asked.txt", LINES[:5])
    many = ems.run(*words, "--queries", "asked.txt", "--k", "1")[0].splitlines()
    assert many == [f"{at + 1}\t1.0000\t{at + 1}\t{LINES[at]}" for at in range(5)]


def test_an_index_of_another_text_or_model_is_refused(ems, model, tmp_path):
    write(ems.folder / "corpus.txt", LINES)
    words = ("search", "--index", "corpus.txt", "--model")
    ems(*words, model, "--build")
    other = write_model(tmp_path / "other", ["de"], sentences(300), seed=3)
    assert "of another model" in ems.error(*words, other, "ka")
    write(ems.folder / "corpus.txt", [*LINES, "new"])
    assert "has changed since; make it again with --build" in ems.error(*words, model, "ka")
    assert "expected a query, --queries or --build" in ems.error(*words, model)


def test_no_query_opens_no_index_and_half_is_of_a_built_one_alone(ems, model):
    words = ("search", "--model", model, "--index", "corpus.txt")
    write(ems.folder / "corpus.txt", LINES)
    write(ems.folder / "none.txt", [])
    assert ems.run(*words, LINES[5], "--half")[0] == ems.run(*words, LINES[5])[0]
    ems(*words, "--build")
    write(ems.folder / "corpus.txt", [*LINES, "new"])  # the index is of another text now
    ems(*words, "--queries", "none.txt")
