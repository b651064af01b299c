"""Straight lines through what stages cost at some sizes, and what they say of a billion pairs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

BILLION = 10**9
SAMPLE = 10_000_000  # lines of ems62's vocabulary, whatever the number of pairs
MEASURES = ("cpu_s", "wall_s", "anon_mb", "disk_mb", "files", "jobs")


@dataclass
class Line:
    """A measure of a stage: `at` + `per_pair` x pairs; its value at a billion with its range."""

    base: float
    per_pair: float
    billion: float
    low: float
    high: float
    missed: float | None


def fitted(sizes: list[float], values: list[float], goal: float) -> Line:
    """Fit a straight line by relative errors; a slope or base below zero is taken for zero."""
    base, slope = line_through(sizes, values)
    without = [
        line_through(*(without_one(each, at) for each in (sizes, values)))
        for at in range(len(sizes))
        if len(sizes) > 2
    ]
    ends = [base + slope * goal, *(b + s * goal for b, s in without)]
    missed = None
    if without:
        b, s = without[int(np.argmax(sizes))]
        largest = max(sizes)
        missed = (b + s * largest) / values[int(np.argmax(sizes))] - 1
    return Line(base, slope, ends[0], min(ends), max(ends), missed)


def without_one(values: list[float], at: int) -> list[float]:
    return [*values[:at], *values[at + 1 :]]


def line_through(sizes: list[float], values: list[float]) -> tuple[float, float]:
    """Return base and slope, neither below zero, with the least sum of squared relative errors."""
    x, y = np.array(sizes, float), np.array(values, float)
    weights = 1 / np.maximum(y, 1e-9)
    both = np.stack([np.ones_like(x), x], 1) * weights[:, None]
    base, slope = np.linalg.lstsq(both, y * weights, rcond=None)[0]
    if base < 0:
        part = x * weights
        return 0.0, float((part * y * weights).sum() / (part**2).sum())
    if slope < 0:
        return float((weights**2 * y).sum() / (weights**2).sum()), 0.0
    return float(base), float(slope)


def extrapolate(runs: list[dict[str, Any]]) -> dict[str, dict[str, Line]]:
    """Return stage -> measure -> its line; of the vocabulary against the lines of its sample."""
    lines: dict[str, dict[str, Line]] = {}
    for stage in sorted(set.intersection(*(set(one["stages"]) for one in runs))):
        key, goal = ("sample_lines", SAMPLE) if stage == "vocabulary" else ("pairs", BILLION)
        sizes = [one[key] for one in runs]
        for measure in MEASURES:
            values = [one["stages"][stage][measure] for one in runs]
            if all(values):
                lines.setdefault(stage, {})[measure] = fitted(sizes, values, goal)
    return lines
