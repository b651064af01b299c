"""Cosine search between two aligned sets of embeddings."""

import numpy as np

from ems.errors import EmsError

BLOCK = 1024  # queries scored at once


def normalised(vectors: np.ndarray, where: str) -> np.ndarray:
    """Rows of length 1. Raises `EmsError` when a row is zero or not finite; `where` names the
    set.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths[:, 0]) | (lengths[:, 0] == 0))
    if len(bad):
        raise EmsError(f"{where}: the embedding of sentence {bad[0] + 1} is zero or not finite")
    return vectors / lengths


def precision_at_1(queries: np.ndarray, candidates: np.ndarray) -> float:
    """Percent of queries[N, d] whose nearest candidate[N, d] by cosine is the one of the same row.

    Both are normalised already. A tie with another candidate counts as a miss unless it is the
    first.
    """
    hits = 0
    for start in range(0, len(queries), BLOCK):
        nearest = (queries[start : start + BLOCK] @ candidates.T).argmax(axis=1)
        hits += int((nearest == np.arange(start, start + len(nearest))).sum())
    return 100 * hits / len(queries)
