"""Pairs without those that are there already, in memory that does not grow with their number.

The 64-bit hashes of all pairs lie in a file, first those of earlier files, in their order. A part
of them, those in a range of values, is sorted at a time. Of equal ones the first stays. Two
different pairs of n share a hash with a probability of n^2 / 2^65: of a billion, 1 in 37.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import compress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ems.base.batches import batched
from ems.base.files import remove
from ems.base.progress import Progress
from ems.text.filters import Report, shown
from ems.text.seen import hashes_of
from ems.text.tsv import Pair, read_columns

PART = 1 << 23  # hashes that are sorted at once: 0.6 GB of memory
BLOCK = 1 << 20  # hashes read at once
REASON = "duplicates"
HASH = np.dtype("<u8")


def distinct(
    rows: Iterable[Pair], earlier: list[Path], folder: Path, report: Report, part: int = PART
) -> Iterator[Pair]:
    """Yield the pairs that are in none of the pair files `earlier`, each once; count the others.

    Needs a byte of memory for each pair besides. The pairs and 8 bytes for each lie in `folder`
    meanwhile, which is made for it: what a killed run has left there goes first.
    """
    with _scratch(folder):
        texts, hashes = folder / "rows.tsv", folder / "hashes"
        with open(hashes, "wb") as writer:
            before = sum(_write_hashes(path, writer) for path in earlier)
            _write_rows(rows, texts, writer)
        new = first_ones(hashes, before, part)
        at = 0
        for first, second, lines in read_columns(texts):
            stays = new[at : at + len(lines)].tolist()
            at += len(lines)
            batch = list(zip(first, second, map(int, lines), strict=True))
            gone = (row for row, stay in zip(batch, stays, strict=True) if not stay)
            count = len(stays) - sum(stays)
            report.kept -= count
            report.remove(REASON, count, map(shown, gone))
            yield from compress(batch, stays)


@contextmanager
def _scratch(folder: Path) -> Iterator[None]:
    remove(folder)
    folder.mkdir(parents=True)
    try:
        yield
    finally:
        remove(folder)


def _write_hashes(path: Path, writer: BinaryIO) -> int:
    """Append the hashes of the pairs of a file; return their number."""
    progress = Progress(f"read {path}", None, "pairs")
    for first, second, _ in read_columns(path):
        texts = list(map("\t".join, zip(first, second, strict=True)))
        writer.write(hashes_of(texts).tobytes())
        progress.add(len(texts))
    progress.close()
    return progress.done


def _write_rows(rows: Iterable[Pair], texts: Path, writer: BinaryIO) -> None:
    with open(texts, "w", encoding="utf-8", newline="\n") as text_writer:
        for batch in batched(rows, lambda row: len(row[0]) + len(row[1])):
            keys = [f"{first}\t{second}" for first, second, _ in batch]
            writer.write(hashes_of(keys).tobytes())
            text_writer.writelines(
                f"{key}\t{row[2]}\n" for key, row in zip(keys, batch, strict=True)
            )


def first_ones(hashes: Path, before: int, part: int = PART) -> np.ndarray:
    """Return which hashes of a file, from number `before` on, are not in it before, bool[n]."""
    total = hashes.stat().st_size // HASH.itemsize
    new = np.zeros(total - before, bool)
    parts = max(1, -(-total // part))
    progress = Progress("look for duplicates", total, "pairs")
    for number in range(parts):
        low, high = number * 2**64 // parts, (number + 1) * 2**64 // parts - 1
        values, places = _between(hashes, low, high)
        _, first = np.unique(values, return_index=True)  # the first of equal ones
        chosen = places[first]
        new[chosen[chosen >= before] - before] = True
        progress.add(len(values))
    progress.close()
    return new


def _between(hashes: Path, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes from `low` to `high`, in their order, and their places in the file."""
    values, places, start = [], [], 0
    with open(hashes, "rb") as reader:
        while block := reader.read(BLOCK * HASH.itemsize):
            own = np.frombuffer(block, HASH)
            at = np.flatnonzero((own >= np.uint64(low)) & (own <= np.uint64(high)))
            values.append(own[at])
            places.append(at + start)
            start += len(own)
    none = [np.zeros(0, HASH)], [np.zeros(0, np.int64)]
    return np.concatenate(values or none[0]), np.concatenate(places or none[1])
