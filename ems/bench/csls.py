"""The best pairs of two sets by CSLS: how near two sentences are for their neighbourhoods.

    CSLS(x, y) = 2 cos(x, y) - r(x) - r(y),  r the mean cosine to the k nearest of the other set

Source: Conneau et al., "Word Translation Without Parallel Data" (ICLR 2018), section 2.3, k = 10.
Wang et al. (CCL 2019, section 3.2) cite it as cross-domain local scaling (CDLS).

The search is exact and has two passes of matrix products, the second one over few rows: with r
known, most rows of either set cannot be in a pair that is as good as the best ones known so far.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ems.bench.nearest import COLUMNS, ROWS, Neighbours, block, keys_of, nearest, parts_of
from ems.model.devices import choose_device

SLACK = 1e-5  # more than products of other tiles differ by


@dataclass(frozen=True)
class Pairs:
    """Pairs of two sets, the best first, of equal ones the first: rows `first` and `second`
    int64[P], their CSLS `score` and their cosine `similarity`, float64[P].
    """

    first: np.ndarray
    second: np.ndarray
    score: np.ndarray
    similarity: np.ndarray


@torch.inference_mode()
def best_pairs(
    first: np.ndarray,
    second: np.ndarray,
    keep: int,
    k: int,
    device: str = "auto",
) -> Pairs:
    """Return the `keep` best of all pairs of first[N, d] and second[M, d], or all if there are
    fewer.

    Both are float32 with rows of length 1. A row may be in several pairs. With k = 0 the score is
    2 cos. Beside the sets, some tiles of ROWS x COLUMNS numbers are in memory.
    """
    forward, backward = nearest(first, second, max(k, 1), device, what="")
    around = [side.mean if k else np.zeros(len(side.index)) for side in (forward, backward)]
    keep = min(keep, len(first) * len(second))
    least = max(_least(forward, *around, keep), _least(backward, *around[::-1], keep)) - SLACK
    rows, columns = _able(forward, *around, least), _able(backward, *around[::-1], least)
    one, other, _ = _best((first, second), (rows, columns), around, keep, least, device)
    similarity = np.einsum("nd,nd->n", first[one], second[other], dtype=np.float64)
    score = 2 * similarity - around[0][one] - around[1][other]
    order = np.lexsort((other, one, -score))
    return Pairs(one[order], other[order], score[order], similarity[order])


def _least(own: Neighbours, around: np.ndarray, of_others: np.ndarray, keep: int) -> float:
    """Return a score that `keep` pairs reach: among those of each row with its neighbours."""
    scores = 2.0 * own.similarity - around[:, None] - of_others[own.index]  # [N, k]
    return float(np.partition(scores, -keep, axis=None)[-keep]) if scores.size >= keep else -np.inf


def _able(own: Neighbours, around: np.ndarray, of_others: np.ndarray, least: float) -> np.ndarray:
    """Return the rows, int64, that may be in a pair with a score of `least` or more."""
    return np.flatnonzero(2.0 * own.similarity[:, 0] - around - of_others.min() >= least)


Best = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows of either set int64[P], float32 scores


def _best(
    sets: tuple[np.ndarray, np.ndarray],
    rows: tuple[np.ndarray, np.ndarray],
    around: list[np.ndarray],
    keep: int,
    least: float,
    device: str,
) -> Best:
    """Return the `keep` best pairs of some rows of two sets, all of `least` or more."""
    place = choose_device(device)
    best: Best = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    for ours in _blocks(rows[0], ROWS):
        queries = _taken(sets[0], ours, place)
        beside = torch.from_numpy(around[0][ours, None].astype(np.float32)).to(place)
        for theirs in _blocks(rows[1], COLUMNS):
            tile = queries @ _taken(sets[1], theirs, place).T  # [ROWS, COLUMNS], less at the ends
            others = torch.from_numpy(around[1][theirs].astype(np.float32)).to(place)
            tile.mul_(2).sub_(beside).sub_(others)
            flat, scores = _above(tile.flatten(), keep, least)
            pairs = ours[flat // len(theirs)], theirs[flat % len(theirs)], scores
            best = _shortened(tuple(map(np.append, best, pairs)), keep)
            if len(best[2]) == keep:
                least = max(least, float(best[2].min()) - SLACK)
    return best


def _blocks(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _taken(vectors: np.ndarray, rows: np.ndarray, place: torch.device) -> Tensor:
    return block(vectors[rows], 0, len(rows), place)


def _above(scores: Tensor, keep: int, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the scores of `least` or more, at most the `keep` best of them (of equal
    ones the first), and the scores.
    """
    places = (scores >= least).nonzero()[:, 0]
    scores = scores[places]
    if len(places) > keep:
        scores, places = parts_of(keys_of(scores, places).topk(keep).values)
    return places.cpu().numpy(), scores.cpu().numpy()


def _shortened(pairs: Best, keep: int) -> Best:
    first, second, score = pairs
    order = np.lexsort((second, first, -score))[:keep]
    return first[order], second[order], score[order]
