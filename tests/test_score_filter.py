"""Laws of `ems score` between two pipes: a filter passes rows on as they are, and ends as other
programs do."""

import gzip
import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr
from unittest.mock import patch

import numpy as np
import pytest
from made.cli import Cli
from made.models import write_model

from ems.commands.cli import main
from ems.use.encoder import Encoder, mine, score

LINES = [f"{first} {second}" for first in ("ka", "lo", "mi") for second in ("ne", "ru", "so")]
ROW = b"ka ne\tka ne"  # scores 1 with any model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("score") / "model", ["de", "en"], LINES * 9, 30)


def ems(model, *flags, name="score"):
    return [sys.executable, "-m", "ems.commands.cli", name, "--model", str(model), *flags]


def piped(model, content, *flags, status=0):
    """What the command writes for a content of standard input, and its log."""
    source, out, log = io.BytesIO(content), io.BytesIO(), io.StringIO()
    with (
        patch("sys.stdin", io.TextIOWrapper(source)),
        patch("sys.stdout", io.TextIOWrapper(out)),
        redirect_stderr(log),
    ):
        assert main(["score", "--model", str(model), *flags]) == status, log.getvalue()
        return out.getvalue(), log.getvalue()


@pytest.mark.parametrize("margin", ["absolute", "ratio"])
def test_rows_that_are_kept_are_the_bytes_that_came_in_their_order(model, margin):
    kept = [ROW + b"\r\n", b"lo ru\tlo ru\t third \tfourth\n", b"  mi so \tmi so\n"]
    kept += [ROW + b"\t\xff not read\n", b"ka so\tka so"]  # the last one without an end
    dropped = [b"ka ne\tlo so\n", b"mi so\t\n", b"\tlo so\n", b"\t\n"]
    bad = [b"one column\n", b"\n", b"\xff\tka\n", b"ka\tk\0a\n", b"ka\t" + b"x" * 1_000_001 + b"\n"]
    content = kept[:2] + bad[:2] + dropped[:2] + kept[2:3] + bad[2:] + dropped[2:] + kept[3:]
    flags = ("--threshold", "0.9999", "--margin", margin)
    if margin == "ratio":  # beside neighbours: a row that is itself stands out least
        flags = ("--threshold", "-9", "--margin", margin)
        kept = [row for row in content if row not in bad]
    out, log = piped(model, b"".join(content), *flags, "--bad", "skip")
    assert out == b"".join(kept)
    assert "2 bad lines skipped (one column, expected two or more): line 3, 4" in log
    faults = {8: "not UTF-8", 9: "a NUL in it", 10: "longer than 1,000,000 bytes"}
    for number, fault in faults.items():
        assert f"1 bad lines skipped ({fault}): line {number}" in log
    out, log = piped(model, b"".join(content), *flags, status=1)
    assert out == b""
    assert "error: standard input: line 3: one column, expected two or more; " in log


@pytest.mark.parametrize("margin", ["absolute", "ratio"])
def test_nothing_in_gives_nothing_out(model, margin):
    assert piped(model, b"", "--margin", margin)[0] == b""


def test_a_pair_of_which_one_side_has_no_text_scores_0_and_is_never_mined(model):
    first, second = ["ka ne", "", " ", "lo ru", "\u3000"], ["ka ne", "", "mi so", "", "lo ru"]
    encoder = Encoder(model)
    expected = score(encoder, first, second)
    assert expected[0] == pytest.approx(1)
    assert not expected[1:].any()
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(first, second, strict=True)).encode()
    np.testing.assert_allclose(np.loadtxt(piped(model, rows)[0].splitlines()), expected, atol=2e-6)
    found = mine(encoder, first, second, margin="distance", one_to_one=False)
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert {(0, 0), (3, 4)} <= set(pairs)
    assert all(first[a].strip() and second[b].strip() for a, b in pairs)


@pytest.mark.parametrize("margin", ["absolute", "ratio"])
def test_a_reader_that_goes_ends_it_without_a_word(model, margin, tmp_path):
    """By SIGPIPE, which OpusCleaner takes for a good end. What it keeps for itself goes too."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    run = subprocess.Popen(ems(model, "--margin", margin), **pipes, env=environment)
    run.stdout.close()
    run.stdin.write((ROW + b"\n") * 50)
    run.stdin.close()
    log = run.stderr.read().decode()
    assert run.wait() == -signal.SIGPIPE, log
    assert "Broken pipe" not in log
    assert "error" not in log
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["score", "search"])
def test_a_full_disk_behind_standard_output_is_an_error(model, name, tmp_path):
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    own = {"score": [], "search": ["--index", "lines.txt", "ka ne"]}[name]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            ems(model, *own, name=name),
            input=ROW,
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
    log = done.stderr.decode().splitlines()
    assert done.returncode == 1, log
    assert "error: cannot write standard output: No space left on device; " in log[-1]


def test_a_full_disk_behind_a_file_leaves_no_half_file(model, tmp_path):
    run = Cli(tmp_path)
    (tmp_path / "pairs.tsv").write_bytes((ROW + b"\n") * 20_000)
    words = ems(model, "--source", "pairs.tsv", "--out", "scores.txt")
    limit = f"ulimit -f 100; trap '' XFSZ; exec {' '.join(words)}"
    done = subprocess.run(["bash", "-c", limit], cwd=run.folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot write" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "scores.txt").exists()


def test_a_gz_is_read_whole_or_is_an_error(model, tmp_path):
    whole = gzip.compress((ROW + b"\n") * 5000)
    (tmp_path / "whole.tsv.gz").write_bytes(whole)
    (tmp_path / "cut.tsv.gz").write_bytes(whole[:-9])
    run = Cli(tmp_path)
    words = ("score", "--model", model, "--source")
    run(*words, "whole.tsv.gz", "--out", "scores.txt")
    assert (tmp_path / "scores.txt").read_text() == "1.000000\n" * 5000
    assert "not a whole gzip file" in run.error(*words, "cut.tsv.gz", "--out", "cut.txt")
    assert not (tmp_path / "cut.txt").exists()
