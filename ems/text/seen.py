"""A set of texts in twelve bytes each, for exact duplicates in a large corpus.

A Python set takes 65 bytes or more for each. Here 64-bit hashes lie in one array with open
addressing, two thirds full at most. Two different texts of 143 million share a hash with a
probability of about 1 in 2,000 (n^2 / 2^65).
"""

from hashlib import blake2b

import numpy as np


def hashes_of(texts: list[str]) -> np.ndarray:
    """Return a hash of each text, uint64[n], none of them 0."""
    digests = b"".join([blake2b(text.encode(), digest_size=8).digest() for text in texts])
    return np.maximum(np.frombuffer(digests, "<u8"), 1)


class Seen:
    """A set of at most `most` texts."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        self.table = np.zeros(max(3 * most // 2, 16), np.uint64)  # 0: nothing there

    def add(self, texts: list[str]) -> list[bool]:
        """Return whether each text is new, here and in every call before; add it to the set."""
        distinct, first = np.unique(hashes_of(texts), return_index=True)
        new = np.zeros(len(texts), bool)
        new[first[self._insert(distinct)]] = True
        return new.tolist()

    def _insert(self, hashes: np.ndarray) -> np.ndarray:
        """Put distinct hashes, uint64[n], into the table; return which were absent, bool[n]."""
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
        return absent
