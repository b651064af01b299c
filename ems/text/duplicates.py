"""Remove duplicate pairs, in twelve bytes of memory per pair or on disk.

A Python set takes 65 bytes or more per text. Here 64-bit hashes lie in one array, or in a file if
there are too many or if the pairs of earlier corpora count. Two different texts among n share a
hash with a probability of n^2 / 2^65: 1 in 2,000 for 143 million texts, 1 in 37 for a billion.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ems.base.files import remove
from ems.base.progress import Progress
from ems.text.filters import Batches, CleanReport, RowBatch
from ems.text.keys import HASH, folded_keys, hashes_of
from ems.text.tsv import Pair, read_columns

IN_MEMORY = 100_000_000  # pairs whose hashes fit in memory (1.2 GB); on disk beyond
SORTED = 1 << 23  # hashes sorted at once: 0.6 GB of memory
READ = 1 << 20  # hashes read at once
REASON, NEAR = "duplicates", "near_duplicates"  # texts are equal, or their letters
NUMBERS = re.compile(r"\d+")


def without_duplicates(
    batches: Batches,
    report: CleanReport,
    scratch: Path,
    earlier: Sequence[Path] | None = None,
    reason: str = REASON,
) -> Iterator[RowBatch]:
    """Keep the first of equal pairs, and remove pairs that are in one of the pair files `earlier`.
    With `earlier`, or if the hashes do not fit in memory, the folder `scratch` holds them.
    """
    if earlier is not None or report.left > IN_MEMORY:
        return distinct(batches, earlier or (), scratch, report, reason=reason)
    seen = Seen(report.left)
    return (report.keep(batch, reason, seen.add(_texts(batch, reason))) for batch in batches)


def _texts(batch: Iterable[Pair], reason: str) -> list[str]:
    """Return the text of each pair, or its letters, which are compared."""
    if reason != NEAR:
        return ["\t".join(row[:-1]) for row in batch]
    sides = zip(*(row[:-1] for row in batch), strict=True)
    keys = [[NUMBERS.sub("", key) for key in folded_keys(list(side))] for side in sides]
    return list(map("\t".join, zip(*keys, strict=True)))


class Seen:
    """A set of at most `capacity` texts (0: it grows), a hash table with open addressing."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.count, self.grows = capacity, 0, not capacity
        self.table = np.zeros(max(3 * capacity // 2, 16), np.uint64)  # 0: empty

    def add(self, texts: list[str]) -> list[bool]:
        """Add texts to the set; return for each whether it is new, in this call and all before."""
        hashes, first = np.unique(hashes_of(texts), return_index=True)
        needed = self.count + len(hashes)
        if self.grows and 3 * needed > 2 * len(self.table):
            held, self.table = self.table[self.table > 0], np.zeros(3 * needed, np.uint64)
            self.count = 0
            self._add(held)
        if needed > len(self.table):
            raise ValueError(f"{needed:,} texts in a set for {self.capacity:,}")
        absent = self._add(hashes)
        new = np.zeros(len(texts), bool)
        new[first[absent]] = True
        return new.tolist()

    def _add(self, hashes: np.ndarray) -> np.ndarray:
        """Add distinct hashes; return which of them are new, bool[n]."""
        size = np.uint64(len(self.table))
        absent = np.zeros(len(hashes), bool)
        places, open_ = hashes % size, np.arange(len(hashes))
        while len(open_):
            there = self.table[places[open_]]
            free = open_[there == 0]
            self.table[places[free]] = hashes[free]  # of two for one place, the last stays
            absent[free[self.table[places[free]] == hashes[free]]] = True
            open_ = open_[(there != hashes[open_]) & ~absent[open_]]
            places[open_] = (places[open_] + np.uint64(1)) % size
        self.count += int(absent.sum())
        return absent


# --- on disk


def distinct(
    batches: Batches,
    earlier: Sequence[Path],
    folder: Path,
    report: CleanReport,
    part: int = SORTED,
    reason: str = REASON,
) -> Iterator[RowBatch]:
    """Yield each distinct pair that is in none of the pair files `earlier`; count the others. A
    file holds the hashes of all pairs, earlier files first. About `part` of them, a range of
    values, are sorted at a time, and the first of equal ones stays. A pair takes its text and 8
    bytes in `folder`, which is cleared first and removed at the end, and one byte of memory.
    """
    remove(folder)
    folder.mkdir(parents=True)
    try:
        texts, hashes = folder / "rows.tsv", folder / "hashes"
        with open(hashes, "wb") as writer, open(texts, "w", encoding="utf-8") as text_writer:
            before = 0
            for path in earlier:
                progress = Progress(f"read {path}", None, "pairs")
                for columns in progress.over(read_columns(path), lambda columns: len(columns[0])):
                    writer.write(hashes_of(_texts(zip(*columns, strict=True), reason)).tobytes())
                before += progress.done
            for batch in batches:
                writer.write(hashes_of(_texts(batch, reason)).tobytes())
                text_writer.writelines("\t".join(map(str, row)) + "\n" for row in batch)
        new, start = first_occurrences(hashes, before, part), 0
        for first, second, lines in read_columns(texts):
            batch = list(zip(first, second, map(int, lines), strict=True))
            yield report.keep(batch, reason, new[start : start + len(batch)].tolist())
            start += len(batch)
    finally:
        remove(folder)


def first_occurrences(hashes: Path, before: int, part: int = SORTED) -> np.ndarray:
    """Return which hashes of a file are first occurrences, bool[n], without the first `before`."""
    total = hashes.stat().st_size // HASH.itemsize
    new = np.zeros(total - before, bool)
    parts = max(1, -(-total // part))
    progress = Progress("look for duplicates", total, "pairs")
    for number in range(parts):
        low, high = number * 2**64 // parts, (number + 1) * 2**64 // parts - 1
        values, places = [np.zeros(0, HASH)], [np.zeros(0, np.int64)]
        for start in range(0, total, READ):
            block = np.fromfile(hashes, HASH, READ, offset=start * HASH.itemsize)
            within = np.flatnonzero((block >= np.uint64(low)) & (block <= np.uint64(high)))
            values.append(block[within])
            places.append(start + within)
        found = np.concatenate(values)
        _, first = np.unique(found, return_index=True)  # index of the first occurrence
        chosen = np.concatenate(places)[first]
        new[chosen[chosen >= before] - before] = True
        progress.add(len(found))
    progress.close()
    return new
