"""What score files have in common, whatever the benchmark: a value per language or direction, and
often each sentence's hit or miss in it.

A score file has a mapping from labels (`deu`, `de-fr`) to mappings with a percentage and, where
every sentence is right or wrong, its `hits`: one text for that percentage, or one for each way of a
label, which has a percentage of the same name (`to_english`, `from_english`; each of the `seeds` of
a classifier). Between all languages (FLORES-200) a label's ways are the other languages, and all
hits stand together.

Notable choice: hits must give their percentage, or with an error rate the rest of it; then they are
turned, so that they always are what the percentage counts. Anything else is a damaged file.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ems.bench.hits import unpacked
from ems.config.experiment import UNSEEN
from ems.damaged import Damaged

GROUPS = ("directions", "languages", "pairs", "sets")  # keys that may hold the labels
VALUES = ("percent", "mean", "accuracy", "f1", "error", "value")  # of a label without ways
COUNTS = ("sentences", "documents", "count", "pairs")
CLOSE = 1e-6  # percent
ONLY = ""  # the way of a label that has just one


@dataclass(frozen=True)
class Measured:
    """A label's percentage, the mean of its ways; `hits`: way -> bool[N], empty where not kept."""

    value: float
    ways: dict[str, float] = field(default_factory=dict)
    hits: dict[str, np.ndarray] = field(default_factory=dict)

    def only(self, ways: Collection[str]) -> "Measured":
        """The same of some of its ways, at least one."""
        kept = {way: value for way, value in self.ways.items() if way in ways}
        hits = {way: each for way, each in self.hits.items() if way in kept}
        return Measured(sum(kept.values()) / len(kept), kept, hits)


def measured(data: Mapping[str, Any], path: Path) -> dict[str, Measured]:
    """Label -> what was measured, in the file's order; empty where a file has no such mapping.

    Raises `EmsError` that names `path` for hits that are damaged.
    """
    for group in GROUPS:
        entries = data.get(group)
        if isinstance(entries, dict) and all(isinstance(e, dict) for e in entries.values()):
            found = {label: _one(_whole(data, label, entries), path, label) for label in entries}
            known = {label: each for label, each in found.items() if each is not None}
            if known:
                return known
    return {}


def _whole(data: Mapping[str, Any], label: str, entries: dict[str, Any]) -> dict[str, Any]:
    """A label's entry, with what the file says of all labels together."""
    hits = data.get("hits")
    if not isinstance(hits, dict):
        return entries[label]
    return {**entries[label], "hits": hits.get(label), "sentences": data.get("sentences")}


def mean_of(data: Mapping[str, Any]) -> float | None:
    """The mean over the labels of a score file, or the one that it states; else None."""
    values = [each.value for each in measured(data, Path("score")).values()]
    own = [data[name] for name in VALUES if _is_number(data.get(name))]
    return sum(values) / len(values) if values else own[0] if own else None


def means_of(data: Mapping[str, Any]) -> list[tuple[str, float | None]]:
    """(languages, mean) of a score file, as the tables have them: ("58 trained languages", 48.2),
    ("54 unseen languages", 21.9). One pair without words where no language is unseen.
    """
    labels = data.get("directions")
    entries = labels if isinstance(labels, dict) else {}
    unseen = {code: each for code, each in entries.items() if each.get("language") == UNSEEN}
    if not unseen:
        return [("", mean_of(data))]
    trained = {code: each for code, each in entries.items() if code not in unseen}
    groups = {"trained": trained, "unseen": unseen}
    return [
        (f"{len(group)} {name} languages", mean_of({**data, "directions": group}))
        for name, group in groups.items()
        if group
    ]


def _one(entry: dict[str, Any], path: Path, label: str) -> Measured | None:
    hits, ways = entry.get("hits"), _ways(entry)
    if not ways:
        return None
    texts = {ONLY: hits} if isinstance(hits, str) else hits if isinstance(hits, dict) else {}
    count = next((entry[name] for name in COUNTS if isinstance(entry.get(name), int)), 0)
    try:
        bits = {w: _counted(unpacked(texts[w], count), ways[w]) for w in ways if w in texts}
    except (ValueError, TypeError, AttributeError) as error:
        raise Damaged(path, f"the hits of {label} are damaged ({error})") from None
    return Measured(sum(ways.values()) / len(ways), ways, bits if len(bits) == len(ways) else {})


def _ways(entry: dict[str, Any]) -> dict[str, float]:
    """Way -> percentage."""
    hits, seeds = entry.get("hits"), entry.get("seeds")
    values = seeds if isinstance(seeds, dict) else entry
    named = hits if isinstance(hits, dict) else ("to_english", "from_english")
    ways = {name: float(values[name]) for name in named if _is_number(values.get(name))}
    own = [float(entry[name]) for name in VALUES if _is_number(entry.get(name))]
    return ways or ({ONLY: own[0]} if own else {})


def _counted(hits: np.ndarray, percent: float) -> np.ndarray:
    """bool[N] of which `percent` is the share; `ValueError` when that is of neither kind."""
    share = 100 * hits.mean() if len(hits) else percent
    if abs(share - percent) < CLOSE:
        return hits
    if abs(100 - share - percent) < CLOSE:
        return ~hits
    raise ValueError(f"they are {share:.2f} %, the file says {percent:.2f}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
