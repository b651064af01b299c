"""What the tables of P@1 share: a row per system, its mean, what it lacks, the table itself.

Notable choice: a mean over languages is shown only for a system that has them all, as the paper
leaves a dash in Table V for models that lack a language of the group; otherwise it would compare
unlike things.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ems.errors import EmsError
from ems.tables.printed import AVERAGE
from ems.tables.scores import Families, Scores
from ems.tables.table import (
    UPPER_BOUND_NOTE,
    Block,
    Table,
    best_places,
    make_frame,
    upper_bounds,
)

DAGGER_NOTE = "mean of the printed values over the languages shown"


@dataclass(frozen=True)
class Row:
    """One model's P@1 in percent by column; `daggers` are the columns that get that mark."""

    label: str
    values: dict[str, float | None]
    daggers: set[str] = field(default_factory=set)


def mean(values: Mapping[str, float], languages: Sequence[str]) -> float | None:
    """Mean over `languages`; None when there are none or one has no value."""
    if not languages or any(language not in values for language in languages):
        return None
    return sum(values[language] for language in languages) / len(languages)


def system_row(system: Scores, languages: list[str]) -> Row:
    """A system's values of `languages` and their mean."""
    values: dict[str, float | None] = {code: system.values.get(code) for code in languages}
    return Row(system.system, {**values, AVERAGE: mean(system.values, languages)})


def printed_row(name: str, printed: Mapping[str, float], columns: Sequence[str]) -> Row:
    """A model's printed values, `AVERAGE` among them, in `columns` (without it). A mean over other
    columns than the paper's is that of the values shown, with a dagger.
    """
    row = Row(f"{name} (printed)", {column: printed.get(column) for column in columns})
    if set(columns) == set(printed) - {AVERAGE}:
        row.values[AVERAGE] = printed[AVERAGE]
    else:
        row.values[AVERAGE] = mean(printed, columns)
        row.daggers.update({AVERAGE} if row.values[AVERAGE] is not None else ())
    return row


def make_table(
    rows: list[Row],
    ours: int,
    blocks: list[Block],
    notes: list[str],
    compete: list[int] | None = None,
) -> Table:
    """Our rows first, then the printed ones; only the first `ours` rows compete for bold, or those
    of them that `compete` numbers.

    Raises `EmsError` when two rows have one name.
    """
    labels = [row.label for row in rows]
    if len(set(labels)) < len(labels):
        raise EmsError(
            f"two rows of the table are named alike: {', '.join(labels)}; rename a system"
        )
    columns = [name for block in blocks for name in block.columns]
    frame = make_frame(
        ["Model", *columns], [[row.label, *(row.values[name] for name in columns)] for row in rows]
    )
    daggers = {(number, name) for number, row in enumerate(rows) for name in row.daggers}
    italic = upper_bounds(frame)
    return Table(
        frame=frame,
        blocks=blocks,
        bold=best_places(frame, list(range(ours)) if compete is None else compete),
        dagger=daggers,
        rules={ours},
        italic=italic,
        notes=[*notes, *([UPPER_BOUND_NOTE] if italic else [])],
        footnote=DAGGER_NOTE if daggers else "",
    )


def joined_notes(rows: list[Scores], families: Families | None) -> list[str]:
    """Which rows are several systems."""
    names = [row.system for row in rows if row.system in (families or {})]
    return [f"A system of its own for each language: {', '.join(names)}."] if names else []


def absent_notes(systems: Iterable[Scores]) -> list[str]:
    """Which score files nobody gave."""
    files = dict.fromkeys(file for system in systems for file in system.absent)
    return [f"Dashes, since there is no score file {', '.join(files)}."] if files else []


def missing_notes(systems: list[Scores], languages: list[str]) -> list[str]:
    """Who lacks which language, and which score files."""
    notes = absent_notes(systems)
    for system in systems:
        missing = [language for language in languages if language not in system.values]
        if missing and (system.values or not system.absent):
            notes.append(
                f"{system.system} has no score for {', '.join(missing)}, "
                "so it has no mean that needs them."
            )
    return notes
