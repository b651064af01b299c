"""Text input line by line: bad lines, copies, and the state folder of an output.

A bad line (not UTF-8, a NUL, longer than LONGEST) is an error or is skipped; a skipped line is
counted and keeps its row in the output. Standard input and compressed files are first copied to the
state folder of the output, so that a second run can compare them.
"""

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from ems.base import texts
from ems.base.errors import EmsError, mistake
from ems.base.files import atomic_path, claim_state, drop_state, standard_output, state_of
from ems.base.progress import log
from ems.base.texts import BOM, LONGEST, LONGEST_ROW, STREAM, bounded_lines, opened, packing

NAMED = 5  # line numbers in a message about bad lines
# A letter of Latin-1 next to one of ASCII
LATIN = re.compile(rb"[A-Za-z][\xc0-\xff](?![\x80-\xff])|(?<![\x80-\xff])[\xc0-\xff][A-Za-z]")
Row = tuple[str, ...] | None  # the sides of a line, None for a bad one
Faults = dict[str, list[int]]  # fault -> numbers of the lines that have it


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
        if len(line) > LONGEST_ROW:
            raise BadLine(f"longer than {LONGEST_ROW:,} bytes")
        columns = line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t")
        if len(columns) < 2:
            raise BadLine("one column, expected two or more")
        return text_of(columns[0]), text_of(columns[1])

    def row(self, line: bytes) -> Row:
        """Split a line into its sides; None for a bad line."""
        try:
            return self.sides_of(line)
        except BadLine:
            return None

    def rows(self, lines: Iterable[bytes], first: int = 1) -> tuple[list[Row], Faults]:
        """Split lines, numbered from `first`, into rows and bad ones (`EmsError` unless `skip`)."""
        rows: list[Row] = []
        bad: Faults = defaultdict(list)
        for number, line in enumerate(lines, start=first):
            try:
                rows.append(self.sides_of(line))
            except BadLine as fault:
                if not self.skip:
                    latin = not texts.is_utf8(line) and LATIN.search(line)
                    guess = " (Latin-1? iconv -f CP1252 -t UTF-8)" if latin else ""
                    words = {"text": self, "number": number, "fault": f"{fault}{guess}"}
                    raise mistake("bad line", **words) from None
                rows.append(None)
                bad[str(fault)].append(number)
        return rows, bad

    def check(self) -> None:
        """Raise `EmsError` for a file without lines, before long work on another one."""
        if self.path != STREAM:
            with opened(self.path) as reader:
                if not reader.read(1):
                    raise EmsError(f"{self}: expected lines, found none")

    def texts(self, report: bool = True) -> dict[int, str]:
        """Return the usable lines of a text of one language by their numbers, from 1."""
        with opened(self.path) as reader:
            rows, bad = self.rows(bounded_lines(reader))
        self.report([bad] if report else [])
        return {number: row[0] for number, row in enumerate(rows, start=1) if row}

    def report(self, parts: list[Faults]) -> None:
        """Log the number of skipped lines per fault, and the first line numbers."""
        for fault in dict.fromkeys(fault for part in parts for fault in part):
            lines = [line for part in parts for line in part.get(fault, ())]
            some = ", ".join(f"{line:,}" for line in lines[:NAMED])
            more = ", ..." if len(lines) > NAMED else ""
            skipped = f"{len(lines)} bad lines skipped ({fault})"
            log.warning("%s: %s: line %s%s", self, skipped, some, more)


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
def plain(source: Path, copy: Path) -> Iterator[Path]:
    """Yield the source itself, or a copy of standard input or of a file in another form."""
    if source != STREAM and not packing(source):
        yield source
        return
    with opened(source) as reader, atomic_path(copy) as temporary, open(temporary, "wb") as writer:
        writer.writelines(bounded_lines(reader))
    yield copy
    copy.unlink(missing_ok=True)


@contextmanager
def scratch(out: Path) -> Iterator[Path]:
    """Yield the state folder of an output file, or a temporary folder for standard output. It is
    deleted at the end, unless there was an error and a piece of a file is done.
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
    """Return the byte offsets of the lines of a text and of its end, int64[lines + 1]. Raises
    `EmsError` for another number of lines.
    """
    with open(path, "rb") as reader:
        start = len(BOM) if reader.read(len(BOM)) == BOM else 0
        reader.seek(start)
        starts = np.cumsum(np.fromiter(chain([start], map(len, reader)), np.int64))
    if len(starts) != lines + 1:
        raise mistake("other number of lines", path=path, lines=lines, found=len(starts) - 1)
    return starts


def lines_at(path: Path, starts: np.ndarray, rows: np.ndarray) -> Iterator[str]:
    """Yield the lines at `rows`, from 0, without their ends; `starts` is made by `starts_of`."""
    with open(path, "rb") as reader:
        for start, end in zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True):
            reader.seek(start)
            yield reader.read(end - start).rstrip(b"\r\n").decode("utf-8", "replace")
