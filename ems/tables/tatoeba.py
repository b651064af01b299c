"""The Tatoeba tables: EMS v2 Table IV (languages trained on) above Table V (groups of them) in one
tabular, and Table VI (languages that the encoder never saw).

Notable choices:
- groups are the languages that the printed means average (`groups.csv`), as far as we have them;
- printed rows stand only beside scores of the same data, Tatoeba v1, and never compete for bold.
  Where ours are fewer languages than the paper's, a printed mean would be of other languages: the
  mean of the printed values over ours takes its place, with a dagger.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ems.errors import EmsError
from ems.tables.papers import of_ems
from ems.tables.printed import (
    AVERAGE,
    Group,
    PrintedModel,
    in_paper_order,
    load_groups,
    load_models,
)
from ems.tables.rows import Row, joined_notes, make_table, mean, missing_notes, system_row
from ems.tables.scores import (
    Families,
    Scores,
    in_order,
    joined,
    only_seen,
    only_unseen,
    read_scores,
)
from ems.tables.table import Block, balanced_blocks
from ems.tables.write import write_table

PAPER_VERSION = "v1"  # the Tatoeba data of the paper, as LASER published it
SEEN_NOTES = [
    "P@1 in percent, mean of both directions, for each language, then the mean over all languages, "
    "then over the groups of EMS v2 Table V. Bold: best of our systems.",
    "A group n/m has n of the m languages that the paper's mean is over; English is counted in "
    "the paper's numbers, but has no score of its own.",
]
UNSEEN_NOTES = [
    "P@1 in percent, mean of both directions, for each language that our systems were not trained "
    "on, then the mean over all of these languages. Bold: best of our systems.",
]
TRAINED = ("LASER", "LaBSE")  # on "several" languages of Table VI, says its caption


@dataclass(frozen=True)
class _Columns:
    """Languages (Tatoeba codes) and, per group, its heading and the members that we have."""

    languages: list[str]
    groups: dict[str, tuple[Group, list[str]]]

    @property
    def blocks(self) -> list[Block]:
        groups = [Block(list(self.groups), spread=True)] if self.groups else []
        return [*balanced_blocks([*self.languages, AVERAGE]), *groups]


def write_tatoeba_table(
    scores: list[Path],
    out: Path,
    printed: list[str],
    order: list[str] | None = None,
    families: Families | None = None,
) -> None:
    """Write EMS v2 Tables IV and V of some systems as .tex, .md and .csv beside `out`.

    `scores` are the systems' tatoeba.json, of which the languages trained on are shown; `printed`
    names models of EMS v2 Table IV ("EMS", "LASER") to show as printed; `order` names the systems
    that come first, the others follow as given; `families` are systems that share a row, each with
    languages of its own.
    Raises `EmsError` for scores of different data, a system twice, and models nobody knows.
    """
    systems = in_order(only_seen(read_scores(scores, "tatoeba")), order or [])
    rows = joined(systems, families)
    columns = _columns(rows, load_groups())
    notes = [*SEEN_NOTES, *joined_notes(rows, families)]
    _write(rows, columns, _printed_models(printed), notes, out)


def write_unseen_table(
    scores: list[Path], out: Path, printed: list[str], order: list[str] | None = None
) -> None:
    """Write EMS v2 Table VI: as `write_tatoeba_table`, the languages that no system saw, no groups.

    Raises `EmsError` as that does, and when the scores have no unseen language.
    """
    systems = only_unseen(in_order(read_scores(scores, "tatoeba"), order or []))
    _write(systems, _columns(systems, ()), _printed_models(printed), UNSEEN_NOTES, out)


def _write(
    systems: list[Scores],
    columns: _Columns,
    models: list[PrintedModel],
    about: list[str],
    out: Path,
) -> None:
    same = systems[0].version == PAPER_VERSION
    beside = [model for model in models if same and _has_some(model, columns)]
    ours = [_our_row(system, columns) for system in systems]
    rows = [*ours, *(_printed_row(model, columns) for model in beside)]
    first, *others = about
    notes = [f"Tatoeba {systems[0].version}: {first}", *others]
    notes += missing_notes(systems, columns.languages)
    notes += [] if same else _left_out_notes(systems[0].version, models)
    notes += _printed_notes(beside, columns)
    write_table(make_table(rows, len(ours), columns.blocks, notes), out)


def _printed_models(names: Sequence[str]) -> list[PrintedModel]:
    models = load_models()
    unknown = [name for name in names if name not in models]
    if unknown:
        raise EmsError(
            f"no printed Tatoeba scores of {', '.join(unknown)}; EMS v2 Tables IV and VI print "
            f"{', '.join(models)}: correct the names of the printed rows"
        )
    return [models[name] for name in dict.fromkeys(names)]


def _columns(systems: list[Scores], groups: Sequence[Group]) -> _Columns:
    languages = {language for system in systems for language in system.values}
    found = {}
    for group in groups:
        members = [language for language in group.languages if language in languages]
        partial = f"{group.name} {len(members)}/{len(group.languages)}"
        whole = len(members) == len(group.languages)
        found[group.heading if whole else partial] = (group, members)
    return _Columns(in_paper_order(languages), found)


def _our_row(system: Scores, columns: _Columns) -> Row:
    row = system_row(system, columns.languages)
    for heading, (_, members) in columns.groups.items():
        row.values[heading] = mean(system.values, members)
    return row


def _has_some(model: PrintedModel, columns: _Columns) -> bool:
    """Whether the paper prints any of these columns of a model: of mUSE it has one group only."""
    return any(value is not None for value in _printed_row(model, columns).values.values())


def _printed_row(model: PrintedModel, columns: _Columns) -> Row:
    """A model's printed values; means over fewer languages than the paper's carry a dagger."""
    printed = model.values
    row = Row(f"{model.name} (printed)", {code: printed.get(code) for code in columns.languages})
    average = model.average(set(columns.languages))
    row.values[AVERAGE] = mean(printed, columns.languages) if average is None else average
    if average is None and row.values[AVERAGE] is not None:
        row.daggers.add(AVERAGE)
    for heading, (group, members) in columns.groups.items():
        if len(members) == len(group.languages):
            row.values[heading] = model.groups[group.heading]
        else:
            row.values[heading] = mean(printed, members)
            row.daggers.update({heading} if row.values[heading] is not None else ())
    return row


def _left_out_notes(version: str, models: list[PrintedModel]) -> list[str]:
    if not models:
        return []
    names = ", ".join(model.name for model in models)
    return [
        f"Printed rows left out ({names}): they are of Tatoeba {PAPER_VERSION}, "
        f"these scores of {version}."
    ]


def _printed_notes(beside: list[PrintedModel], columns: _Columns) -> list[str]:
    """Where the printed rows are from, and what is not certain or not printed of them."""
    if not beside:
        return []
    notes = [_source_note(beside, columns)]
    shown = set(columns.languages)
    trained = [
        model.name for model in beside if model.name in TRAINED and shown & set(model.unseen)
    ]
    if trained:
        names = ", ".join(trained)
        notes.append(f"Trained on several languages of Table VI, says the paper: {names}.")
    about: list[tuple[str, Callable[[PrintedModel, str], bool]]] = [
        ("the paper's text leaves two readings", lambda model, code: code in model.unsettled),
        ("the paper prints no value", lambda model, code: code not in model.values),
    ]
    for what, applies in about:
        for model in beside:
            codes = [code for code in columns.languages if applies(model, code)]
            if codes and model.seen:
                notes.append(f"{model.name} (printed): {what} for {', '.join(codes)}.")
    return notes


def _source_note(models: list[PrintedModel], columns: _Columns) -> str:
    """The paper's tables that the columns are from."""
    shown = set(columns.languages)
    seen = {code for model in models for code in model.seen}
    unseen = {code for model in models for code in model.unseen}
    used = {"IV": shown & seen, "V": columns.groups, "VI": shown & unseen}
    where = of_ems(*(name for name, columns_of in used.items() if columns_of))
    return f"Rows marked printed: {where}; they do not compete for bold."
