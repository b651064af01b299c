"""Is one system better than another on the same sentences?

Each language has McNemar's exact test (1947): among the sentences that exactly one system gets
right, does each system have half? Holm's step-down method (1979) corrects the p-values of a
benchmark's languages. The mean over languages has a paired bootstrap over sentences (Koehn 2004);
if the languages are parallel, a draw takes a sentence in all of them. A sentence contributes one of
few values (-1, -1/2, 0, 1/2, 1), so a resample is one multinomial draw of their counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

DRAWS = 10_000
LEVEL = 0.95
SEED = 1


@dataclass(frozen=True)
class Change:
    """A difference in percent (second minus first), its 95 % interval, and its two-sided p."""

    delta: float
    low: float
    high: float
    p: float


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Return the exact two-sided p of the hits bool[N] of two systems; 1 if they are equal."""
    better, worse = int((~first & second).sum()), int((first & ~second).sum())
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def holm(values: list[float]) -> list[float]:
    """Correct p-values for multiple testing; the order is kept, the maximum is 1."""
    order = sorted(range(len(values)), key=values.__getitem__)
    corrected, least = [0.0] * len(values), 0.0
    for rank, index in enumerate(order):
        least = max(least, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = least
    return corrected


def gain(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return each sentence's mean difference of hits bool[N] over directions, float64 in -1..1."""
    return np.mean([second[name].astype(np.float64) - first[name] for name in first], axis=0)


def mean_change(gains: list[np.ndarray], parallel: bool) -> Change:
    """Return the change of the mean over languages by `gain`s, drawn together if `parallel`."""
    draw = np.random.default_rng(SEED)
    drawn = [np.mean(gains, axis=0)] if parallel else gains
    means = np.mean([_means(each, draw) for each in drawn], axis=0)
    delta = float(np.mean([each.mean() for each in gains]))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    below, above = np.mean(means <= 0), np.mean(means >= 0)
    p = min(1.0, 2 * max(1 / DRAWS, float(min(below, above))))  # no draw is no proof of 0
    return Change(100 * delta, 100 * float(low), 100 * float(high), p)


def _means(gains: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Return the means of DRAWS bootstrap samples."""
    values, counts = np.unique(gains, return_counts=True)
    drawn = draw.multinomial(len(gains), counts / len(gains), DRAWS)  # (DRAWS, values)
    return drawn @ values / len(gains)
