"""Laws of work in pieces: whatever dies, the result is the same, and nothing is left running."""

import hashlib
import multiprocessing
import os
import re
import signal
import time
from collections import Counter
from functools import cache, partial
from itertools import count

import pytest
from made.corpora import write_lines
from made.experiments import one_line

from ems.base.errors import EmsError
from ems.text import pieces as engine
from ems.text.pieces import Piece, cut, done_pieces

LINES = [f"line {at} {'x' * (at * 37 % 101)}" for at in range(100)]


@pytest.fixture
def source(tmp_path):
    return write_lines(tmp_path / "source.tsv", LINES)


def plain_cut(content, lines, size):
    """Pieces as lists of lines, by a plain loop."""
    pieces, piece = [], []
    for line in content.splitlines(keepends=True):
        piece.append(line)
        if len(piece) == lines or (size and sum(map(len, piece)) >= size):
            pieces.append(piece)
            piece = []
    return [*pieces, piece] if piece or not pieces else pieces


@pytest.mark.parametrize("block", [1, 64, 1 << 20])
@pytest.mark.parametrize(("lines", "size"), [(1, None), (7, None), (7, 200), (1000, 300), (100, 9)])
@pytest.mark.parametrize("end", ["\n", "", "last", None], ids=["LF", "no line", "no LF", "empty"])
def test_pieces_are_whole_lines_and_make_up_the_file(source, monkeypatch, block, lines, size, end):
    content = b"" if end is None else source.read_bytes() + end.encode()
    source.write_bytes(content)
    monkeypatch.setattr(engine, "READ", block)
    expected, start, first = [], 0, 1
    for number, piece in enumerate(plain_cut(content, lines, size)):
        end = start + len(b"".join(piece))
        expected.append(Piece(source, number, start, end, first, len(piece)))
        start, first = end, first + len(piece)
    assert cut(source, lines, size) == (expected, hashlib.sha256(content).hexdigest())


MADE = count()


@cache
def tool():
    """A tool that a worker makes once."""
    return os.getpid(), next(MADE)


def copy(notes, trouble, at, piece, out, advance):
    """Copy the lines of a piece, and note it in `notes`; at the piece `at`, make trouble."""
    (notes / ".".join(map(str, (piece.number, os.getpid(), *tool())))).touch()
    trouble = trouble if piece.number == at else ""
    if trouble == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if trouble == "error":
        raise EmsError("this piece is bad; mend it")
    if trouble == "alone":  # until another worker has begun
        until = time.monotonic() + 60
        while len({note.name.split(".")[1] for note in notes.iterdir()}) == 1:
            assert time.monotonic() < until
            time.sleep(0.01)
    out.write_bytes(piece.source.read_bytes()[piece.start : piece.end].upper())
    advance(piece.lines)


class Bench:
    """Copies a file in pieces."""

    def __init__(self, folder, source):
        self.source, self.state, self.notes = source, folder / "state", folder / "notes"
        self.notes.mkdir()

    def __call__(self, workers=1, key="a", trouble="", at=-1):
        pieces, sha256 = cut(self.source, 9)
        key = {"source": sha256, "key": key}
        work = partial(copy, self.notes, trouble, at)
        with done_pieces("copy", work, pieces, self.state, key, workers, "pairs") as results:
            return b"".join(result.read_bytes() for result in results)

    def worked(self):
        """How often each piece was worked on since the last call."""
        notes = list(self.notes.iterdir())
        for note in notes:
            note.unlink()
        return Counter(int(note.name.split(".")[0]) for note in notes)


@pytest.fixture
def bench(tmp_path, source):
    yield Bench(tmp_path, source)
    assert not multiprocessing.active_children()


WHOLE = "".join(f"{line}\n" for line in LINES).upper().encode()
EVERY = dict.fromkeys(range(12), 1)


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_bytes(bench, workers):
    assert bench(workers) == WHOLE
    assert bench.worked() == EVERY
    assert not bench.state.exists()


def test_each_worker_is_a_process_that_makes_its_tools_once(bench):
    tool()
    bench(2, trouble="alone", at=0)  # else one could do all before the other has started
    notes = {tuple(note.name.split(".")[1:]) for note in bench.notes.iterdir()}
    assert all(worker == maker and made == "0" for worker, maker, made in notes)
    assert str(os.getpid()) not in {worker for worker, *_ in notes}
    assert len(notes) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_piece_is_raised_and_finished_pieces_are_kept(bench, workers):
    assert one_line(bench, workers, trouble="error", at=7) == "this piece is bad; mend it"
    assert bench.worked()[7] == 1
    done = {int(record.stem) for record in bench.state.glob("*/done/*.json")}
    assert len(done) >= 8 - workers  # of the pieces 0 to 7, all but those that were at work
    assert bench(workers) == WHOLE
    assert bench.worked() == dict.fromkeys(set(EVERY) - done, 1)
    assert not bench.state.exists()


def test_a_killed_worker_is_an_error_and_finished_pieces_are_kept(bench):
    message = one_line(bench, 2, trouble="killed", at=7)
    assert re.search("a worker process was killed .*00007.*memory", message)
    bench.worked()
    assert bench(2) == WHOLE
    assert 0 < len(bench.worked()) <= 7


SPOIL = {  # changes to what a failed run left: piece 2, its record, the source
    "cut": lambda piece, record, source: piece.write_bytes(piece.read_bytes()[:-9]),
    "changed": lambda piece, record, source: piece.write_bytes(b"?" + piece.read_bytes()[1:]),
    "gone": lambda piece, record, source: piece.unlink(),
    "no record": lambda piece, record, source: record.unlink(),
    "half a record": lambda piece, record, source: record.write_bytes(record.read_bytes()[:20]),
    "other input": lambda piece, record, source: source.write_bytes(b"L" + source.read_bytes()[1:]),
    "other settings": lambda piece, record, source: None,
}


@pytest.mark.parametrize("what", SPOIL)
def test_damaged_pieces_and_pieces_of_another_run_are_not_used(bench, what):
    one_line(bench, trouble="error", at=7)
    bench.worked()
    (piece,) = bench.state.glob("*/pieces/00002")
    (record,) = bench.state.glob("*/done/00002.json")
    SPOIL[what](piece, record, bench.source)
    assert bench(key="b" if what == "other settings" else "a") == WHOLE
    assert bench.worked() == {at: 1 for at in EVERY if "other" in what or at == 2 or at >= 7}
    assert not bench.state.exists()
