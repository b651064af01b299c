"""Long texts through a model: line by line in order, in bounded memory, and again after a kill.

A text is worked on in pieces of PIECE_LINES, whatever its length. Of a file that is written, the
finished pieces are kept in a hidden folder beside it (`ems.text.pieces`), so that a killed run goes
on with the next piece and gives the same bytes. Standard input and .gz are copied there first: the
number of lines is then known, and a second run sees whether they are the same. What goes to
standard output is written piece by piece and is not kept.

A bad line (not UTF-8, a NUL, longer than LONGEST) is an error, or is skipped: it is counted and
named by its number, and what is written still has its place.
"""

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from ems.base.batches import batched
from ems.base.errors import EmsError
from ems.base.files import (
    atomic_path,
    check_readable,
    check_unchanged,
    read_json,
    standard_output,
    state_of,
    write_json,
)
from ems.base.progress import Progress, log
from ems.base.schema import Record, Some, Text
from ems.text.pieces import MAX_BYTES, Advance, Piece, cut, done_pieces

PIECE_LINES = 1 << 15  # as many as a benchmark encodes at once, so that vectors are the same
LONGEST = 1_000_000  # bytes of a line
NAMED = 5  # bad lines whose numbers a message names
STREAM = Path("-")
ROWS, FAULTS = "rows", "faults.json"  # of a piece


class Fault(Record):
    """A bad line by its number, and what is wrong with it."""

    line: Some
    fault: Text


class BadLine(Exception):
    """A line that cannot be used; the message says why."""


Parse = Callable[[bytes], Any]  # a line with its end -> what is made of it; raises `BadLine`
Make = Callable[[list[Any], Any], bytes]  # parsed lines (None: bad), progress -> what is written


def text_of(line: bytes) -> str:
    """Return a line as text, without its end. Raises `BadLine`."""
    line = line.removesuffix(b"\n")
    if len(line) > LONGEST:
        raise BadLine(f"longer than {LONGEST:,} bytes")
    if b"\0" in line:
        raise BadLine("a NUL in it")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None


def pair_of(line: bytes) -> tuple[str, str]:
    """Return the first two columns of a row. Raises `BadLine`."""
    columns = line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t")
    if len(columns) < 2:
        raise BadLine("one column, expected two or more")
    return text_of(columns[0]), text_of(columns[1])


def pair_row(line: bytes) -> bytes | None:
    """Return a row if it is a pair."""
    try:
        pair_of(line)
    except BadLine:
        return None
    return line


@dataclass(frozen=True)
class Transform:
    """What is made of each line of a text, and what that depends on (`key`, as JSON).

    With `skip` a bad line is None for `make`; otherwise it is an error.
    """

    what: str
    parse: Parse
    make: Make
    key: Any
    skip: bool = False
    unit: str = "lines"

    def block(
        self, lines: list[bytes], first: int, name: str, progress: Any
    ) -> tuple[bytes, list[Fault]]:
        """Return what is written for lines, the first of which has the number `first`, and the bad
        ones of them. Raises `EmsError` for a bad one unless they are skipped.
        """
        items, bad = [], []
        for number, line in enumerate(lines, start=first):
            try:
                items.append(self.parse(line))
            except BadLine as fault:
                if not self.skip:
                    raise EmsError(
                        f"{name}: line {number:,}: {fault}; mend it, or skip such lines with "
                        "--bad skip"
                    ) from None
                items.append(None)
                bad.append(Fault(line=number, fault=str(fault)))
        return self.make(items, progress), bad

    def write_piece(self, name: str, piece: Piece, out: Path, advance: Advance) -> None:
        """Write the folder of a piece: rows, and its bad lines."""
        with open(piece.source, "rb") as reader:
            reader.seek(piece.start)
            lines = io.BytesIO(reader.read(piece.end - piece.start)).readlines()  # LF only
        counted = _Counted(advance, piece.lines)
        rows, bad = self.block(lines, piece.first, name, counted)
        counted.add(piece.lines)
        out.mkdir()
        (out / ROWS).write_bytes(rows)
        write_json(out / FAULTS, [each.model_dump() for each in bad])


class _Counted:
    """Progress within a piece that never counts more than its lines."""

    def __init__(self, advance: Advance, lines: int) -> None:
        self.advance, self.left = advance, lines

    def add(self, count: int) -> None:
        self.advance(min(count, self.left))
        self.left -= min(count, self.left)


def to_stdout(transform: Transform, source: Path) -> None:
    """Write what is made of a text to standard output, piece by piece."""
    progress = Progress(transform.what, None, transform.unit)
    first, bad = 1, []
    with opened(source) as reader:
        for lines in batched(reader, len, PIECE_LINES, MAX_BYTES):  # as `cut` does
            rows, more = transform.block(lines, first, _name(source), None)
            bad += more
            write(STREAM, [rows])
            first += len(lines)
            progress.add(len(lines))
    progress.close()
    report(bad, _name(source))


def to_file(
    transform: Transform, source: Path, out: Path, head: Callable[[int], bytes] = lambda n: b""
) -> int:
    """Write what is made of a text to a file, after `head(lines)`; return the lines.

    What an interrupted run has done is used. Raises `EmsError` for a bad line, a full disk, and a
    source that cannot be read.
    """
    with (
        scratch(out) as state,
        plain(source, state / "source") as text,
        rows_of(transform, text, state, source) as rows,
        atomic_path(out) as temporary,
        open(temporary, "wb") as writer,
    ):
        writer.write(head(rows.lines))
        for path in rows.files:
            with open(path, "rb") as reader:
                shutil.copyfileobj(reader, writer, 1 << 20)
    return rows.lines


@dataclass(frozen=True)
class Rows:
    """The rows of all pieces of a text, in files, and how many lines it has."""

    files: list[Path]
    lines: int


@contextmanager
def rows_of(transform: Transform, text: Path, state: Path, source: Path) -> Iterator[Rows]:
    """Make the rows of a plain text; they lie in `state` for the block, and longer if it fails."""
    pieces, sha256 = cut(text, PIECE_LINES, MAX_BYTES)
    key = [transform.key, sha256, transform.skip, PIECE_LINES, torch.get_num_threads()]
    work = partial(transform.write_piece, _name(source))
    folder, unit = state / "rows", transform.unit
    with done_pieces(transform.what, work, pieces, folder, key, 1, unit) as results:
        check_unchanged(text, pieces[-1].end)
        report(
            [each for path in results for each in read_json(path / FAULTS, list[Fault])],
            _name(source),
        )
        yield Rows([path / ROWS for path in results], sum(piece.lines for piece in pieces))


def report(bad: list[Fault], name: str) -> None:
    """Log how many lines were skipped, why, and the numbers of the first."""
    for fault, count in Counter(each.fault for each in bad).items():
        numbers = [f"{each.line:,}" for each in bad if each.fault == fault]
        more = ", ..." if count > NAMED else ""
        shown = ", ".join(numbers[:NAMED])
        log.warning("%s: %s bad lines skipped (%s): line %s%s", name, count, fault, shown, more)


@contextmanager
def plain(source: Path, copy: Path) -> Iterator[Path]:
    """Yield a file with the lines of a source: itself, or a copy of standard input or of a .gz."""
    if source != STREAM and source.suffix != ".gz":
        yield source
        return
    with opened(source) as reader, atomic_path(copy) as temporary, open(temporary, "wb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
    yield copy
    copy.unlink(missing_ok=True)


@contextmanager
def opened(source: Path) -> Iterator[BinaryIO]:
    """Open a file, a .gz, or standard input for `-`, as bytes."""
    if source == STREAM:
        yield sys.stdin.buffer
        return
    check_readable(source)
    try:
        with gzip.open(source) if source.suffix == ".gz" else open(source, "rb") as reader:
            yield reader
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise EmsError(f"{source}: not a whole gzip file ({error}); copy it again") from None


@contextmanager
def scratch(out: Path) -> Iterator[Path]:
    """Yield the state folder of a file, or for standard output a new one. It goes at the end, but
    after an error that of a file stays if a piece is done.
    """
    if out == STREAM:
        with tempfile.TemporaryDirectory(prefix="ems-") as folder:
            yield Path(folder)
        return
    state = state_of(out)
    try:
        yield state
    except BaseException:
        if not any(state.glob("**/done/*.json")):
            shutil.rmtree(state, ignore_errors=True)
        raise
    shutil.rmtree(state, ignore_errors=True)


def write(out: Path, parts: Iterable[bytes]) -> None:
    """Write bytes to a file, whole or not at all, or to standard output."""
    if out == STREAM:
        with standard_output() as stdout:
            stdout.buffer.writelines(parts)
        return
    with atomic_path(out) as temporary, open(temporary, "wb") as writer:
        writer.writelines(parts)


def starts_of(path: Path, lines: int) -> np.ndarray:
    """Return the bytes at which the lines of a text begin, and its end, int64[lines + 1]."""
    starts = np.zeros(lines + 1, np.int64)
    with open(path, "rb") as reader:
        for number, line in enumerate(reader, start=1):
            starts[number] = starts[number - 1] + len(line)
    return starts


def lines_at(path: Path, starts: np.ndarray, rows: np.ndarray) -> Iterator[str]:
    """Yield some rows, from 0, of a text whose lines have these `starts_of`, without their ends."""
    with open(path, "rb") as reader:
        for start, end in zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True):
            reader.seek(start)
            yield reader.read(end - start).rstrip(b"\r\n").decode("utf-8", "replace")


def _name(source: Path) -> str:
    return "standard input" if source == STREAM else str(source)
