"""Reads the score files of a classification benchmark: accuracy by direction, seed by seed.

A column is a direction ("en-de"), or a direction and a domain ("en-de books"). Where one language
is the source of all of them, the target names the column.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev
from typing import Any

from ems.files import read_json
from ems.tables.scores import Scores, each_system_once, malformed, same_data, text_of


@dataclass(frozen=True)
class Accuracies:
    """The systems' accuracies in percent, as `Scores` with a value for each direction, and what
    they have besides: system -> direction -> the accuracy of each seed (none where nothing is
    trained), and the average precision (none but for pairs). `majority`: direction -> the accuracy
    of the most frequent class.
    """

    systems: list[Scores]
    seeds: dict[str, dict[str, list[float]]]
    precision: dict[str, dict[str, float]]
    majority: dict[str, float]
    part: str

    @property
    def seeded(self) -> bool:
        """Whether there are several seeds, so that they have a deviation."""
        return any(len(values) > 1 for of in self.seeds.values() for values in of.values())

    @property
    def ranked(self) -> bool:
        """Whether there is an average precision."""
        return any(self.precision.values())


def read_accuracies(paths: Sequence[Path], benchmark: str) -> Accuracies:
    """Read score files of `benchmark` in the order given.

    Raises `EmsError` when one is malformed, or they cannot share a table.
    """
    systems, seeds, precision, majority, parts = [], {}, {}, {}, []
    for path in paths:
        data = read_json(path)
        system = _scores(path, data, benchmark)
        directions = data["directions"]
        systems.append(system)
        parts.append(str(data.get("part", "")))
        seeds[system.system] = {name: _seeds(path, name, of) for name, of in directions.items()}
        precision[system.system] = _optional(path, directions, "average_precision")
        majority |= _optional(path, directions, "majority")
    each_system_once(systems)
    for what in ("version", "data_sha256"):
        same_data(systems, what, benchmark)
    return Accuracies(systems, seeds, precision, majority, parts[0] if parts else "")


def _optional(path: Path, directions: dict[str, Any], key: str) -> dict[str, float]:
    return {name: _percent(path, name, of, key) for name, of in directions.items() if key in of}


def _scores(path: Path, data: Any, benchmark: str) -> Scores:
    if not isinstance(data, dict):
        raise malformed(path, "a JSON object", type(data).__name__)
    found, metric = text_of(path, data, "benchmark"), text_of(path, data, "metric")
    if (found, metric) != (benchmark, "accuracy"):
        raise malformed(
            path, f"benchmark {benchmark} with metric accuracy", f"{found} with {metric}"
        )
    directions = data.get("directions")
    if not isinstance(directions, dict) or not directions:
        raise malformed(path, "scores of at least one direction under `directions`", directions)
    for name, of in directions.items():
        if not isinstance(of, dict):
            raise malformed(path, f"a JSON object under `directions.{name}`", of)
    return Scores(
        path=path,
        system=text_of(path, data, "system"),
        version=text_of(path, data, "version"),
        data_sha256=text_of(path, data, "data_sha256"),
        values={name: _percent(path, name, of, "accuracy") for name, of in directions.items()},
        languages={
            name: text_of(path, of, "language", f"directions.{name}.")
            for name, of in directions.items()
        },
        sentences={name: of.get("sentences", 0) for name, of in directions.items()},
    )


def _percent(path: Path, name: str, of: dict[str, Any], key: str) -> float:
    value = of.get(key)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= 100:
        raise malformed(path, f"a percentage under `directions.{name}.{key}`", value)
    return float(value)


def _seeds(path: Path, name: str, of: dict[str, Any]) -> list[float]:
    seeds = of.get("seeds", {})
    if not isinstance(seeds, dict):
        raise malformed(path, f"an accuracy of each seed under `directions.{name}.seeds`", seeds)
    return [_percent(path, f"{name}.seeds", seeds, seed) for seed in seeds]


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample; None of fewer than two."""
    return stdev(values) if len(values) > 1 else None
