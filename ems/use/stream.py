"""Text input line by line: bad lines, standard input, .gz, and the state folder of an output.

A bad line (not UTF-8, a NUL, longer than LONGEST) is an error or is skipped; a skipped line is
counted and keeps its row in the output. Standard input and .gz are first copied to the state folder
of the output, so that a second run can compare them.
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
from ems.base.files import (
    atomic_path,
    check_readable,
    claim_state,
    drop_state,
    standard_output,
    state_of,
)

LONGEST = 1_000_000  # maximum bytes of a line
STREAM = Path("-")


class BadLine(Exception):
    """A line that cannot be used, with the reason as message."""


@dataclass(frozen=True)
class TextInput:
    """A file of lines, or a TSV of pairs if it has two languages; `skip` skips bad lines."""

    path: Path
    languages: tuple[str | None, ...] = (None,)
    skip: bool = False

    def __str__(self) -> str:
        return "standard input" if self.path == STREAM else str(self.path)

    @property
    def unit(self) -> str:
        return "lines" if len(self.languages) == 1 else "pairs"

    def sides_of(self, line: bytes) -> tuple[str, ...]:
        """Split a line into its sides: the line itself, or two columns. Raises `BadLine`."""
        if len(self.languages) == 1:
            return (text_of(line),)
        columns = line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t")
        if len(columns) < 2:
            raise BadLine("one column, expected two or more")
        return text_of(columns[0]), text_of(columns[1])


def text_of(line: bytes) -> str:
    """Decode a line without its end. Raises `BadLine`."""
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
    """Open a file, a .gz, or standard input (`-`) as bytes."""
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
    """Yield a plain file: the source itself, or a copy of standard input or of a .gz."""
    if source != STREAM and source.suffix != ".gz":
        yield source
        return
    with opened(source) as reader, atomic_path(copy) as temporary, open(temporary, "wb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
    yield copy
    copy.unlink(missing_ok=True)


@contextmanager
def scratch(out: Path) -> Iterator[Path]:
    """Yield the state folder of an output file, or a temporary folder for standard output.

    It is deleted at the end, unless there was an error and a piece of a file is done.
    """
    if out == STREAM:
        with tempfile.TemporaryDirectory(prefix="ems-") as folder:
            yield Path(folder)
        return
    state = state_of(out)
    claim_state(state)
    try:
        yield state
    except BaseException:
        if not any(state.glob("**/done/*.json")):
            drop_state(state)
        raise
    drop_state(state)


def write(out: Path, parts: Iterable[bytes]) -> None:
    """Write bytes to standard output, or to a file, whole or not at all."""
    if out == STREAM:
        with standard_output() as stdout:
            stdout.buffer.writelines(parts)
        return
    with atomic_path(out) as temporary, open(temporary, "wb") as writer:
        writer.writelines(parts)


def starts_of(path: Path, lines: int) -> np.ndarray:
    """Return the byte offsets of the lines of a text and of its end, int64[lines + 1]."""
    starts = np.zeros(lines + 1, np.int64)
    with open(path, "rb") as reader:
        for number, line in enumerate(reader, start=1):
            starts[number] = starts[number - 1] + len(line)
    return starts


def lines_at(path: Path, starts: np.ndarray, rows: np.ndarray) -> Iterator[str]:
    """Yield the lines at `rows`, from 0, without their ends; `starts` is made by `starts_of`."""
    with open(path, "rb") as reader:
        for start, end in zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True):
            reader.seek(start)
            yield reader.read(end - start).rstrip(b"\r\n").decode("utf-8", "replace")
