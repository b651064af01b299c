"""What score files have in common, whatever the benchmark: a value per language or direction, and
often each sentence's hit or miss in it.

A score file has a mapping from labels (`deu`, `de-fr`) to mappings with a percentage and, where
every sentence is right or wrong, its `hits`: one text for `percent`, or one for each way of a
language (`to_english`, `from_english`), which has a percentage of the same name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ems.bench.hits import unpacked
from ems.errors import EmsError

GROUPS = ("directions", "languages", "pairs", "sets")  # keys that may hold the labels
VALUES = ("percent", "mean", "accuracy", "f1", "error", "value")  # of a label without ways
COUNTS = ("sentences", "documents", "count", "pairs")
ONLY = ""  # the way of a label that has just one


@dataclass(frozen=True)
class Measured:
    """A label's percentage, the mean of its ways; `hits`: way -> bool[N], empty where not kept."""

    value: float
    ways: dict[str, float] = field(default_factory=dict)
    hits: dict[str, np.ndarray] = field(default_factory=dict)


def measured(data: Mapping[str, Any], path: Path) -> dict[str, Measured]:
    """Label -> what was measured, in the file's order; empty where a file has no such mapping.

    Raises `EmsError` that names `path` for hits that are damaged.
    """
    for group in GROUPS:
        entries = data.get(group)
        if isinstance(entries, dict) and all(isinstance(e, dict) for e in entries.values()):
            found = {label: _one(entry, path, label) for label, entry in entries.items()}
            known = {label: each for label, each in found.items() if each is not None}
            if known:
                return known
    return {}


def mean_of(data: Mapping[str, Any]) -> float | None:
    """The mean over the labels of a score file, or the one that it states; else None."""
    values = [each.value for each in measured(data, Path("score")).values()]
    own = [data[name] for name in VALUES if _is_number(data.get(name))]
    return sum(values) / len(values) if values else own[0] if own else None


def _one(entry: dict[str, Any], path: Path, label: str) -> Measured | None:
    ways = _ways(entry)
    if not ways:
        return None
    hits = entry.get("hits")
    texts = {ONLY: hits} if isinstance(hits, str) else hits if isinstance(hits, dict) else {}
    count = next((entry[name] for name in COUNTS if isinstance(entry.get(name), int)), None)
    try:
        bits = {way: unpacked(texts[way], count) for way in ways if way in texts and count}
    except (ValueError, TypeError, AttributeError) as error:
        raise EmsError(
            f"{path}: the hits of {label} are damaged ({error}); delete the file and run the "
            "benchmark again"
        ) from None
    return Measured(sum(ways.values()) / len(ways), ways, bits if len(bits) == len(ways) else {})


def _ways(entry: dict[str, Any]) -> dict[str, float]:
    """Way -> percentage."""
    hits = entry.get("hits")
    named = hits if isinstance(hits, dict) else ("to_english", "from_english")
    ways = {name: float(entry[name]) for name in named if _is_number(entry.get(name))}
    own = [float(entry[name]) for name in VALUES if _is_number(entry.get(name))]
    return ways or ({ONLY: own[0]} if own else {})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
