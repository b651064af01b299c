"""Nearest neighbours by faiss, for sides that are too large for an exact search on this machine.

An inverted index of each side (IVFFlat): a line is compared with those in the nearest CELLS of
about sqrt(N) cells. Some neighbours are missed; the optional package is faiss-cpu or faiss-gpu.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from ems.base.errors import EmsError
from ems.base.progress import Progress
from ems.bench.nearest import ROWS, Neighbours

CELLS = 32  # that are searched
TRAINED = 64  # lines for each cell that the cells are learned from


def nearest_by_faiss(first: Any, second: Any, k: int) -> tuple[Neighbours, Neighbours]:
    """Return about the k nearest of each row of first[N, d] in second[M, d], and the reverse.

    Rows have length 1. Raises `EmsError` if faiss is not installed.
    """
    if find_spec("faiss") is None:
        raise EmsError(
            "faiss is not installed: pip install faiss-cpu, or leave out --faiss-above for an "
            "exact search"
        )
    return _searched(first, second, k), _searched(second, first, k)


def _searched(queries: Any, others: Any, k: int) -> Neighbours:
    """Return the k nearest of `queries` in `others`."""
    index, k = _index(others), min(k, len(others))
    progress = Progress("search by faiss", len(queries), "lines")
    parts = []
    for start in range(0, len(queries), ROWS):
        parts.append(index.search(queries[start : start + ROWS], k))
        progress.add(len(parts[-1][0]))
    progress.close()
    similarity, found = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    missing = found < 0  # fewer than k in the cells
    return Neighbours(np.where(missing, 0, similarity), np.where(missing, 0, found))


def _index(vectors: Any) -> Any:
    import faiss

    cells = max(1, round(len(vectors) ** 0.5))
    width = vectors[0:1].shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, cells, faiss.METRIC_INNER_PRODUCT)
    step = max(1, len(vectors) // (TRAINED * cells))
    starts = range(0, len(vectors), ROWS)
    sample = [vectors[start : start + ROWS][::step] for start in starts]
    index.train(np.ascontiguousarray(np.concatenate(sample)))
    for start in starts:
        index.add(vectors[start : start + ROWS])
    index.nprobe = CELLS
    return index
