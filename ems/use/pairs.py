"""Score given pairs, and mine pairs out of two texts, in memory."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ems.base.errors import EmsError
from ems.bench import margin as margins
from ems.bench.margin import Mined, pairs_of, scores_of
from ems.bench.nearest import nearest
from ems.use.encoder import Encoder

COSINE = "absolute"  # the margin that is the cosine itself


def score(
    encoder: Encoder | str | Path,
    source: Sequence[str],
    target: Sequence[str],
    source_language: str | None = None,
    target_language: str | None = None,
    margin: str = COSINE,
    neighbours: int = 4,
) -> np.ndarray:
    """Return how alike the sentences of each pair are, float64[N].

    absolute: their cosine; ratio and distance: beside the mean cosine of both to their `neighbours`
    nearest sentences of the other side. A side without text has cosine 0 with all others. `encoder`
    is an `Encoder`, or what makes one. Raises `EmsError` for sides of different lengths.
    """
    _check(source, target, margin)
    first, second = _vectors(encoder, (source, source_language), (target, target_language))
    similarity = cosines(first, second)
    if margin == COSINE or not len(first):
        return similarity.astype(np.float64)
    return scores_of(similarity, *nearest(first, second, neighbours, what=""), margin)


def mine(
    encoder: Encoder | str | Path,
    source: Sequence[str],
    target: Sequence[str],
    source_language: str | None = None,
    target_language: str | None = None,
    margin: str = "ratio",
    neighbours: int = 4,
    threshold: float = -np.inf,
    one_to_one: bool = True,
) -> Mined:
    """Return pairs of sentences of two texts that are probably translations, the best first.

    `first` and `second` are their places in `source` and `target`, int64[P], and `score` float64[P]
    is their margin (Artetxe and Schwenk, ACL 2019): at least `threshold`. With `one_to_one` each
    sentence is in one pair; one without text is in none. The search is exact: its time grows with
    len(source) x len(target).
    """
    _check((), (), margin)
    first, second = _vectors(encoder, (source, source_language), (target, target_language))
    if not (len(first) and len(second)):
        return Mined(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    pairs = pairs_of(*nearest(first, second, neighbours, what=""), margin, one_to_one)
    return with_text(above(pairs, threshold), first.any(axis=1), second.any(axis=1))


def above(pairs: Mined, threshold: float) -> Mined:
    """Return the pairs whose score is at least the threshold."""
    return _kept(pairs, pairs.score >= threshold)


def with_text(pairs: Mined, first: np.ndarray, second: np.ndarray) -> Mined:
    """Return the pairs of sentences with text, which first bool[N] and second bool[M] say."""
    return _kept(pairs, first[pairs.first] & second[pairs.second])


def _kept(pairs: Mined, kept: np.ndarray) -> Mined:
    return Mined(pairs.first[kept], pairs.second[kept], pairs.score[kept])


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the products of rows of length 1 of first[N, d] and second[N, d], float32[N]."""
    return np.einsum("nd,nd->n", first, second)


def _check(source: Sequence[str], target: Sequence[str], margin: str) -> None:
    if len(source) != len(target):
        raise EmsError(
            f"expected as many sentences on both sides, found {len(source):,} and {len(target):,}"
        )
    if margin not in margins.MARGINS:
        raise EmsError(f"margin: found {margin!r}; allowed values: {', '.join(margins.MARGINS)}")


def _vectors(
    encoder: Encoder | str | Path, *sides: tuple[Sequence[str], str | None]
) -> list[np.ndarray]:
    """Return vectors of length 1 of both sides, zeros for sentences without text."""
    model = encoder if isinstance(encoder, Encoder) else Encoder(encoder)
    vectors = [model.encode(lines, language, normalise=True) for lines, language in sides]
    for own, (lines, _) in zip(vectors, sides, strict=True):
        own[[not line.strip() for line in lines]] = 0
    return vectors
