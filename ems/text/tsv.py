"""The pair files between the text stages: `first<TAB>second`, one pair a line, UTF-8, LF."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ems.errors import EmsError

BATCH = 2000  # pairs handled at once: small in memory, large enough to amortise a call


def read_tsv(path: Path) -> Iterator[tuple[str, str]]:
    """Stream the pairs of a file. Raises `EmsError` with the line number of a malformed line."""
    with open(path, encoding="utf-8", newline="\n") as reader:
        for number, line in enumerate(reader, start=1):
            sides = line.removesuffix("\n").split("\t")
            if len(sides) != 2:
                raise EmsError(
                    f"{path}: line {number:,} has {len(sides)} columns, expected 2; "
                    "delete the file and run again"
                )
            yield sides[0], sides[1]


def count_lines(path: Path) -> int:
    """Number of lines, read in blocks."""
    with open(path, "rb") as reader:
        return sum(block.count(b"\n") for block in iter(lambda: reader.read(1 << 20), b""))


def batched(items: Iterable[tuple[str, str]], size: int = BATCH) -> Iterator[list[tuple[str, str]]]:
    """Lists of up to `size` items."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
