"""Reads the score files of a classification benchmark: accuracy by direction, seed by seed.

A column is a direction ("en-de"), or a direction and a domain ("en-de books"). Where one language
is the source of all of them, the target names the column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev
from typing import Any

from ems.files import read_json
from ems.shapes import COUNT, PERCENT, TEXT, mapping, record
from ems.tables.scores import Scores, each_system_once, same_data, scores_shape

DIRECTION = record(
    {"language": TEXT, "accuracy": PERCENT},
    {
        **dict.fromkeys(("average_precision", "majority"), PERCENT),
        "seeds": mapping(PERCENT),
        "sentences": COUNT,
    },
)


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
        data = read_json(path, scores_shape(benchmark, "accuracy", DIRECTION))
        system = _scores(path, data)
        directions = data["directions"]
        systems.append(system)
        parts.append(str(data.get("part", "")))
        seeds[system.system] = {
            name: list(map(float, of.get("seeds", {}).values())) for name, of in directions.items()
        }
        precision[system.system] = _optional(directions, "average_precision")
        majority |= _optional(directions, "majority")
    each_system_once(systems)
    for what in ("version", "data_sha256"):
        same_data(systems, what, benchmark)
    return Accuracies(systems, seeds, precision, majority, parts[0] if parts else "")


def _optional(directions: dict[str, Any], key: str) -> dict[str, float]:
    return {name: float(of[key]) for name, of in directions.items() if key in of}


def _scores(path: Path, data: Any) -> Scores:
    directions = data["directions"]
    return Scores(
        path=path,
        system=data["system"],
        version=data["version"],
        data_sha256=data["data_sha256"],
        values={name: float(of["accuracy"]) for name, of in directions.items()},
        languages={name: of["language"] for name, of in directions.items()},
        sentences={name: of.get("sentences", 0) for name, of in directions.items()},
    )


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample; None of fewer than two."""
    return stdev(values) if len(values) > 1 else None
