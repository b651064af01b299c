"""How certain is a score, and is one system better than another on the same sentences?

An interval is the percentile bootstrap's over sentences (Efron 1979; paired: Koehn 2004). A
sentence has the mean of its hits over directions and seeds, one of few values, so that a resample
is one multinomial draw of their counts. A draw takes a sentence in all languages that have the same
sentences. The variance between seeds is in no interval.

The test of two systems is the randomisation of signs (Fisher 1935): if they are equal, a sentence
is as likely to favour either. If all differences have one size, it is McNemar's exact test (1947);
otherwise its normal approximation with a correction for continuity, which resolves any p, unlike
the share of some draws. Holm's step-down method (1979) corrects the p-values of a family of tests.
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple, TypeVar

import numpy as np

from ems.bench.scores import LEVEL, Score, ScoreFile

DRAWS = 1_000
SEED = 1
NORMAL = 1.96  # standard deviations of half a 95 % interval
SIGNIFICANT = 0.05
Row = TypeVar("Row", bound=Hashable)
Ends = tuple[float, float]  # of an interval, in percent


@dataclass(frozen=True)
class Change:
    """A difference in percent (second minus first), its 95 % interval, and its two-sided p."""

    delta: float
    low: float
    high: float
    p: float


class Sample(NamedTuple):
    """A mean over labels in percent, its 95 % interval (None: unknown), and the mean hits of each
    sentence, float64[N] for each set of sentences, see `joined` ([]: unknown).
    """

    value: float
    interval: Ends | None
    parts: list[np.ndarray]

    @property
    def half(self) -> float | None:
        return (self.interval[1] - self.interval[0]) / 2 if self.interval else None


def sampled(labels: Sequence[Sequence[Score]], parallel: bool) -> Sample:
    """Return the mean over labels, given the rows of each; `parallel`: all have the same sentences.
    Without hits, intervals of single rows are combined as independent ones. Raises `ValueError` for
    damaged hits.
    """
    means = [fmean(row.value for row in rows) for rows in labels]
    value = fmean(means)
    if all(row.hits and row.count == rows[0].count for rows in labels for row in rows):
        shares = [np.mean([row.bits() for row in rows], axis=0) for rows in labels]
        parts = joined(shares, ["" if parallel else sentences_of(rows) for rows in labels])
        return Sample(value, bounds(parts), parts)
    if all(len(rows) == 1 and rows[0].interval for rows in labels):
        sides = np.array([rows[0].interval for rows in labels]) - np.array(means)[:, None]  # [L, 2]
        low, high = np.sqrt((sides**2).sum(axis=0)) / len(labels)
        return Sample(value, (value - float(low), value + float(high)), [])
    return Sample(value, None, [])


def sentences_of(rows: Sequence[Score]) -> Hashable:
    """Return a key of the sentences of a label: directions between the same languages have the same
    ones, and classifiers (which have seeds) are tested on the documents of the target.
    """
    sides = [(row.source, row.target) if row.seed is None else (row.target,) for row in rows]
    return *sorted({name for side in sides for name in side}), rows[0].split


def joined(parts: Sequence[np.ndarray], keys: Sequence[Hashable]) -> list[np.ndarray]:
    """Return a part for each key, in their order, with the same mean over all."""
    groups: dict[tuple[Hashable, int], list[np.ndarray]] = {}
    for part, key in zip(parts, keys, strict=True):
        groups.setdefault((key, len(part)), []).append(part)
    return [np.sum(groups[key], axis=0) * (len(groups) / len(parts)) for key in sorted(groups)]


def half_interval(scores: ScoreFile, labels: Collection[str]) -> float | None:
    """Return half the 95 % interval of the mean over labels, in percent; None if it is unknown."""
    labelled = scores.labelled()
    return sampled([[*labelled[label].values()] for label in labels], scores.parallel).half


# --- intervals


def bounds(parts: list[np.ndarray]) -> Ends:
    """Return the 95 % interval of the mean over parts[N], each drawn on its own, in percent."""
    draw = np.random.default_rng(SEED)
    return _ends(np.mean([_means(part, draw) for part in parts], axis=0))


def _ends(means: np.ndarray) -> Ends:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return 100 * float(low), 100 * float(high)


def _means(shares: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Return the means of DRAWS bootstrap samples."""
    values, counts = np.unique(np.round(shares, 9), return_counts=True)  # sums of any order
    drawn = draw.multinomial(len(shares), counts / len(shares), DRAWS)  # (DRAWS, values)
    return drawn @ values / len(shares)


def f1_interval(right: int, found: int, gold: int) -> Ends:
    """Return the 95 % interval of 200 * right / (found + gold), from resampled pairs: right, only
    found, or only in the gold standard. The threshold is taken as given.
    """
    counts = np.array([right, found - right, gold - right])
    total, draw = int(counts.sum()), np.random.default_rng(SEED)
    both, *alone = draw.multinomial(total, counts / total, DRAWS).T
    return _ends(2 * both / (2 * both + sum(alone)))


# --- tests


def sign_test(parts: Sequence[np.ndarray]) -> float:
    """Return the two-sided p of the differences float64[N] of each part; 1 if there are none."""
    from scipy.special import bdtr  # here: it is slow to import

    moved = np.concatenate([np.round(part, 9) / len(part) for part in parts])
    moved = moved[moved != 0]
    sizes = np.abs(moved)
    if not len(moved):
        return 1.0
    if sizes.min() == sizes.max():
        better = int((moved > 0).sum())
        return min(1.0, 2 * float(bdtr(min(better, len(moved) - better), len(moved), 0.5)))
    distance = max(0.0, abs(moved.sum()) - sizes.min()) / math.sqrt((moved**2).sum())
    return math.erfc(distance / math.sqrt(2))


def p_value(first: Sample, second: Sample) -> float:
    """Return the two-sided p of two systems: of the sign test, if the hits of the same sentences
    are known; otherwise of their intervals as if the sentences were others, which is too careful;
    1 without intervals.
    """
    if first.parts and list(map(len, first.parts)) == list(map(len, second.parts)):
        both = zip(first.parts, second.parts, strict=True)
        return sign_test([other - one for one, other in both])
    if not (first.interval and second.interval):
        return 1.0
    error = math.hypot(first.half, second.half) / NORMAL or math.inf
    return math.erfc(abs(second.value - first.value) / error / math.sqrt(2))


def mean_change(gains: Sequence[np.ndarray], keys: Sequence[Hashable]) -> Change:
    """Return the change of the mean over labels, given the gain of each sentence in -1..1 and the
    key of its sentences.
    """
    delta, parts = float(np.mean([each.mean() for each in gains])), joined(gains, keys)
    return Change(100 * delta, *bounds(parts), sign_test(parts))


def holm(values: list[float]) -> list[float]:
    """Correct p-values for multiple testing; the order is kept, the maximum is 1."""
    order = np.argsort(values, kind="stable")
    least = np.array(values)[order] * np.arange(len(values), 0, -1)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(np.maximum.accumulate(least), 1)
    return corrected.tolist()


def surely_best(
    family: Mapping[str, Mapping[Row, Sample]], lowest: bool = False
) -> set[tuple[Row, str]]:
    """Return (row, column) of the best system of each column that is better than every other one,
    at p < SIGNIFICANT. A family's columns are corrected together: Holm over the comparisons of each
    best system with all others, so that the chance of any wrong best is at most SIGNIFICANT.
    """
    cells, tests = [], []  # a cell for each comparison
    for name, samples in family.items():
        best = (min if lowest else max)(samples, key=lambda row: samples[row].value, default=None)
        others = [sample for row, sample in samples.items() if row != best]
        cells += [(best, name)] * len(others)
        tests += [p_value(samples[best], other) for other in others]
    unsure = {cell for cell, p in zip(cells, holm(tests), strict=True) if p >= SIGNIFICANT}
    return {*cells} - unsure
