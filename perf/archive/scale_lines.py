"""Straight lines through what stages cost at some sizes, and what they say of a billion pairs.

A stage with a job for each file of a corpus costs so much a job and so much a pair. The memory of
one of its jobs follows the pairs of the largest file. The vocabulary follows the lines of its
sample, Snakemake the number of jobs, and every other stage all pairs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

BILLION = 10**9
SAMPLE = 10_000_000  # lines of ems62's vocabulary, whatever the number of pairs
MEASURES = ("cpu_s", "wall_s", "anon_mb", "disk_mb")
PER_FILE = ("fetch", "clean", "segment", "shards")  # stages with a job for each file
Point = tuple[float, float]  # what a base and a slope are multiplied with


@dataclass
class Line:
    """A measure of a stage: base x jobs + slope x pairs; its value at a billion with its range."""

    base: float
    slope: float
    billion: float
    low: float
    high: float
    missed: float | None

    def at(self, point: Point) -> float:
        """Return the value on the line."""
        return self.base * point[0] + self.slope * point[1]


def fitted(points: list[Point], values: list[float], goal: Point) -> Line:
    """Fit a line by relative errors; its range is that of the lines without one of the points.

    `missed` is the relative error with which the others foretell the point with most pairs a job.
    """
    base, slope = line_through(points, values)
    line = Line(base, slope, 0, 0, 0, None)
    without = [
        Line(*line_through(without_one(points, at), without_one(values, at)), 0, 0, 0, None)
        for at in range(len(points))
        if len(points) > 2
    ]
    ends = [each.at(goal) for each in (line, *without)]
    line.billion, line.low, line.high = ends[0], min(ends), max(ends)
    if without:
        largest = int(np.argmax([pairs / jobs for jobs, pairs in points]))
        line.missed = without[largest].at(points[largest]) / values[largest] - 1
    return line


def without_one(values: list[Any], at: int) -> list[Any]:
    return [*values[:at], *values[at + 1 :]]


def line_through(points: list[Point], values: list[float]) -> tuple[float, float]:
    """Return base and slope, neither below zero, with the least sum of squared relative errors."""
    parts = np.array(points, float) / np.array(values, float)[:, None]
    base, slope = np.linalg.lstsq(parts, np.ones(len(values)), rcond=None)[0]
    if base < 0 or slope < 0:
        own = parts[:, 1 if base < 0 else 0]
        alone = float(own.sum() / (own**2).sum())
        return (0.0, alone) if base < 0 else (alone, 0.0)
    return float(base), float(slope)


def point_of(one: dict[str, Any], stage: str, measure: str) -> Point:
    """Return what the cost of a stage in a run, or at a billion pairs, depends on."""
    if stage == "vocabulary" or (stage, measure) == ("sample", "disk_mb"):
        return 1, one["sample_lines"]
    if stage == "snakemake":
        return 1, sum(cost["jobs"] for cost in one["stages"].values())
    if stage not in PER_FILE:
        return 1, one["pairs"]
    return (1, one["largest"]) if measure == "anon_mb" else (one["files"], one["pairs"])


def extrapolate(
    runs: list[dict[str, Any]], counts: dict[str, dict[str, int]]
) -> dict[str, dict[str, Line]]:
    """Return stage -> measure -> its line; `counts` are the pairs of all files at a billion."""
    sizes = [count for own in counts.values() for count in own.values()]
    common = set.intersection(*(set(one["stages"]) for one in runs))
    jobs = {stage: {"jobs": len(sizes) if stage in PER_FILE else 1} for stage in common}
    billion = {"pairs": BILLION, "sample_lines": SAMPLE, "stages": jobs}
    billion |= {"largest": max(sizes), "files": len(sizes)}
    lines: dict[str, dict[str, Line]] = {}
    for stage in sorted(common):
        for measure in MEASURES:
            values = [one["stages"][stage][measure] for one in runs]
            if all(values):
                points = [point_of(one, stage, measure) for one in runs]
                goal = point_of(billion, stage, measure)
                lines.setdefault(stage, {})[measure] = fitted(points, values, goal)
    return lines
