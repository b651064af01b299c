"""Laws of docs/export.md: each example runs as it stands there and gives what EMS gives."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, needs
from made.cli import COMMAND, INTEROP, commands, program, section, write_files
from made.models import write_model

from ems.commands.cli import main
from ems.corpora.demo.grammar import read_free
from ems.use.encoder import Encoder, score

FREE = read_free()
ROWS = [(sentence["de"], sentence["en"]) for sentence in FREE[:120]]
WRONG = [(german, english) for (german, _), (_, english) in zip(ROWS, ROWS[7:], strict=False)]
EQUAL = [(german, german) for german, _ in ROWS[:40]]  # which any model scores 1
PAIRS = random.Random(3).sample(ROWS + WRONG + EQUAL, len(ROWS + WRONG + EQUAL))
GREETINGS = ["Good morning.", "Guten Morgen."]
SIZES = {"layers": 2, "width": 24, "heads": 3, "feed_forward": 40, "max_tokens": 32}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with exports/ems, as the page takes it for granted."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("interop")
    text = [text for sentence in FREE for text in sentence.values()]
    model = write_model(folder / "model", ["en", "de"], text, 2500, sizes=SIZES)
    (folder / "lines.txt").write_text("".join(f"{line}\n" for line in text[:100]), encoding="utf-8")
    words = ["export", "--model", model, "--out", folder / "exports/ems", "--onnx"]
    assert main([*map(str, words), "--verify", str(folder / "lines.txt")]) == 0
    for name, at in (("de", 0), ("en", 1)):
        lines = "".join(f"{pair[at]}\n" for pair in PAIRS)
        (folder / f"corpus.{name}").write_text(lines, encoding="utf-8")
    (folder / "ems").symlink_to(ROOT / "ems")
    return folder


@pytest.fixture(scope="module")
def cosines(place):
    """The cosines of PAIRS. The threshold of the page leaves some of either kind."""
    values = score(Encoder(place / "exports/ems"), *zip(*PAIRS, strict=True))
    assert 40 <= (values >= 0.8).sum() < len(PAIRS) - 40
    assert np.abs(values - 0.8).min() > 1e-6
    return values


def run(command, folder, tool=""):
    """Run a command of the page in the folder, where `tool` is one of those of `make interop`."""
    binaries = ROOT / ".interop" / tool / "bin"
    needs(not tool or binaries.is_dir(), f"{tool} is not installed: make interop")
    path = os.pathsep.join([str(binaries), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def kept(cosines):
    return [pair for pair, value in zip(PAIRS, cosines, strict=True) if value >= 0.8]


def test_each_example_of_the_page_has_its_test_here():
    headings = [part.partition("\n")[0] for part in INTEROP.read_text().split("\n## ")[1:]]
    shown = [each for each in headings if "```" in section(each, INTEROP)]
    shown += [each for each in headings if COMMAND.search(section(each, INTEROP))]
    tested = {"sentence-transformers", "transformers", "onnxruntime", "faiss"}
    assert set(shown) - {"Write an export", "Models with n-grams"} == tested | {
        "OpusCleaner",
        "OpusFilter",
        "vecalign",
    }


@pytest.mark.parametrize("tool", ["sentence-transformers", "transformers", "onnxruntime"])
def test_the_vectors_of_another_library_are_ours(place, monkeypatch, tool):
    pytest.importorskip("sentence_transformers")
    monkeypatch.chdir(place)
    names = {}
    exec(program(tool, INTEROP), names)
    expected = Encoder("exports/ems", "cpu").encode(GREETINGS, normalise=True)
    np.testing.assert_allclose(np.asarray(names["vectors"]), expected, atol=1e-5)


def test_faiss_finds_the_nearest_line(place, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.chdir(place)
    names = {}
    exec(program("faiss", INTEROP), names)
    asked = names["encoder"].encode(["Good morning!"], normalise=True)
    every = (asked @ names["vectors"].T)[0]
    assert names["numbers"].tolist() == [[int(every.argmax())]]
    assert names["cosines"][0, 0] == pytest.approx(every.max(), abs=1e-6)


def test_opuscleaner_keeps_the_rows_that_reach_the_threshold(place, cosines):
    write_files("OpusCleaner", place, INTEROP)
    # one row is dropped by the filter before ours, and one is not UTF-8
    rows = ["\t".join(pair).encode() for pair in PAIRS]
    rows[5:5] = [b"a " * 200 + b"\tb", b"\xff\tb"]
    (place / "corpus.tsv").write_bytes(b"\n".join(rows) + b"\n")
    for command in commands("OpusCleaner", INTEROP):
        log = run(command, place, "opuscleaner")
    assert "[1:ems_score]" in log
    expected = "".join("\t".join(pair) + "\n" for pair in kept(cosines))
    assert (place / "kept.tsv").read_bytes() == expected.encode()


def test_opuscleaner_fails_where_the_filter_fails(place):
    write_files("OpusCleaner", place, INTEROP)
    pipeline = json.loads((place / "pipeline.json").read_text())
    pipeline["filters"][1]["parameters"]["MODEL"] = "missing"
    (place / "missing.json").write_text(json.dumps(pipeline))
    *prepare, command = commands("OpusCleaner", INTEROP)
    for each in prepare:
        run(each, place, "opuscleaner")
    (place / "corpus.tsv").write_text("a\tb\n")
    with pytest.raises(AssertionError, match="missing: expected a model folder"):
        run(command.replace("pipeline.json", "missing.json"), place, "opuscleaner")


def test_opusfilter_scores_and_filters_as_we_do(place, cosines):
    write_files("OpusFilter", place, INTEROP)
    for command in commands("OpusFilter", INTEROP):
        run(command, place, "opusfilter")
    lines = (place / "scores.jsonl").read_text().splitlines()
    scores = [json.loads(line)["EmsFilter"] for line in lines]
    np.testing.assert_allclose(scores, cosines, atol=1e-5)
    sides = [(place / f"kept.{code}").read_text(encoding="utf-8") for code in ("de", "en")]
    pairs = list(zip(*(side.splitlines() for side in sides), strict=True))
    words = [[len(text.split()) for text in pair] for pair in kept(cosines)]
    like = [max(counts) < 3 * min(counts) for counts in words]
    assert pairs == [pair for pair, alike in zip(kept(cosines), like, strict=True) if alike]


FALSE = """
- type: filter
  parameters:
    inputs: [corpus.de, corpus.en]
    outputs: [dropped.de, dropped.en]
    filterfalse: true
    filters:
    - EmsFilter: {model: exports/ems, threshold: 0.8}
      module: ems.use.opusfilter
"""


def test_opusfilter_writes_the_others_too(place, cosines):
    (place / "false.yaml").write_text(f"steps:{FALSE}")
    run("opusfilter false.yaml", place, "opusfilter")
    dropped = (place / "dropped.de").read_text(encoding="utf-8").splitlines()
    pairs = zip(PAIRS, cosines, strict=True)
    assert dropped == [german for (german, _), value in pairs if value < 0.8]


def overlaps(lines, count):
    """The text that vecalign wants vectors of: each 1 to `count` lines in a row, once, sorted."""
    joined = {"PAD"}
    for length in range(1, count + 1):
        starts = range(len(lines) - length + 1)
        joined |= {" ".join(lines[at : at + length])[:10_000] for at in starts}
    return sorted(joined)


def vectors_by_line(text, numbers):
    """Read the two files of an --src_embed: a line is a key, and as many rows of float32 follow
    each other without a header."""
    lines = text.read_text(encoding="utf-8").split("\n")[:-1]
    flat = np.fromfile(numbers, np.float32)
    assert flat.size % len(lines) == 0
    return dict(zip(lines, flat.reshape(len(lines), -1), strict=True))


def test_vecalign_reads_the_vector_of_each_line(place):
    for code, at in (("de", 0), ("en", 1)):
        lines = overlaps([pair[at] for pair in ROWS[:40]], 4)
        text = "".join(f"{line}\n" for line in lines)
        (place / f"overlaps.{code}").write_text(text, encoding="utf-8")
    ours = [each for each in commands("vecalign", INTEROP) if each.startswith("ems ")]
    assert len(ours) == 2
    for command in ours:
        run(command, place)
    encoder = Encoder(place / "exports/ems")
    for code in ("de", "en"):
        rows = vectors_by_line(place / f"overlaps.{code}", place / f"overlaps.{code}.f32")
        assert len(rows) > 150
        expected = encoder.encode(list(rows))
        np.testing.assert_allclose(np.stack(list(rows.values())), expected, atol=1e-5)
