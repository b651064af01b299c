"""The table of a sweep: one setting at a time around the chosen point (EMS v2 Table II, IV-C).

The paper chose by validation loss: the lowest total of each axis is bold, and the highest P@1. A
setting of the loss itself (the temperature, a weight, the negatives of a batch) changes what the
loss measures, so along such an axis only P@1 is compared. What the paper chose carries a dagger.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.config.papers import of_ems
from ems.config.sweep import Point
from ems.tables.engine import span
from ems.tables.losses import P1, PARTS, VALIDATION, Entry, read_losses
from ems.tables.printed import load_grid
from ems.tables.table import Place, Table, rounded, write_table

OF_THE_LOSS = {  # last keys of the axes along which the loss is not one measure
    *("weight", "temperature", "margin", "negatives", "both_sides", "mask_duplicates"),
    *("target", "sampled", "dimensions", "batch_pairs", "similarity", "reduction"),
}
NAMES = {
    "model.layers": "layers",
    "model.dropout": "dropout",
    "model.attention_dropout": "attention dropout",
    "objectives.contrastive.temperature": "temperature",
    "train.learning_rate": "learning rate",
    "train.weight_decay": "weight decay",
    "train.warmup_steps": "warm-up steps",
}
LABEL, VALUE, TOTAL, PRECISION = "Setting", "Value", "Loss", "P@1"


def write_sweep_table(points: Sequence[Point], losses: Mapping[str, Path], out: Path) -> None:
    """Write the last validation of each point as .tex, .md and .csv beside `out`; `losses`: system
    -> losses.jsonl.

    Raises `EmsError` for a point whose system has no losses, or no validation among them.
    """
    last = {point.system: _last(point.system, losses) for point in points}
    parts = list(dict.fromkeys(n for entry in last.values() for n in entry.values if n != P1))
    rows = []
    for point in points:
        entry = last[point.system]
        values = [entry.total, *(entry.values.get(name) for name in parts)]
        shown = [None if value is None else f"{value:.3f}" for value in values]
        rows.append([NAMES.get(point.axis, point.axis), point.shown, *shown, entry.values[P1]])
    axes = [point.axis for point in points]
    chosen = {(at, VALUE) for at, point in enumerate(points) if _is_papers(point)}
    table = Table(
        [LABEL, VALUE, TOTAL, *(PARTS.get(name, name) for name in parts), PRECISION],
        rows,
        bold={place for axis in axes for place in _best(points, axis, last)},
        dagger=chosen,
        rules={at for at, axis in enumerate(axes) if at and axis != axes[at - 1]},
        once={LABEL},
        notes=_notes(points, last),
        footnote=f"chosen in {of_ems('II')}" if chosen else "",
    )
    write_table(table, out)


def _last(system: str, losses: Mapping[str, Path]) -> Entry:
    """Return the last validation of a system, or that of the weights that it has."""
    if system not in losses:
        raise EmsError(f"the sweep has {system}, but no losses.jsonl of it was given; train it")
    rows = [entry for entry in read_losses(losses[system]) if entry.part == VALIDATION]
    if not rows or P1 not in rows[-1].values:  # validated on documents alone
        raise EmsError(
            f"{losses[system]}: no row of validation on pairs; set `validation` and train again"
        )
    return next((entry for entry in rows if entry.kept), rows[-1])


def _is_papers(point: Point) -> bool:
    grid = load_grid().get(point.axis, {})
    return any(same for value, same in grid.items() if Decimal(value) == _number(point.value))


def _number(value: Any) -> Decimal | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return Decimal(repr(value)) if number else None


def _best(points: Sequence[Point], axis: str, last: Mapping[str, Entry]) -> set[Place]:
    """Return the highest P@1 and the lowest loss of an axis, as they are shown; ties all bold."""
    entries = {at: last[point.system] for at, point in enumerate(points) if point.axis == axis}
    if len(entries) < 2:
        return set()
    scores = {at: Decimal(rounded(entry.values[P1])) for at, entry in entries.items()}
    places = {(at, PRECISION) for at in scores if scores[at] == max(scores.values())}
    if not _changes_the_loss(axis):
        totals = {at: f"{entry.total:.3f}" for at, entry in entries.items()}
        lowest = min(totals.values(), key=float)
        places |= {(at, TOTAL) for at, total in totals.items() if total == lowest}
    return places


def _changes_the_loss(axis: str) -> bool:
    return axis.rpartition(".")[2] in OF_THE_LOSS


def _notes(points: Sequence[Point], last: Mapping[str, Entry]) -> list[str]:
    chosen = {point.axis: point for point in points if point.chosen}
    centre = ", ".join(f"{NAMES.get(a, a)} {point.shown}" for a, point in chosen.items())
    seen = span(entry.pairs for entry in last.values())
    notes = [
        f"One setting at a time around {centre}; {len(last)} systems, each trained on {seen} "
        "sentence pairs. Loss, its parts and P@1 (percent, mean over language pairs and "
        "directions): the last validation. Bold: the best of each setting."
    ]
    if any(_changes_the_loss(point.axis) for point in points):
        notes.append(
            "A setting of the loss itself (temperature, weight, batch) changes what the loss "
            "measures: along it only P@1 is compared."
        )
    return notes
