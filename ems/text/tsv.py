"""The pair files between the text stages: `first<TAB>second<TAB>line`, one pair a line, UTF-8, LF.

`line` is the line of the corpus that the pair comes from, counted from 1, so that what a token was
made of can be looked up.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ems.errors import EmsError

BATCH = 2000  # pairs handled at once: small in memory, large enough to amortise a call


Pair = tuple[str, str, int]


def read_tsv(path: Path) -> Iterator[Pair]:
    """Stream the pairs of a file. Raises `EmsError` with the line number of a malformed line."""
    with open(path, encoding="utf-8", newline="\n") as reader:
        for number, line in enumerate(reader, start=1):
            columns = line.removesuffix("\n").split("\t")
            if len(columns) != 3 or not columns[2].isdecimal():
                raise EmsError(
                    f"{path}: line {number:,} has {len(columns)} columns, expected 3 and a "
                    "line number in the last; delete the file and run again"
                )
            yield columns[0], columns[1], int(columns[2])


def count_lines(path: Path) -> int:
    """Number of lines, read in blocks."""
    with open(path, "rb") as reader:
        return sum(block.count(b"\n") for block in iter(lambda: reader.read(1 << 20), b""))


def batched(items: Iterable[Pair], size: int = BATCH) -> Iterator[list[Pair]]:
    """Lists of up to `size` items."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
