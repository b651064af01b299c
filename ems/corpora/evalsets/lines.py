"""Lines and columns of a benchmark's text files, streamed; errors name the file and the line.

Only LF ends a line; a CR before it is no part of the text. Nothing is quoted: a quotation mark is a
character like any other (XNLI, PAWS-X and BUCC hold single ones).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ems.base.errors import EmsError
from ems.base.files import read_lines

Columns = Iterator[tuple[int, list[str]]]
MISSING = "no such file; fetch the benchmark again, or check the `path` of its evalsets entry"


def opened(path: Path) -> BinaryIO:
    """Open a file of a benchmark. Raises `EmsError` if it is absent."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise EmsError(f"{path}: {MISSING}") from None


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of each line. Raises `EmsError` for a missing file or one not UTF-8."""
    with opened(path) as reader:
        for number, line in enumerate(reader, start=1):
            try:
                yield number, line.decode("utf-8").removesuffix("\n").rstrip("\r")
            except UnicodeDecodeError as error:
                raise EmsError(f"{path}: line {number} is not UTF-8 ({error.reason})") from None


def rows(path: Path, columns: int) -> Columns:
    """Yield (number, columns) of each line of a tab-separated file with so many columns."""
    for number, line in numbered_lines(path):
        yield number, _split(path, number, line, columns)


def _split(path: Path, number: int, line: str, expected: int) -> list[str]:
    columns = line.split("\t")
    if len(columns) != expected:
        raise EmsError(f"{path}: line {number} has {len(columns)} columns, expected {expected}")
    return columns


def named_rows(path: Path, names: tuple[str, ...]) -> Columns:
    """Yield (number, the columns `names`) of each line below a tab-separated file's header."""
    lines = numbered_lines(path)
    header = next(lines, (0, ""))[1].split("\t")
    missing = [name for name in names if name not in header]
    if missing:
        raise EmsError(
            f"{path}: expected the columns {', '.join(names)}, found no {missing[0]} in its first "
            "line"
        )
    places = [header.index(name) for name in names]
    for number, line in lines:
        columns = _split(path, number, line, len(header))
        yield number, [columns[place] for place in places]


def some(count: int, path: Path, what: str) -> None:
    """Raise `EmsError` if a file held none of what it should."""
    if not count:
        raise EmsError(f"{path}: expected {what}, found none; fetch the benchmark again")


def read_sentences(path: Path) -> list[str]:
    """Return the lines of a benchmark's file. Raises `EmsError` for a bad file or an empty line."""
    lines = read_lines(path)
    for number, line in enumerate(lines or [""], start=1):
        if not line.strip():
            raise EmsError(f"{path}: line {number} is empty; expected one sentence on every line")
    return [line.rstrip("\r") for line in lines]
