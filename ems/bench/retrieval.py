"""Cosine search between aligned sets of embeddings, small enough to be in memory.

Apart from `nearest`, since training validates with it and would run again with every change there.
"""

import numpy as np

from ems.base.errors import EmsError
from ems.base.progress import Progress

QUERIES = 1024  # scored at once


def normalised(vectors: np.ndarray, where: str) -> np.ndarray:
    """Return rows of length 1. Raises `EmsError`, with `where`, for a zero or not finite row."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths[:, 0]) | (lengths[:, 0] == 0))
    if len(bad):
        raise EmsError(f"{where}: the embedding of sentence {bad[0] + 1} is zero or not finite")
    return vectors / lengths


def precision_at_1(queries: np.ndarray, candidates: np.ndarray) -> float:
    """Return the percentage of queries[N, d] with their own row as `nearest_is_own`."""
    return 100 * int(nearest_is_own(queries, candidates).sum()) / len(queries)


def nearest_is_own(queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return bool[N]: is the candidate[N, d] of the same row the nearest to the query[N, d]?

    Both have rows of length 1. Of equally near candidates the first counts.
    """
    nearest = [
        (queries[start : start + QUERIES] @ candidates.T).argmax(axis=1)
        for start in range(0, len(queries), QUERIES)
    ]
    return np.concatenate(nearest) == np.arange(len(queries))


def all_directions(vectors: np.ndarray, progress: Progress | None = None) -> np.ndarray:
    """Return bool[L, L, N] of vectors[L, N, d], the same N sentences in L languages, of length 1.

    [i, j] is `nearest_is_own` of queries in language i among candidates in language j; [i, i] is
    False. One product serves both directions of a pair; `progress` counts pairs of languages.
    """
    count, sentences, _ = vectors.shape
    hits = np.zeros((count, count, sentences), bool)
    own = np.arange(sentences)
    for one in range(count):
        for other in range(one + 1, count):
            cosines = vectors[one] @ vectors[other].T  # (N, N)
            hits[one, other] = cosines.argmax(axis=1) == own
            hits[other, one] = cosines.argmax(axis=0) == own
            if progress:
                progress.add(1)
    return hits
