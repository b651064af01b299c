"""Cosine search between aligned sets of embeddings that fit into memory. Training validates with
this module; a change to `nearest` must not make it run again.
"""

import numpy as np

from ems.base.errors import EmsError
from ems.base.progress import Progress

QUERIES = 1024  # queries scored at once


def normalised(vectors: np.ndarray, location: str) -> np.ndarray:
    """Scale rows to length 1; raise `EmsError` (naming `location`) if one is zero or not finite."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths[:, 0]) | (lengths[:, 0] == 0))
    if len(bad):
        raise EmsError(f"{location}: the embedding of sentence {bad[0] + 1} is zero or not finite")
    return vectors / lengths


def precision_at_1(queries: np.ndarray, candidates: np.ndarray) -> float:
    """Return the percentage of queries[N, d] whose nearest candidate is their own row."""
    return 100 * int(nearest_is_own(queries, candidates).sum()) / len(queries)


def nearest_is_own(queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return bool[N]: is candidate[n] nearest to query[n], first on ties? Rows have length 1."""
    starts = range(0, len(queries), QUERIES)
    nearest = [(queries[at : at + QUERIES] @ candidates.T).argmax(axis=1) for at in starts]
    return np.concatenate(nearest) == np.arange(len(queries))


def all_directions(vectors: np.ndarray, progress: Progress | None = None) -> np.ndarray:
    """Return hits bool[L, L, N] for vectors[L, N, d] of length 1: N sentences in L languages. Of
    [i, j], queries are in language i and candidates in language j; [i, i] is False. One product
    serves both directions; `progress` counts language pairs.
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
