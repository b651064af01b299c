"""The one engine for tables of systems x columns: score files in, .tex, .md and .csv out.

A table is a declaration: which benchmark, which columns, which rows of the papers stand below ours,
and what the note says. A mean over several labels is shown only for a system that has them all, as
the papers leave a dash for models that lack a language; otherwise it would compare unlike things.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple

from ems.base.errors import EmsError
from ems.bench.scores import ENGLISH, Score, ScoreFile
from ems.tables.printed import AVERAGE
from ems.tables.scores import Families, Label, Scores, read_scores
from ems.tables.table import (
    PRINTED,
    UPPER_BOUND,
    UPPER_BOUND_NOTE,
    Block,
    Table,
    balanced_blocks,
    best_rows,
    write_table,
)

Values = Mapping[str, float | None]  # label of scores, or heading of a column -> value
Models = Mapping[str, Values]  # model -> the paper's column -> value
Order = Callable[[set[str]], list[str]]
BEST = "Bold: best of our systems."
BOTH_WAYS = "P@1 in percent, mean of both directions"


@dataclass(frozen=True)
class Column:
    """A mean over `members`, the labels of scores.

    With a `measure` it is the mean share of that measure over all labels that have any measure, 0
    where they lack this one; with `given`, a value by system that is no score. `printed` is the
    paper's name of the column; `part` is true where our members are fewer than the paper's, so
    that its number is of something else.
    """

    heading: str
    members: Sequence[str]
    printed: str = ""
    part: bool = False
    measure: str = ""
    given: Mapping[str, float | None] | None = None

    @property
    def ranked(self) -> bool:
        """Return True if systems are compared by it."""
        return not self.measure and self.given is None

    def value(self, system: Scores) -> float | None:
        """Return the mean of a system; None when it lacks one of the members."""
        if self.given is not None:
            return self.given.get(system.system)
        if not self.measure:
            return mean(system.values, self.members)
        labels = {label for values in system.measures.values() for label in values}
        shares = system.measures.get(self.measure, {})
        return sum(shares.values()) / len(labels) if labels else None


@dataclass(frozen=True)
class Printed:
    """Rows that a paper prints for the same data and protocol.

    `where` names the table, `data` what it is of: a `version`, a `protocol`, a `count` of them.
    With `every` all rows of the paper are shown as soon as one is asked for; with `paper_order`
    they stand as there. Where our columns are a part of the paper's, the mean of its values over
    ours takes the place of its mean, or, with `whole`, its mean stays; `dagger` explains which.
    `classes`: heading -> the models under it, where the paper divides its rows.
    """

    where: str
    models: Callable[[], Models]
    data: str = ""
    version: str = ""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    count: int = 0
    every: bool = False
    paper_order: bool = False
    whole: bool = False
    dagger: str = "mean of the printed values over the languages shown"
    classes: Callable[[], Mapping[str, list[str]]] = dict

    def fits(self, system: Scores) -> bool:
        """Return True if our scores are of the paper's data, scored by its protocol."""
        same = all(system.file.protocol.get(key) == v for key, v in self.protocol.items())
        as_many = not self.count or set(system.counts.values()) <= {self.count}
        return same and as_many and self.version in ("", system.version)

    def chosen(self, asked: Sequence[str], known: Sequence[str]) -> list[str]:
        """Return the requested models that this table can show."""
        if self.every:
            return list(known)
        names = known if self.paper_order else dict.fromkeys(asked)
        return [name for name in names if name in asked and name in known]


class Row(NamedTuple):
    """A row of a table: value by heading, and the headings that get a dagger."""

    label: str
    values: dict[str, float | None]
    daggers: Collection[str] = ()


@dataclass(frozen=True)
class Declaration:
    """A table of systems x columns.

    `benchmarks`: benchmark -> how the labels of its rows begin. `columns` makes the columns from
    the scores, `blocks` lays them out, `about` says what the numbers are; `more_notes` are those on
    columns and printed models. `spread` adds a row for the deviation of the seeds. `below`: measure
    -> suffix of a row of it under each system. `shared` is a measure with one row for all systems.
    `heading` stands above the labels of the rows.
    """

    benchmarks: Mapping[str, str]
    metric: str
    columns: Callable[[Sequence[Scores]], list[Column]]
    about: Callable[[Sequence[Scores]], list[str]]
    label: Label = ScoreFile.label_of
    printed: Printed | None = None
    blocks: Callable[[list[Column]], list[Block]] = lambda c: balanced_blocks(headings(c))
    seen: bool | None = None
    spread: bool = True
    below: Mapping[str, str] = field(default_factory=dict)
    shared: str = ""
    decimals: int = 1
    more_notes: Callable[[list[Column], list[str]], list[str]] = lambda columns, printed: []
    heading: str = "Model"


def write_systems(
    table: Declaration,
    scores: Sequence[Path],
    out: Path,
    printed: Sequence[str] = (),
    order: Iterable[str] = (),
    families: Families | None = None,
    names: Mapping[Path, str] | None = None,
) -> None:
    """Write a table of some score files as .tex, .md and .csv beside `out`.

    `printed` names models of the papers, `order` the systems that come first; `families` are
    systems that share a row; `names` are the rows of files of several experiments. Raises
    `EmsError` for scores that cannot share a table.
    """
    files = {name: [path for path in scores if path.stem == name] for name in table.benchmarks}
    if len(files) == 1 or not any(files.values()):
        files = {next(iter(files)): list(scores)}
    order = list(order)
    sections = {
        table.benchmarks[name]: read_scores(
            paths, name, table.metric, table.label, order, families, table.seen, names
        )
        for name, paths in files.items()
        if paths or len(files) == 1
    }
    write_sections(table, sections, out, printed, families)


def write_sections(
    table: Declaration,
    sections: Mapping[str, list[Scores]],
    out: Path,
    printed: Sequence[str] = (),
    families: Families | None = None,
) -> None:
    """Write a table of scores that were read: how the labels of rows begin -> systems.

    Raises `EmsError` when two rows have one name.
    """
    systems = [system for section in sections.values() for system in section]
    columns = table.columns(systems)
    ours, groups = _our_rows(table, sections, columns)
    theirs, printed_notes = _printed_rows(table.printed, printed, systems[0], columns)
    rows, models = [*ours, *theirs], [row.label.removesuffix(PRINTED) for row in theirs]
    labels = [row.label for row in rows]
    if len(set(labels)) < len(labels):
        raise EmsError(
            f"two rows of the table are named alike: {', '.join(labels)}; rename a system"
        )
    blocks = table.blocks(columns)
    names = [name for block in blocks for name in block.columns]
    italic = {at for at, label in enumerate(labels) if UPPER_BOUND.fullmatch(label)}
    lowest = not systems[0].file.higher_is_better
    compared = groups if table.decimals == 1 else []  # a cosine is not
    classes = table.printed.classes().values() if table.printed and models else ()
    daggers = {(at, name) for at, row in enumerate(rows) for name in row.daggers}
    notes = [
        *table.about(systems),
        *_notes_on_systems(systems, columns, families or {}),
        *table.more_notes(columns, models),
        *printed_notes,
        *([UPPER_BOUND_NOTE] if italic else []),
    ]
    made = Table(
        [table.heading, *names],
        [[row.label, *map(row.values.get, names)] for row in rows],
        blocks,
        bold={
            (at, column.heading)
            for group in compared
            for column in columns
            if column.ranked
            for at in best_rows(
                {at: rows[at].values[column.heading] for at in group if at not in italic}, lowest
            )
        },
        dagger=daggers,
        rules={
            len(ours),
            *(numbers[0] for numbers in groups[1:]),
            *(len(ours) + min(map(models.index, members)) for members in classes),
        },
        italic=italic,
        notes=list(dict.fromkeys(notes)),
        footnote=table.printed.dagger if table.printed and daggers else "",
        decimals=table.decimals,
    )
    write_table(made, out)


def headings(columns: Iterable[Column]) -> list[str]:
    """Return the headings of columns."""
    return [column.heading for column in columns]


def mean(values: Values, members: Sequence[str]) -> float | None:
    """Return the mean over `members`; None when there are none or one has no value."""
    present = [value for name in members if (value := values.get(name)) is not None]
    return sum(present) / len(present) if present and len(present) == len(members) else None


# --- columns and words that tables share


def labels_of(systems: Iterable[Scores]) -> set[str]:
    """Return all labels that some systems have scores of."""
    return {label for system in systems for label in system.values}


def one_each(systems: Sequence[Scores], order: Order, models: Models | None = None) -> list[Column]:
    """Return a column for each label, and their mean."""
    labels = order(labels_of(systems))
    return [*(Column(label, [label], label) for label in labels), average(labels, models)]


def average(labels: Sequence[str], models: Models | None = None) -> Column:
    """Return the mean over labels; a part of the paper's where its rows have others."""
    printed = {name for values in (models or {}).values() for name in values}
    part = bool(models) and set(labels) != printed - {AVERAGE, f"{ENGLISH}-{ENGLISH}"}
    return Column(AVERAGE, labels, AVERAGE, part)


def part_of(heading: str, paper: Sequence[str], scored: Container[str]) -> Column:
    """Return the mean over those members of a paper's column that were scored, n/m where some were
    not.
    """
    members = [name for name in paper if name in scored]
    if len(members) == len(paper):
        return Column(heading, members, heading)
    name = heading.partition(" (")[0].removesuffix(" Avg.")
    return Column(f"{name} {len(members)}/{len(paper)}", members, heading, part=True)


def span(numbers: Iterable[int]) -> str:
    """Return the range of some numbers: "1,000", or "99 to 1,000"."""
    numbers = set(numbers)
    return " to ".join(f"{end:,}" for end in sorted({min(numbers), max(numbers)}))


def counted(systems: Iterable[Scores]) -> str:
    """Return the range of the numbers of sentences."""
    return span(count for system in systems for count in system.counts.values())


def language_direction(file: ScoreFile, row: Score) -> str:
    """Return a direction between languages of the experiment: "de-fr"."""
    return f"{file.languages[row.source]}-{file.languages[row.target]}"


# --- our rows


def _our_rows(
    table: Declaration, sections: Mapping[str, list[Scores]], columns: list[Column]
) -> tuple[list[Row], list[list[int]]]:
    """Return all rows of ours, and the numbers of the rows that compete with each other.

    Below the row of a system stand the deviation of its seeds and its other measures.
    """
    systems = [system for section in sections.values() for system in section]
    seeded = any(len(values) > 1 for each in systems for values in each.seeds.values())
    below = {
        measure: suffix
        for measure, suffix in table.below.items()
        if any(each.measures.get(measure) for each in systems)
    }
    rows: list[Row] = []
    groups: list[list[int]] = []
    for prefix, section in sections.items():
        groups.append([])
        for system in section:
            groups[-1].append(len(rows))
            label = prefix + system.system
            rows.append(Row(label, {column.heading: column.value(system) for column in columns}))
            if table.spread and seeded:
                spread = {column.heading: _deviation(system, column.members) for column in columns}
                rows.append(Row(f"{label}, s.d.", spread))
            for measure, suffix in below.items():
                values = system.measures.get(measure, {})
                rows.append(_row_of_means(f"{label}, {suffix}", values, columns))
    shared = {label: v for s in systems for label, v in s.measures.get(table.shared, {}).items()}
    return [*rows, *([_row_of_means(table.shared, shared, columns)] if shared else [])], groups


def _row_of_means(label: str, values: Values, columns: list[Column]) -> Row:
    return Row(label, {column.heading: mean(values, column.members) for column in columns})


def _deviation(system: Scores, members: Sequence[str]) -> float | None:
    """Return the standard deviation (of a sample) of the seeds' means over `members`.

    None for fewer than two seeds, or where the members have unequal numbers of them.
    """
    seeds = [system.seeds.get(name, []) for name in members]
    if len({len(values) for values in seeds}) != 1:
        return None
    means = [sum(values) / len(values) for values in zip(*seeds, strict=True)]
    return stdev(means) if len(means) > 1 else None


# --- the papers' rows


def _printed_rows(
    paper: Printed | None, asked: Sequence[str], system: Scores, columns: list[Column]
) -> tuple[list[Row], list[str]]:
    """Return the rows of a paper that are asked for, and the notes on them.

    There are none beside scores of other data, and none of a model without any of the columns.
    """
    if paper is None or not asked:
        return [], []
    models = paper.models()
    names = paper.chosen(asked, list(models))
    if names and not paper.fits(system):
        return [], [
            f"Printed rows left out ({', '.join(names)}): they are of {paper.data}, these scores "
            f"of {system.version}."
        ]
    rows = [_printed_row(name, models[name], columns, paper.whole) for name in names]
    rows = [row for row in rows if {*row.values.values()} != {None}]
    if not rows:
        return [], []
    notes = [f"Rows marked printed: {paper.where}; they do not compete for bold."]
    classes = [f"{name}: {', '.join(members)}" for name, members in paper.classes().items()]
    lacking = [name for name in dict.fromkeys(asked) if name not in models]
    if classes:
        notes.append(f"As the paper has them, {'; '.join(classes)}.")
    if lacking and not paper.every:
        notes.append(f"The paper prints no row of {', '.join(lacking)} there.")
    return rows, notes


def _printed_row(name: str, printed: Values, columns: list[Column], whole: bool) -> Row:
    """Return a model's values; with a dagger those that are not what the paper prints."""
    values, daggers = {}, set()
    for column in columns:
        value = printed.get(column.printed)
        if column.part or column.printed not in printed:
            value = value if whole else mean(printed, column.members)
            if column.part if whole else value is not None:
                daggers.add(column.heading)
        values[column.heading] = value
    return Row(name + PRINTED, values, daggers)


# --- notes


def _notes_on_systems(
    systems: Sequence[Scores], columns: list[Column], families: Families
) -> list[str]:
    """Name the rows of several systems, the missing score files, columns that no system has, and
    what single systems lack.
    """
    names = dict.fromkeys(row.system for row in systems if row.system in families)
    files = dict.fromkeys(file for system in systems for file in system.absent)
    notes = [f"A system of its own for each language: {', '.join(names)}."] if names else []
    notes += [f"Dashes, since there is no score file {', '.join(files)}."] if files else []
    ranked = [column for column in columns if column.ranked]
    empty = [column.heading for column in ranked if not column.members]
    notes += [f"No system was scored on {', '.join(empty)}."] if empty else []
    for system in systems:
        lacking = [c for c in ranked if c.members and c.value(system) is None]
        single = [column.heading for column in lacking if len(column.members) == 1]
        if lacking and (system.values or not system.absent):
            named = ", ".join(single or headings(lacking))
            notes.append(f"{system.system} has no score for {named}; means need all of theirs.")
    return notes
