"""What tables of several benchmarks share: a row with the scores of all of them, and the notes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ems.tables.engine import Column, Declaration, Printed, headings
from ems.tables.scores import Scores
from ems.tables.table import Block


def table_of(
    columns: list[Column], notes: list[str], printed: Printed | None, heading: str = "Model"
) -> Declaration:
    """Return a table of some columns side by side, without deviations of the seeds."""
    wide = any(" " in name for name in headings(columns))
    return Declaration(
        benchmarks={},
        metric="",
        columns=lambda systems: columns,
        about=lambda systems: notes,
        printed=printed,
        blocks=lambda columns: [Block(headings(columns), spread=wide)],
        spread=False,
        heading=heading,
    )


def in_one_row(row: Sequence[Scores]) -> Scores:
    """Return scores on several benchmarks, or of several systems, as those of the first system."""
    every = tuple(score for scores in row for score in scores.rows)
    return replace(row[0], rows=every, absent=tuple(file for of in row for file in of.absent))


def steps_note(steps: Mapping[str, int]) -> list[str]:
    """Say how long the systems were trained: what most have, then those that differ."""
    if not steps:
        return []
    usual = max(steps.values(), key=list(steps.values()).count)
    others = [f"{name} {count:,}" for name, count in steps.items() if count != usual]
    return [f"Steps of training: {', '.join([f'{usual:,}', *others])}."]
