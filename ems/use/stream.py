"""Texts line by line: what is a bad line, standard input and .gz, and a state beside an output.

A bad line (not UTF-8, a NUL, longer than LONGEST) is an error, or is skipped: it is counted, and
what is written still has its place. Standard input and .gz are copied beside the output first: a
second run sees whether they are the same.
"""

import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import atomic_path, check_readable, standard_output, state_of

LONGEST = 1_000_000  # bytes of a line
STREAM = Path("-")


class BadLine(Exception):
    """A line that cannot be used; the message says why."""


@dataclass(frozen=True)
class TextInput:
    """A file of lines, or with two languages a TSV of pairs; `skip` skips its bad lines."""

    path: Path
    languages: tuple[str | None, ...] = (None,)
    skip: bool = False

    def __str__(self) -> str:
        return "standard input" if self.path == STREAM else str(self.path)

    @property
    def unit(self) -> str:
        return "lines" if len(self.languages) == 1 else "pairs"

    def sides_of(self, line: bytes) -> tuple[str, ...]:
        """Return a line without its end, or the first two columns of a row. Raises `BadLine`."""
        if len(self.languages) == 1:
            return (text_of(line),)
        columns = line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t")
        if len(columns) < 2:
            raise BadLine("one column, expected two or more")
        return text_of(columns[0]), text_of(columns[1])


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
