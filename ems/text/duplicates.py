"""Pairs without those that are there already: in twelve bytes of memory each, or on disk.

A Python set takes 65 bytes or more for each text. Here 64-bit hashes lie in one array, or in a file
where there are too many, or where pairs of earlier corpora count. Two different texts of n share a
hash with a probability of n^2 / 2^65: of 143 million, 1 in 2,000; of a billion, 1 in 37.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from ems.base.files import remove
from ems.base.progress import Progress
from ems.text.filters import CleanReport, RowBatch
from ems.text.tsv import Pair, read_columns

IN_MEMORY = 100_000_000  # pairs whose hashes are held in memory, 1.2 GB; more lie on disk
SORTED = 1 << 23  # hashes that are sorted at once: 0.6 GB of memory
READ = 1 << 20  # hashes read at once
REASON = "duplicates"
HASH = np.dtype("<u8")


def without_duplicates(
    batches: Iterable[RowBatch],
    report: CleanReport,
    scratch: Path,
    earlier: Sequence[Path] | None = None,
) -> Iterator[RowBatch]:
    """Remove the pairs that are in one of the pair files `earlier` (None: do not look), and of
    equal ones all but the first. The folder `scratch` holds what is on disk meanwhile.
    """
    if earlier is not None or report.left > IN_MEMORY:
        return distinct(batches, earlier or (), scratch, report)
    seen = Seen(report.left)
    return (report.keep(batch, REASON, seen.add(_texts(batch))) for batch in batches)


def _texts(batch: Iterable[Pair]) -> list[str]:
    return ["\t".join(row[:-1]) for row in batch]


def hashes_of(texts: list[str]) -> np.ndarray:
    """Return a hash of each text, uint64[n], none of them 0."""
    digests = b"".join([blake2b(text.encode(), digest_size=8).digest() for text in texts])
    return np.maximum(np.frombuffer(digests, HASH), 1)


class Seen:
    """A set of at most `most` texts: an array with open addressing, two thirds full at most."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        self.table = np.zeros(max(3 * most // 2, 16), np.uint64)  # 0: nothing there

    def add(self, texts: list[str]) -> list[bool]:
        """Return whether each text is new, here and in every call before; add it to the set."""
        hashes, first = np.unique(hashes_of(texts), return_index=True)
        size = np.uint64(len(self.table))
        if self.count + len(hashes) > len(self.table):
            raise ValueError(f"{self.count + len(hashes):,} texts in a set for {self.most:,}")
        absent = np.zeros(len(hashes), bool)
        places, open_ = hashes % size, np.arange(len(hashes))
        while len(open_):
            there = self.table[places[open_]]
            free = open_[there == 0]
            self.table[places[free]] = hashes[free]  # of two that want one place the last gets it
            absent[free[self.table[places[free]] == hashes[free]]] = True
            open_ = open_[(there != hashes[open_]) & ~absent[open_]]
            places[open_] = (places[open_] + np.uint64(1)) % size
        self.count += int(absent.sum())
        new = np.zeros(len(texts), bool)
        new[first[absent]] = True
        return new.tolist()


# --- on disk


def distinct(
    batches: Iterable[RowBatch],
    earlier: Sequence[Path],
    folder: Path,
    report: CleanReport,
    part: int = SORTED,
) -> Iterator[RowBatch]:
    """Yield the pairs that are in none of the pair files `earlier`, each once; count the others.

    The hashes of all pairs lie in a file, those of earlier files first. A part of them, a range of
    values, is sorted at a time, and of equal ones the first stays. `folder` holds the pairs and 8
    bytes for each meanwhile, and memory one byte. What a killed run has left there goes first.
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
                    writer.write(hashes_of(_texts(zip(*columns, strict=True))).tobytes())
                before += progress.done
            for batch in batches:
                keys = _texts(batch)
                writer.write(hashes_of(keys).tobytes())
                rows = zip(keys, batch, strict=True)
                text_writer.writelines(f"{key}\t{row[2]}\n" for key, row in rows)
        new, start = first_ones(hashes, before, part), 0
        for first, second, lines in read_columns(texts):
            batch = list(zip(first, second, map(int, lines), strict=True))
            yield report.keep(batch, REASON, new[start : start + len(batch)].tolist())
            start += len(batch)
    finally:
        remove(folder)


def first_ones(hashes: Path, before: int, part: int = SORTED) -> np.ndarray:
    """Return which hashes of a file, from number `before` on, are not in it before, bool[n]."""
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
        _, first = np.unique(found, return_index=True)  # the first of equal ones
        chosen = np.concatenate(places)[first]
        new[chosen[chosen >= before] - before] = True
        progress.add(len(found))
    progress.close()
    return new
