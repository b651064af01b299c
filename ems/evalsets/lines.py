"""Lines and columns of a benchmark's text files, streamed, each mistake told by file and line.

Only LF ends a line; a CR before it is no part of the text. Nothing is quoted: a quotation mark is a
character like any other (XNLI, PAWS-X and BUCC hold single ones).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ems.errors import EmsError
from ems.files import read_lines

Columns = Iterator[tuple[int, list[str]]]
MISSING = "no such file; fetch the benchmark again, or check the `path` of its evalsets entry"


def opened(path: Path) -> BinaryIO:
    """A file of a benchmark to read. Raises `EmsError` when it is not there."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise EmsError(f"{path}: {MISSING}") from None


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, text) of each line. Raises `EmsError` for a missing file or one not in UTF-8."""
    with opened(path) as reader:
        for number, line in enumerate(reader, start=1):
            try:
                yield number, line.decode("utf-8").removesuffix("\n").rstrip("\r")
            except UnicodeDecodeError as error:
                raise EmsError(f"{path}: line {number} is not UTF-8 ({error.reason})") from None


def rows(path: Path, columns: int) -> Columns:
    """(number, columns) of each line of a tab-separated file that has so many of them."""
    for number, line in numbered_lines(path):
        found = line.split("\t")
        if len(found) != columns:
            raise EmsError(f"{path}: line {number} has {len(found)} columns, expected {columns}")
        yield number, found


def named_rows(path: Path, names: tuple[str, ...]) -> Columns:
    """(number, the columns `names`) of each line below the header of a tab-separated file."""
    lines = ((number, line.split("\t")) for number, line in numbered_lines(path))
    _, header = next(lines, (0, []))
    missing = [name for name in names if name not in header]
    if missing:
        raise EmsError(
            f"{path}: expected the columns {', '.join(names)}, found no {missing[0]} in its first "
            "line"
        )
    places = [header.index(name) for name in names]
    for number, found in lines:
        if len(found) != len(header):
            raise EmsError(
                f"{path}: line {number} has {len(found)} columns, expected {len(header)}"
            )
        yield number, [found[place] for place in places]


def some(found: int, path: Path, what: str) -> None:
    """Raise `EmsError` when a file held nothing of what it should."""
    if not found:
        raise EmsError(f"{path}: expected {what}, found none; fetch the benchmark again")


def read_sentences(path: Path) -> list[str]:
    """The lines of one benchmark file; only LF ends a line. Raises `EmsError` for a bad file."""
    lines = read_lines(path)
    empty = next((at for at, line in enumerate(lines, start=1) if not line.strip()), None)
    empty = empty if lines else 1
    if empty is not None:
        raise EmsError(f"{path}: line {empty} is empty; expected one sentence on every line")
    return [line.rstrip("\r") for line in lines]
