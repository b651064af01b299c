"""The pair files between the text stages: `first<TAB>second<TAB>line`, one pair a line, UTF-8, LF.

`line` is the line of the corpus that the pair comes from, counted from 1, so that what a token was
made of can be looked up.
"""

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ems.batches import batched
from ems.errors import EmsError

Pair = tuple[str, str, int]
Columns = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]  # first, second, line: one batch


def codes_of(path: Path) -> tuple[str, str]:
    """Return the languages of a pair file. Raises `EmsError` when its name does not say them."""
    first, _, second = path.stem.partition("-")
    if not (first and second) or "-" in second:
        raise EmsError(f"{path}: expected the name of a pair file like de-en.tsv; rename it")
    return first, second


def read_tsv(path: Path) -> Iterator[Pair]:
    """Stream the pairs of a file. Raises `EmsError` with the line number of a malformed line."""
    for firsts, seconds, lines in read_columns(path):
        yield from zip(firsts, seconds, map(int, lines), strict=True)


def read_columns(
    path: Path, start: int = 0, count: int | None = None, number: int = 1
) -> Iterator[Columns]:
    """The pairs of a file in batches, column by column; lines of origin as they are written.

    Reads `count` lines (None: all) from the byte `start`, where line `number` begins. Raises
    `EmsError` with the number of a malformed line.
    """
    with open(path, "rb") as raw:
        raw.seek(start)
        reader = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        for lines in batched(islice(reader, count), len):
            yield _columns(path, lines, number)
            number += len(lines)


def _columns(path: Path, lines: list[str], number: int) -> Columns:
    rows = [line.removesuffix("\n").split("\t") for line in lines]
    for at, row in enumerate(rows, start=number):
        if len(row) != 3 or not row[2].isdecimal():
            raise EmsError(
                f"{path}: line {at:,} has {len(row)} columns, expected 3 and a "
                "line number in the last; delete the file and run again"
            )
    firsts, seconds, origins = zip(*rows, strict=True)
    return firsts, seconds, origins


def count_lines(path: Path) -> int:
    """Number of lines, read in blocks."""
    with open(path, "rb") as reader:
        return sum(block.count(b"\n") for block in iter(lambda: reader.read(1 << 20), b""))
