"""Tables of systems x columns: score files in, .tex, .md and .csv out. A mean is shown only for a
system with all its labels: means over different languages cannot be compared.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple

from pydantic import Field

from ems.base.errors import mistake
from ems.base.schema import Settings
from ems.bench.scores import ENGLISH, UNSEEN, ScoreFile
from ems.bench.significance import DRAWS, SIGNIFICANT, Sample, surely_best
from ems.tables.printed import AVERAGE
from ems.tables.scores import Families, Label, Scores, read_scores
from ems.tables.table import PRINTED, Block, Table, balanced_blocks, best_rows, note, write_table

Values = Mapping[str, float | None]  # label of scores, or heading of a column -> value
Models = Mapping[str, Values]  # model -> the paper's column -> value
Order = Callable[[set[str]], list[str]]
BEST = "Bold: best of our systems."
SPREAD = " ± standard deviation (of each column: .csv)"
MOST_UNCERTAIN = 8  # columns with intervals in a block
DEVIATION = ", s.d."  # suffix of the label of a row
# the label of a row of LaBSE, the upper bound of EMS v2 (section V), printed or measured by us
UPPER_BOUND = re.compile(r"(?:.*: )?labse(?: \(printed\)|, .*)?", re.IGNORECASE)
UPPER_BOUND_NOTE = "In italics: LaBSE, the papers' upper bound, which does not compete for bold."


@dataclass(frozen=True)
class Column:
    """A column: the mean of the scores whose labels are `members`."""

    heading: str
    members: Sequence[str]
    printed: str = ""  # the paper's name of the column
    part: bool = False  # our members are fewer, so the paper's number is a mean over more
    group: bool = False  # a mean that only the paper shows: left out without a printed value
    measure: str = ""  # shows its mean share over all labels with any measure
    by_system: Mapping[str, float | None] | None = None  # values that are no scores

    @property
    def ranked(self) -> bool:
        """True if systems are compared by this column."""
        return not self.measure and self.by_system is None

    def value(self, system: Scores) -> float | None:
        if self.by_system is not None:
            return self.by_system.get(system.system)
        if not self.measure:
            return mean(system.values, self.members)
        labels = {label for values in system.measures.values() for label in values}
        shares = system.measures.get(self.measure, {})
        return sum(shares.values()) / len(labels) if labels else None


class PrintedRows(Settings):
    """Rows that a paper prints for the same data and protocol: `rows` in table.yaml."""

    source: str = ""  # names the table; in table.yaml, what follows `paper`
    models: Callable[[], Models] = dict
    data: str = ""  # describes its data, which the next three check
    version: str = ""
    protocol: dict[str, Any] = Field({})
    count: int = 0  # of sentences
    all_rows: bool = False  # one requested row shows all rows of the paper
    keep_mean: bool = False  # of more columns than ours; else it is computed again over ours
    dagger: str = "mean of the printed values over the languages shown"
    groups: str = ""  # explains the columns of its groups
    classes: Callable[[], Mapping[str, list[str]]] = dict  # heading -> the models under it

    def fits(self, system: Scores) -> bool:
        same = all(system.file.protocol.get(key) == v for key, v in self.protocol.items())
        as_many = not self.count or set(system.counts.values()) <= {self.count}
        return same and as_many and self.version in ("", system.file.version)


class TableRow(NamedTuple):
    """A row of a table: heading -> value, and the headings with a dagger."""

    label: str
    values: dict[str, float | None]
    daggers: Collection[str] = ()


@dataclass(frozen=True)
class Declaration:
    """A table of systems x columns."""

    benchmarks: Mapping[str, str]  # benchmark -> prefix of the labels of its rows
    metric: str
    columns: Callable[[Sequence[Scores]], list[Column]]  # from the scores
    about: Callable[[Sequence[Scores]], list[str]]  # describes the numbers
    label: Label = ScoreFile.label_of
    printed: PrintedRows | None = None
    blocks: Callable[[list[Column]], list[Block]] = lambda c: balanced_blocks(headings(c))  # layout
    seen: bool | None = None
    spread: bool = True  # adds a row with the standard deviation of the seeds
    below: Mapping[str, str] = field(default_factory=dict)  # measure -> suffix of a row
    shared: str = ""  # a measure with one row for all systems
    decimals: int = 1
    heading: str = "Model"
    intervals: bool = False


def write_systems(
    table: Declaration,
    scores: Sequence[Path],
    out: Path,
    printed: Sequence[str] = (),
    order: Sequence[str] = (),
    families: Families | None = None,
    names: Mapping[Path, str] | None = None,
) -> None:
    """Write a table of score files to `out` as .tex, .md and .csv, with models of the papers,
    `printed`; the other arguments are as in `read_scores`. Raises `EmsError` for scores that cannot
    share it.
    """
    files = {name: [path for path in scores if path.stem == name] for name in table.benchmarks}
    if len(files) == 1 or not any(files.values()):
        files = {next(iter(files)): list(scores)}
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
    """Write a table of `Scores`; `sections`: prefix of the labels of rows -> systems."""
    systems = [system for section in sections.values() for system in section]
    columns = [each for each in table.columns(systems) if each.members or not each.group]
    theirs, printed_notes = _printed_rows(table.printed, printed, systems[0], columns)
    shown = {name for row in theirs for name, value in row.values.items() if value is not None}
    columns = [column for column in columns if column.heading in shown or not column.group]
    ours, groups = _our_rows(table, sections, columns)
    rows, models = [*ours, *theirs], [row.label.removesuffix(PRINTED) for row in theirs]
    labels = [row.label for row in rows]
    if len(set(labels)) < len(labels):
        raise mistake("rows named alike", labels=labels)
    blocks = table.blocks(columns)
    names = [name for block in blocks for name in block.columns]
    italic = {at for at, label in enumerate(labels) if UPPER_BOUND.fullmatch(label)}
    bold, lowest = set(), not systems[0].file.higher_is_better
    ranked = [column for column in columns if column.ranked and table.decimals == 1]  # no cosine
    for group in groups:
        for name in headings(ranked):
            values = {at: rows[at].values[name] for at in group if at not in italic}
            bold |= {(at, name) for at in best_rows(values, lowest)}
    classes = table.printed.classes().values() if table.printed and models else ()
    daggers = {(at, name) for at, row in enumerate(rows) for name in row.daggers}
    notes = [
        *table.about(systems),
        *_system_notes(systems, columns, families or {}),
        *printed_notes,
        *([UPPER_BOUND_NOTE] if italic else []),
    ]
    made = Table(
        [table.heading, *names],
        [[row.label, *map(row.values.get, names)] for row in rows],
        blocks,
        bold=bold,
        dagger=daggers,
        rules={
            len(ours),
            *(min(group) for group in groups[1:]),
            *(len(ours) + min(map(models.index, members)) for members in classes),
        },
        italic=italic,
        deviations={at for at, label in enumerate(labels) if label.endswith(DEVIATION)},
        notes=list(dict.fromkeys(notes)),
        footnote=table.printed.dagger if table.printed and daggers else "",
        decimals=table.decimals,
    )
    write_table(_with_intervals(made, groups, ranked, lowest) if table.intervals else made, out)


def _with_intervals(
    table: Table, groups: list[dict[int, Scores]], columns: list[Column], lowest: bool
) -> Table:
    """Add the intervals of our rows, and mark only systems that are significantly the best. Columns
    of one language or pair are read together, so they are one family of tests; a mean is its own.
    """
    ends, bold, unpaired = {}, set(), set()
    for group in groups:
        families: dict[str, dict[str, dict[int, Sample]]] = {}  # -> column -> row
        for column in columns:
            name = column.heading
            scored = {at: own for at, own in group.items() if column.value(own) is not None}
            samples = {at: system.sample(column.members) for at, system in scored.items()}
            ends |= {(at, name): own.interval for at, own in samples.items() if own.interval}
            unpaired |= {name for own in samples.values() if own.interval and not own.parts}
            family = "" if len(column.members) < 3 and name != AVERAGE else name
            rivals = {at: own for at, own in samples.items() if at not in table.italic}
            families.setdefault(family, {})[name] = rivals
        for family in families.values():
            bold |= surely_best(family, lowest)
    names, rows, doubtful = [*table.columns], [[*row] for row in table.rows], {n for _, n in ends}
    for name in (name for name in table.columns if name in doubtful):
        names += [f"{name} low", f"{name} high"]
        for at, row in enumerate(rows):
            row += ends.get((at, name), (None, None))
    notes = [re.sub(r" ?Bold: [^.]*[.]", "", text.replace(SPREAD, "")) for text in table.notes]
    notes += [note("intervals", draws=DRAWS, p=SIGNIFICANT)] if ends else []
    notes += [note("unpaired")] if unpaired else []
    if lacking := [name for name in headings(columns) if name not in doubtful]:
        notes.append(f"Without an interval, so never bold: {', '.join(lacking)}.")
    blocks = [
        replace(block, columns=part.columns)
        for block in table.stacked
        for part in balanced_blocks(block.columns, MOST_UNCERTAIN)
    ]
    own = {"bold": bold, "deviations": set(), "notes": [*filter(None, notes)]}
    return replace(table, columns=names, rows=rows, blocks=blocks, **own)


# --- columns and notes that tables share


def headings(columns: Iterable[Column]) -> list[str]:
    return [column.heading for column in columns]


def one_block(columns: Iterable[Column]) -> list[Block]:
    return [Block(headings(columns))]


def mean(values: Values, members: Sequence[str]) -> float | None:
    """Return the mean over `members`; None when there are none or one has no value."""
    present = [value for name in members if (value := values.get(name)) is not None]
    return sum(present) / len(present) if present and len(present) == len(members) else None


def labels_of(systems: Iterable[Scores]) -> set[str]:
    return {label for system in systems for label in system.values}


def one_each(systems: Sequence[Scores], order: Order, models: Models | None = None) -> list[Column]:
    """Return a column for each label, and their mean."""
    labels = order(labels_of(systems))
    return [*(Column(label, [label], label) for label in labels), average(labels, models)]


def own_codes(languages: Mapping[str, str]) -> dict[str, str]:
    """Return benchmark's code -> ours, or its own for unseen languages and if two share ours."""
    counts = Counter(languages.values())
    alone = {code for code in counts if counts[code] == 1 and code != UNSEEN}
    return {name: code if code in alone else name for name, code in languages.items()}


def average(labels: Sequence[str], models: Models | None = None) -> Column:
    """Return the column of a mean, a `part` if the papers' rows have other labels."""
    printed = {name for values in (models or {}).values() for name in values}
    part = bool(models) and set(labels) != printed - {AVERAGE, f"{ENGLISH}-{ENGLISH}"}
    return Column(AVERAGE, labels, AVERAGE, part)


def part_of(heading: str, paper: Sequence[str], scored: Container[str]) -> Column:
    """Return a mean over the scored members of a paper's group, named n/m if some are missing."""
    members = [name for name in paper if name in scored]
    if len(members) == len(paper):
        return Column(heading, members, heading, group=True)
    name = heading.partition(" (")[0].removesuffix(" Avg.")
    return Column(f"{name} {len(members)}/{len(paper)}", members, heading, part=True, group=True)


def span(numbers: Iterable[int]) -> str:
    """Return the range of the numbers: "1,000" or "99 to 1,000"."""
    numbers = set(numbers) or {0}
    return " to ".join(f"{end:,}" for end in sorted({min(numbers), max(numbers)}))


def counted(systems: Iterable[Scores]) -> str:
    return span(count for system in systems for count in system.counts.values())


def _our_rows(
    table: Declaration, sections: Mapping[str, list[Scores]], columns: list[Column]
) -> tuple[list[TableRow], list[dict[int, Scores]]]:
    """Return our rows (with deviations and other measures), and the groups (row number -> system)
    that compete for bold.
    """
    systems = [system for section in sections.values() for system in section]
    seeded = any(len(values) > 1 for each in systems for values in each.seeds.values())
    measured = {name for each in systems for name, values in each.measures.items() if values}
    rows: list[TableRow] = []
    groups: list[dict[int, Scores]] = []
    for prefix, section in sections.items():
        groups.append({})
        for system in section:
            groups[-1][len(rows)] = system
            label = prefix + system.system
            rows.append(TableRow(label, {each.heading: each.value(system) for each in columns}))
            if table.spread and seeded:
                spread = {each.heading: _deviation(system, each.members) for each in columns}
                rows.append(TableRow(label + DEVIATION, spread))
            for measure in (name for name in table.below if name in measured):
                means = _means(system.measures.get(measure, {}), columns)
                rows.append(TableRow(f"{label}, {table.below[measure]}", means))
    shared = {label: v for s in systems for label, v in s.measures.get(table.shared, {}).items()}
    if shared:
        rows.append(TableRow(table.shared, _means(shared, columns)))
    return rows, groups


def _means(values: Values, columns: list[Column]) -> dict[str, float | None]:
    return {column.heading: mean(values, column.members) for column in columns}


def _deviation(system: Scores, members: Sequence[str]) -> float | None:
    """Return the standard deviation of the seeds' means; None for one seed or unequal numbers."""
    seeds = [system.seeds.get(name, []) for name in members]
    if len({len(values) for values in seeds}) != 1:
        return None
    means = [sum(values) / len(values) for values in zip(*seeds, strict=True)]
    return stdev(means) if len(means) > 1 else None


def _printed_rows(
    paper: PrintedRows | None, requested: Sequence[str], system: Scores, columns: list[Column]
) -> tuple[list[TableRow], list[str]]:
    """Return the rows of a paper, in its order, and their notes; none for scores of other data."""
    if paper is None or not requested:
        return [], []
    models = paper.models()
    names = [name for name in models if paper.all_rows or name in requested]
    if names and not paper.fits(system):
        reason = f"they are of {paper.data}, these scores of {system.file.version}"
        return [], [f"Printed rows left out ({', '.join(names)}): {reason}."]
    rows = []
    for name in names:
        values, daggers = {}, set()
        for column in columns:
            value = models[name].get(column.printed)
            if column.part or column.printed not in models[name]:
                value = value if paper.keep_mean else mean(models[name], column.members)
                if column.part if paper.keep_mean else value is not None:
                    daggers.add(column.heading)
            values[column.heading] = value
        if {*values.values()} != {None}:
            rows.append(TableRow(name + PRINTED, values, daggers))
    if not rows:
        return [], []
    notes = [f"Rows marked printed: {paper.source}; they do not compete for bold."]
    notes += [paper.groups] if paper.groups and any(column.group for column in columns) else []
    classes = [f"{name}: {', '.join(members)}" for name, members in paper.classes().items()]
    if classes:
        notes.append(f"The paper's groups: {'; '.join(classes)}.")
    return rows, notes


def _system_notes(systems: list[Scores], columns: list[Column], families: Families) -> list[str]:
    """Name rows of several systems, missing score files and missing scores."""
    names = dict.fromkeys(row.system for row in systems if row.system in families)
    files = dict.fromkeys(file for system in systems for file in system.absent)
    notes = [f"One system per language: {', '.join(names)}."] if names else []
    notes += [f"A dash: no score file {', '.join(files)}."] if files else []
    ranked = [column for column in columns if column.ranked]
    for system in systems:
        lacking = [each for each in ranked if each.members and each.value(system) is None]
        single = [column.heading for column in lacking if len(column.members) == 1]
        if lacking and (system.values or not system.absent):
            named = ", ".join(single or headings(lacking))
            notes += [f"{system.system} has no score for {named}; a mean needs all of its parts."]
    return notes
