"""P@1 per damage: means over the languages that it changes, and of their clean lines."""

from collections.abc import Sequence

from ems.benchmarks.noisy.damages import CLEAN, DAMAGES
from ems.tables.declarations import noted_table
from ems.tables.engine import Column
from ems.tables.scores import Scores


def _columns(systems: Sequence[Scores]) -> list[Column]:
    labels: dict[str, dict[str, None]] = {name: {} for name in (CLEAN, *DAMAGES)}
    for label, _, score in (row for system in systems for row in system.rows):
        labels[score.split][label] = None
    return [Column(f"{name} ({len(own)})", list(own)) for name, own in labels.items() if own]


TABLES = {"noisy": noted_table("noisy", "P@1", _columns, below={CLEAN: "undamaged"})}
