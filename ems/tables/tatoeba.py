"""The Tatoeba table: EMS v2 Table IV (languages) above Table V (groups), in one tabular.

Notable choices:
- a mean over languages is shown only for a system that has them all, as the paper leaves a dash in
  Table V for models that lack a language of the group; otherwise it would compare unlike things;
- groups are the languages that the printed means average (`groups.csv`), as far as we have them;
- printed rows stand only beside scores of the same data, Tatoeba v1, and never compete for bold.
  Where ours are fewer languages than the paper's, a printed mean would be of other languages: the
  mean of the printed values over ours takes its place, with a dagger.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ems.errors import EmsError
from ems.tables.printed import (
    AVERAGE,
    Group,
    PrintedModel,
    in_paper_order,
    load_groups,
    load_models,
)
from ems.tables.scores import TatoebaScores, read_tatoeba
from ems.tables.table import Block, Table, balanced_blocks, best_places, make_frame
from ems.tables.write import write_table

PAPER_VERSION = "v1"  # the Tatoeba data of the paper, as LASER published it
DAGGER_NOTE = "mean of the printed values over the languages shown"


@dataclass(frozen=True)
class _Row:
    label: str
    values: dict[str, float | None]  # by column
    daggers: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Columns:
    """Languages (Tatoeba codes) and, per group, its heading and the members that we have."""

    languages: list[str]
    groups: dict[str, tuple[Group, list[str]]]

    @property
    def names(self) -> list[str]:
        return [*self.languages, AVERAGE, *self.groups]


def write_tatoeba_table(
    scores: list[Path], out: Path, printed: list[str], order: list[str] | None = None
) -> None:
    """Write the Tatoeba table of some systems as .tex, .md and .csv beside `out`.

    `scores` are the systems' tatoeba.json; `printed` names models of EMS v2 Table IV ("EMS",
    "LASER") to show as printed; `order` names the systems that come first, the others follow as
    given.
    Raises `EmsError` for scores of different data, a system twice, and names nobody knows.
    """
    systems = _ordered(read_tatoeba(scores), order or [])
    models = _printed_models(printed)
    beside = models if systems[0].version == PAPER_VERSION else []
    columns = _columns({language for system in systems for language in system.values})
    ours = [_our_row(system, columns) for system in systems]
    rows = [*ours, *(_printed_row(model, columns) for model in beside)]
    notes = _notes(systems, columns, models, beside)
    write_table(_table(rows, len(ours), columns, notes), out)


def _ordered(systems: list[TatoebaScores], order: list[str]) -> list[TatoebaScores]:
    known = {system.system: system for system in systems}
    missing = [name for name in order if name not in known]
    if missing:
        raise EmsError(
            f"the table's order names {', '.join(missing)}, but there are Tatoeba scores only of "
            f"{', '.join(known)}; correct the name or add that system's tatoeba.json"
        )
    return [known[name] for name in dict.fromkeys([*order, *known])]


def _printed_models(names: Sequence[str]) -> list[PrintedModel]:
    models = load_models()
    unknown = [name for name in names if name not in models]
    if unknown:
        raise EmsError(
            f"no printed Tatoeba scores of {', '.join(unknown)}; EMS v2 Table IV prints "
            f"{', '.join(models)}: correct the names of the printed rows"
        )
    return [models[name] for name in dict.fromkeys(names)]


def _columns(languages: set[str]) -> _Columns:
    groups = {}
    for group in load_groups():
        members = [language for language in group.languages if language in languages]
        partial = f"{group.name} {len(members)}/{len(group.languages)}"
        whole = len(members) == len(group.languages)
        groups[group.heading if whole else partial] = (group, members)
    return _Columns(in_paper_order(languages), groups)


def _mean(values: dict[str, float], languages: list[str]) -> float | None:
    """Mean over `languages`; None when there are none or one has no value."""
    if not languages or any(language not in values for language in languages):
        return None
    return sum(values[language] for language in languages) / len(languages)


def _our_row(system: TatoebaScores, columns: _Columns) -> _Row:
    values: dict[str, float | None] = {code: system.values.get(code) for code in columns.languages}
    values[AVERAGE] = _mean(system.values, columns.languages)
    for heading, (_, members) in columns.groups.items():
        values[heading] = _mean(system.values, members)
    return _Row(system.system, values)


def _printed_row(model: PrintedModel, columns: _Columns) -> _Row:
    """A model's printed values; means over fewer languages than the paper's carry a dagger."""
    printed = model.values
    row = _Row(f"{model.name} (printed)", {code: printed.get(code) for code in columns.languages})
    average = model.average(set(columns.languages))
    row.values[AVERAGE] = _mean(printed, columns.languages) if average is None else average
    if average is None and row.values[AVERAGE] is not None:
        row.daggers.add(AVERAGE)
    for heading, (group, members) in columns.groups.items():
        if len(members) == len(group.languages):
            row.values[heading] = model.groups[group.heading]
        elif members:
            row.values[heading] = _mean(printed, members)
            row.daggers.add(heading)
        else:
            row.values[heading] = None
    return row


def _table(rows: list[_Row], ours: int, columns: _Columns, notes: list[str]) -> Table:
    """Our rows first, then the printed ones; only the first `ours` rows compete for bold."""
    labels = [row.label for row in rows]
    if len(set(labels)) < len(labels):
        raise EmsError(
            f"two rows of the table are named alike: {', '.join(labels)}; rename a system"
        )
    frame = make_frame(
        ["Model", *columns.names],
        [[row.label, *(row.values[name] for name in columns.names)] for row in rows],
    )
    daggers = {(number, name) for number, row in enumerate(rows) for name in row.daggers}
    return Table(
        frame=frame,
        blocks=[
            *balanced_blocks([*columns.languages, AVERAGE]),
            Block(list(columns.groups), spread=True),
        ],
        bold=best_places(frame, list(range(ours))),
        dagger=daggers,
        rules={ours},
        notes=notes,
        footnote=DAGGER_NOTE if daggers else "",
    )


def _notes(
    systems: list[TatoebaScores],
    columns: _Columns,
    models: list[PrintedModel],
    beside: list[PrintedModel],
) -> list[str]:
    notes = [
        f"Tatoeba {systems[0].version}: P@1 in percent, mean of both directions, for each "
        "language, then the mean over all languages, then over the groups of EMS v2 Table V. "
        "Bold: best of our systems.",
        "A group n/m has n of the m languages that the paper's mean is over; English is counted in "
        "the paper's numbers, but has no score of its own.",
    ]
    notes += _missing_notes(systems, columns.languages)
    if models and not beside:
        names = ", ".join(model.name for model in models)
        notes.append(
            f"Printed rows left out ({names}): they are of Tatoeba {PAPER_VERSION}, "
            f"these scores of {systems[0].version}."
        )
    return notes + _printed_notes(beside, columns.languages)


def _missing_notes(systems: list[TatoebaScores], languages: list[str]) -> list[str]:
    """Who lacks which language."""
    notes = []
    for system in systems:
        missing = [language for language in languages if language not in system.values]
        if missing:
            notes.append(
                f"{system.system} has no score for {', '.join(missing)}, "
                "so it has no mean that needs them."
            )
    return notes


def _printed_notes(beside: list[PrintedModel], languages: list[str]) -> list[str]:
    """What is not certain or not printed of the printed rows."""
    if not beside:
        return []
    notes = ["Rows marked printed: EMS v2 Tables IV, V and VI; they do not compete for bold."]
    about: list[tuple[str, Callable[[PrintedModel, str], bool]]] = [
        ("the paper's text leaves two readings", lambda model, code: code in model.unsettled),
        ("the paper prints no value", lambda model, code: code not in model.values),
    ]
    for what, applies in about:
        for model in beside:
            codes = [code for code in languages if applies(model, code)]
            if codes:
                notes.append(f"{model.name} (printed): {what} for {', '.join(codes)}.")
    return notes
