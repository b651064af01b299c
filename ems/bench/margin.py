"""Margin-based mining: how much nearer two sentences are than their neighbourhoods.

    score(x, y) = margin(cos(x, y), b),  b the mean of cos(x, z) over the k nearest z of x in the
    other set and of cos(y, z) over those of y, half each

Source: Artetxe and Schwenk (ACL 2019), Eq. 2-3, k = 4. A ratio to b <= 0 is 0 here.

The best pairs of all, where a row may be in several, are found by CSLS:

    CSLS(x, y) = 2 cos(x, y) - r(x) - r(y),  r the mean cosine to the k nearest of the other set

Source: Conneau et al. (ICLR 2018), section 2.3, k = 10 ("CDLS" in Wang et al., CCL 2019). The
search is exact; its second pass reads only the rows that can still be in one of the best pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ems.bench.nearest import COLUMNS, ROWS, Neighbours, block, keys_of, nearest, parts_of
from ems.model.devices import choose_device

SLACK = 1e-5  # more than products of other tiles differ by


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
    """P pairs of two sets, the best first."""

    first: np.ndarray  # rows, int64[P]
    second: np.ndarray
    score: np.ndarray  # float64[P]
    similarity: np.ndarray | None = None  # of `best_pairs`, the cosine


def pairs_of(
    forward: Neighbours, backward: Neighbours, margin: str = "ratio", once: bool = True
) -> Mined:
    """Return the best neighbour of each row of either set, the best pairs first, each row once, as
    LASER and sentence-transformers mine.

    Without `once` a row may be in several pairs, but no pair is there twice.
    """
    sizes = len(forward.index), len(backward.index)
    there, score = _best(forward, backward, margin)
    back, other_score = _best(backward, forward, margin)
    first = np.append(np.arange(sizes[0]), back)  # [N + M]
    second = np.append(there, np.arange(sizes[1]))
    scores = np.append(score, other_score)
    kept = np.argsort(-scores, kind="stable")
    if once:
        kept = kept[_each_once(first[kept], second[kept], sizes)]
    else:
        twice = there[back] == np.arange(sizes[1])  # of the pairs of `back`
        kept = kept[~np.append(np.zeros(sizes[0], bool), twice)[kept]]
    return Mined(first[kept], second[kept], scores[kept])


def scores_of(
    similarity: np.ndarray, forward: Neighbours, backward: Neighbours, margin: str
) -> np.ndarray:
    """Return the scores float64[N] of given pairs, row n of both sets, by their cosine[N]."""
    return MARGINS[margin](similarity.astype(np.float64), (forward.mean + backward.mean) / 2)


def best_by_margin(
    queries: np.ndarray, candidates: np.ndarray, k: int = 4, margin: str = "ratio"
) -> np.ndarray:
    """Return the best-scoring candidate[M, d] among the k nearest of each query[N, d]: int64[N].

    Of equal ones the nearest, then the first, wins. Both sets are as in `nearest`.
    """
    return _best(*nearest(queries, candidates, k), margin)[0]


def _best(own: Neighbours, other: Neighbours, margin: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbour with the highest score of each row, int64[N], and the score."""
    around = (own.mean[:, None] + other.mean[own.index]) / 2  # [N, k]
    scores = MARGINS[margin](own.similarity.astype(np.float64), around)
    best = scores.argmax(axis=1)[:, None]
    index, score = (np.take_along_axis(of, best, 1)[:, 0] for of in (own.index, scores))
    return index, score


def _each_once(first: np.ndarray, second: np.ndarray, counts: tuple[int, int]) -> np.ndarray:
    """Return bool[P]: the pairs of which no row is in an earlier kept one."""
    free = [bytearray(b"\1") * count for count in counts]
    kept = np.zeros(len(first), bool)
    for at, (one, other) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if free[0][one] and free[1][other]:
            free[0][one] = free[1][other] = 0
            kept[at] = True
    return kept


@torch.inference_mode()
def best_candidates(
    queries: np.ndarray, candidates: np.ndarray, k: int = 4, margin: str = "ratio"
) -> np.ndarray:
    """Return the candidate[M, d] with the highest score of each query[N, d], the first of equals.

    int64[N]. Every candidate is scored, not only the nearest; the neighbours of a candidate are
    queries, as in MUSE's CSLS. N x COLUMNS scores are in memory at a time.
    """
    around = np.zeros(len(queries)), np.zeros(len(candidates))
    if margin != "absolute":
        around = tuple(side.mean for side in nearest(queries, candidates, k))
    place = choose_device("auto")
    asked = block(queries, 0, len(queries), place)
    best, winner = np.full(len(queries), -np.inf), np.zeros(len(queries), np.int64)
    for start in range(0, len(candidates), COLUMNS):
        tile = (asked @ block(candidates, start, COLUMNS, place).T).cpu().numpy()  # [N, COLUMNS]
        beside = (around[0][:, None] + around[1][start : start + COLUMNS]) / 2
        scores = MARGINS[margin](tile.astype(np.float64), beside)
        at = scores.argmax(axis=1)
        highest = scores[np.arange(len(queries)), at]
        better = highest > best
        best[better], winner[better] = highest[better], start + at[better]
    return winner


# --- CSLS


@torch.inference_mode()
def best_pairs(
    first: np.ndarray, second: np.ndarray, keep: int, k: int, device: str = "auto"
) -> Mined:
    """Return the `keep` best of all pairs of first[N, d] and second[M, d], of equal ones the first.

    Both are float32 with rows of length 1. A row may be in several pairs. The score is CSLS, with
    k = 0 it is 2 cos. Beside the sets, some tiles of ROWS x COLUMNS numbers are in memory.
    """
    forward, backward = nearest(first, second, max(k, 1), device, what="")
    around = [side.mean if k else np.zeros(len(side.index)) for side in (forward, backward)]
    keep = min(keep, len(first) * len(second))
    least = max(_least(forward, *around, keep), _least(backward, *around[::-1], keep)) - SLACK
    rows, columns = _able(forward, *around, least), _able(backward, *around[::-1], least)
    one, other = _best_of_all((first, second), (rows, columns), around, keep, least, device)
    similarity = np.einsum("nd,nd->n", first[one], second[other], dtype=np.float64)
    score = 2 * similarity - around[0][one] - around[1][other]
    order = np.lexsort((other, one, -score))
    return Mined(one[order], other[order], score[order], similarity[order])


def _least(own: Neighbours, around: np.ndarray, of_others: np.ndarray, keep: int) -> float:
    """Return a score that `keep` pairs reach: among those of each row with its neighbours."""
    scores = 2.0 * own.similarity - around[:, None] - of_others[own.index]  # [N, k]
    return float(np.partition(scores, -keep, axis=None)[-keep]) if scores.size >= keep else -np.inf


def _able(own: Neighbours, around: np.ndarray, of_others: np.ndarray, least: float) -> np.ndarray:
    """Return the rows, int64, that may be in a pair with a score of `least` or more."""
    return np.flatnonzero(2.0 * own.similarity[:, 0] - around - of_others.min() >= least)


def _best_of_all(
    sets: tuple[np.ndarray, np.ndarray],
    rows: tuple[np.ndarray, np.ndarray],
    around: list[np.ndarray],
    keep: int,
    least: float,
    device: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `keep` best pairs of some rows of two sets, all of `least` or more: their rows."""
    place = choose_device(device)
    best = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    for top in range(0, len(rows[0]), ROWS):
        ours = rows[0][top : top + ROWS]
        queries = _taken(sets[0], ours, place)
        beside = torch.from_numpy(around[0][ours, None].astype(np.float32)).to(place)
        for left in range(0, len(rows[1]), COLUMNS):
            theirs = rows[1][left : left + COLUMNS]
            tile = queries @ _taken(sets[1], theirs, place).T  # [ROWS, COLUMNS], less at the ends
            others = torch.from_numpy(around[1][theirs].astype(np.float32)).to(place)
            tile.mul_(2).sub_(beside).sub_(others)
            flat, scores = _above(tile.flatten(), keep, least)
            pairs = ours[flat // len(theirs)], theirs[flat % len(theirs)], scores
            first, second, score = map(np.append, best, pairs)
            order = np.lexsort((second, first, -score))[:keep]
            best = first[order], second[order], score[order]
            if len(best[2]) == keep:
                least = max(least, float(best[2].min()) - SLACK)
    return best[:2]


def _taken(vectors: np.ndarray, rows: np.ndarray, place: torch.device) -> Tensor:
    return block(vectors[rows], 0, len(rows), place)


def _above(scores: Tensor, keep: int, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the places and scores of `least` or more, the `keep` best, of equal ones the first."""
    places = (scores >= least).nonzero()[:, 0]
    scores = scores[places]
    if len(places) > keep:
        scores, places = parts_of(keys_of(scores, places).topk(keep).values)
    return places.cpu().numpy(), scores.cpu().numpy()
