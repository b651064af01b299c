"""Margin-based mining: how much closer two sentences are than their neighbourhoods.

    score(x, y) = margin(cos(x, y), (r(x) + r(y)) / 2)

where r(x) is the mean cosine of x to its k nearest neighbours in the other set. Source: Artetxe and
Schwenk (ACL 2019), Eq. 2-3, k = 4. A ratio to a mean <= 0 is 0 here. Copies of a row count as one
neighbour: with four copies, all neighbours of their translation would be that row, and its ratio 1.

`best_pairs` ranks all pairs, and a row may be in several, by

    CSLS(x, y) = 2 cos(x, y) - r(x) - r(y)

Source: Conneau et al. (ICLR 2018), section 2.3, k = 10 ("CDLS" in Wang et al., CCL 2019). The
search is exact; its second pass skips rows that cannot be in one of the best pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ems.bench import nearest
from ems.bench.nearest import COLUMNS, ROWS, Distinct, Neighbours, block, gpu_of, nearest_distinct

SLACK = 1e-5  # above the rounding differences between tiles


def _ratio(similarity: np.ndarray, around: np.ndarray) -> np.ndarray:
    positive = around > 0
    return np.where(positive, similarity / np.where(positive, around, 1), 0)


MARGINS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "ratio": _ratio,
    "distance": lambda similarity, around: similarity - around,
    "absolute": lambda similarity, around: similarity,
}


@dataclass(frozen=True)
class Mined:
    first: np.ndarray  # rows, int64[P]
    second: np.ndarray
    score: np.ndarray  # float64[P]
    similarity: np.ndarray | None = None  # the cosine; `best_pairs` only


def pairs_of(
    found: tuple[Neighbours, Neighbours],
    sides: tuple[Distinct, Distinct],
    margin: str = "ratio",
    once: bool = True,
    least: float = -np.inf,
) -> Mined:
    """Pair each row of either set with its best neighbour; return the best pairs first. `found` are
    the neighbours of the distinct rows. The first copy of a row pairs with the first copy of its
    best neighbour, and so on. With `once`, a row is in one pair at most, as in LASER and
    sentence-transformers. Without it, it may be in several pairs, but no pair occurs twice.
    """
    if not (len(sides[0]) and len(sides[1])):
        return Mined(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    sizes = len(sides[0].number), len(sides[1].number)
    there, score = sides[0].matched(sides[1], *_best(*found, margin))
    back, other_score = sides[1].matched(sides[0], *_best(*found[::-1], margin))
    first = np.append(np.arange(sizes[0]), back)  # [N + M]
    second = np.append(there, np.arange(sizes[1]))
    scores = np.append(score, other_score)
    kept = np.argsort(-scores, kind="stable")
    kept = kept[scores[kept] >= least]
    if once:
        kept = kept[_each_once(first[kept], second[kept], sizes)]
    else:
        twice = there[back] == np.arange(sizes[1])  # [M]: backward pairs that are forward pairs too
        kept = kept[~np.append(np.zeros(sizes[0], bool), twice)[kept]]
    return Mined(first[kept], second[kept], scores[kept])


def scores_of(
    similarity: np.ndarray, forward: Neighbours, backward: Neighbours, margin: str
) -> np.ndarray:
    """Score aligned pairs (row n of both sets) given their cosine[N]: float64[N]."""
    return MARGINS[margin](similarity.astype(np.float64), (forward.mean + backward.mean) / 2)


def best_by_margin(
    queries: np.ndarray, candidates: np.ndarray, k: int = 4, margin: str = "ratio"
) -> np.ndarray:
    """Return the best of the k nearest candidates[M, d] of each query[N, d], int64[N]."""
    return _best(*nearest_distinct(queries, candidates, k), margin)[0]


def _best(own: Neighbours, other: Neighbours, margin: str) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's neighbour of the highest score (ties: nearest), int64[N], and the score."""
    around = (own.mean[:, None] + other.mean[own.index]) / 2  # [N, k]
    scores = MARGINS[margin](own.similarity.astype(np.float64), around)
    best = scores.argmax(axis=1)[:, None]
    index, score = (np.take_along_axis(array, best, 1)[:, 0] for array in (own.index, scores))
    return index, score


def _each_once(first: np.ndarray, second: np.ndarray, counts: tuple[int, int]) -> np.ndarray:
    """Return bool[P]: True for a pair whose rows are in no earlier kept pair."""
    free = [bytearray(b"\1") * count for count in counts]
    kept = np.zeros(len(first), bool)
    for number, (one, other) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if free[0][one] and free[1][other]:
            free[0][one] = free[1][other] = 0
            kept[number] = True
    return kept


def best_candidates(
    queries: np.ndarray, candidates: np.ndarray, k: int = 4, margin: str = "ratio"
) -> np.ndarray:
    """Return the candidate[M, d] with the highest score for each query[N, d], int64[N], first on
    ties. Every candidate is scored, not only the nearest; the neighbours of a candidate are
    queries, as in MUSE's CSLS. N x COLUMNS scores are in memory at a time. Copies of a candidate
    are compared once, since a product of matrices may give them other bits.
    """
    distinct = Distinct(candidates)
    candidates = distinct[: len(distinct)]
    around = np.zeros(len(queries)), np.zeros(len(candidates))
    if margin != "absolute":
        around = tuple(side.mean for side in nearest_distinct(queries, candidates, k))
    gpu = gpu_of("auto")
    rows = block(queries, 0, len(queries), gpu)
    best, winner = np.full(len(queries), -np.inf), np.zeros(len(queries), np.int64)
    for start in range(0, len(candidates), COLUMNS):
        tile = nearest.on_host(rows @ block(candidates, start, COLUMNS, gpu).T)  # [N, COLUMNS]
        means = (around[0][:, None] + around[1][start : start + COLUMNS]) / 2
        scores = MARGINS[margin](tile.astype(np.float64), means)
        index = scores.argmax(axis=1)
        highest = scores[np.arange(len(queries)), index]
        better = highest > best
        best[better], winner[better] = highest[better], start + index[better]
    return distinct.rows[winner]


def best_pairs(
    first: np.ndarray, second: np.ndarray, keep: int, k: int, device: str = "auto"
) -> Mined:
    """Return the `keep` best of all pairs of first[N, d] and second[M, d], float32 with rows of
    length 1, the first on ties. A row may be in several pairs. The score is CSLS, or 2 cos if k is
    0. The search needs memory for a few tiles.
    """
    forward, backward = nearest_distinct(first, second, max(k, 1), device, what="")
    around = [side.mean if k else np.zeros(len(side.index)) for side in (forward, backward)]
    keep = min(keep, len(first) * len(second))
    least = max(_least(forward, *around, keep), _least(backward, *around[::-1], keep)) - SLACK
    rows, columns = _able(forward, *around, least), _able(backward, *around[::-1], least)
    gpu = gpu_of(device)
    height = ROWS if gpu else min(ROWS, nearest.STRIP)
    best = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    for top in range(0, len(rows), height):
        ours = rows[top : top + height]
        queries = 2 * block(first[ours], 0, height, gpu)
        own = block(around[0][ours, None], 0, height, gpu)
        for left in range(0, len(columns), COLUMNS):
            theirs = columns[left : left + COLUMNS]
            tile = queries @ block(second[theirs], 0, COLUMNS, gpu).T  # at most [height, COLUMNS]
            tile -= own
            tile -= block(around[1][theirs], 0, COLUMNS, gpu)
            flat, scores = _above(tile.reshape(-1), keep, least)
            pairs = ours[flat // len(theirs)], theirs[flat % len(theirs)], scores
            one, other, score = map(np.append, best, pairs)
            order = np.lexsort((other, one, -score))[:keep]
            best = one[order], other[order], score[order]
            if len(order) == keep:
                least = max(least, float(best[2].min()) - SLACK)
    one, other, _ = best
    similarity = np.einsum("nd,nd->n", first[one], second[other], dtype=np.float64)
    score = 2 * similarity - around[0][one] - around[1][other]
    order = np.lexsort((other, one, -score))
    return Mined(one[order], other[order], score[order], similarity[order])


def _least(own: Neighbours, means: np.ndarray, other_means: np.ndarray, keep: int) -> float:
    """Return a score that at least `keep` pairs of rows and their neighbours reach."""
    scores = 2.0 * own.similarity - means[:, None] - other_means[own.index]  # [N, k]
    return float(np.partition(scores, -keep, axis=None)[-keep]) if scores.size >= keep else -np.inf


def _able(own: Neighbours, means: np.ndarray, other_means: np.ndarray, least: float) -> np.ndarray:
    """Return the rows, int64, that may be in a pair with a score of at least `least`."""
    return np.flatnonzero(2.0 * own.similarity[:, 0] - means - other_means.min() >= least)


def _above(scores: Any, keep: int, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices and values of the `keep` best scores >= `least`, the first on ties."""
    above = scores >= least
    places, values = np.flatnonzero(nearest.on_host(above)), nearest.on_host(scores[above])
    if len(places) > keep:
        keys = np.partition(nearest.keys_of(values, places), -keep)
        values, places = nearest.parts_of(keys[-keep:])
    return places, values
