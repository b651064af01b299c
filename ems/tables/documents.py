"""Tables of classification: EMS v2 Tables XI (MLDoc), XII and XIII (Amazon reviews), Lightweight
Table 3 (MLDoc, a model for each pair) with what its Table 10 adds, the monolingual paper's Tables 1
(XNLI) and 2 (RCV2 titles), and those of SIB-200, counterfactual sentences and PAWS-X, which no
paper of ours prints.

Notable choices:
- a column "en-de" is learnt in English and tested in German: the paper's right arrow; "de-en" is
  its left one;
- a second line under each of ours says how much the seeds differ: the standard deviation of a
  sample, under the average that of the seeds' averages;
- where all are learnt in English, English itself stands first and is not averaged;
- where a class may be frequent (all benchmarks that no paper of ours prints) the accuracy of the
  most frequent class stands under ours: half of PAWS-X, seven tenths of German counterfactuals;
- printed rows stand only beside data of the version that the papers have, and never compete for
  bold. Where ours are fewer directions than the paper's, the mean of the printed values over ours
  takes the place of the printed average, with a dagger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ems.errors import EmsError
from ems.tables.accuracies import Accuracies, deviation, read_accuracies
from ems.tables.papers import PRINTED_IN
from ems.tables.printed import (
    ACCURACIES,
    AVERAGE,
    in_table_one_order,
    load_accuracies,
    load_classes,
)
from ems.tables.rows import Row, joined_notes, make_table, mean, missing_notes
from ems.tables.scores import Families, Scores, in_order, joined
from ems.tables.table import Block, balanced_blocks
from ems.tables.write import write_table

PAPER_VERSION = "v1"
MAJORITY = "most frequent class"


@dataclass(frozen=True)
class About:
    """What a table is of: the words of its note, the benchmark where it is not the table's name,
    and whether every row of the paper is shown, or those that the experiment names.
    """

    title: str
    benchmark: str = ""
    every: bool = False


TABLES = {
    "mldoc": About("MLDoc, zero-shot: the topic of a news item"),
    "mldoc_bilingual": About("MLDoc, zero-shot, models of one pair each", "mldoc", every=True),
    "cls": About("Amazon reviews version 1 (CLS), zero-shot"),
    "marc": About("Amazon reviews version 2 (MARC), zero-shot"),
    "rcv2": About("RCV2 headlines, zero-shot", every=True),
    "xnli": About("XNLI, learnt in English; Avg. without English", every=True),
    "sib200": About("SIB-200, seven topics, learnt in English; Avg. without English"),
    "counterfactual": About(
        "Amazon counterfactual sentences, learnt in English; Avg. without English"
    ),
    "pawsx": About("PAWS-X, cosine with the threshold of English dev; Avg. without English"),
}


@dataclass(frozen=True)
class Columns:
    """Directions in the order of the table, and the heading of each."""

    headings: dict[str, str]

    @property
    def averaged(self) -> list[str]:
        """The directions that the average is of: English is no test of a transfer from English."""
        return [name for name in self.headings if name != "en-en"]

    @property
    def blocks(self) -> list[Block]:
        """A block for each language pair where there are domains, else blocks of like size."""
        names = list(self.headings)
        if not any(" " in name for name in names):
            return balanced_blocks([*self.headings.values(), AVERAGE])
        pairs: dict[str, list[str]] = {}
        for name in names:
            pair = "-".join(sorted(name.partition(" ")[0].split("-")))
            pairs.setdefault(pair, []).append(self.headings[name])
        *front, last = pairs.values()
        return [*map(Block, front), Block([*last, AVERAGE])]


def write_accuracy_table(
    table: str,
    scores: list[Path],
    out: Path,
    printed: Sequence[str] = (),
    order: list[str] | None = None,
    families: Families | None = None,
) -> None:
    """Write accuracies (percent, mean of the seeds) as .tex, .md and .csv beside `out`.

    `table` is one of TABLES, `scores` are the systems' files of its benchmark; `printed` names
    models of the paper to show as printed; `order` names the systems that come first, the others
    follow as given; `families` are systems that share a row, each with directions of its own.
    Raises `EmsError` for scores of different data and for a system twice.
    """
    benchmark = TABLES[table].benchmark or table
    if not scores:
        raise EmsError(
            "no score files were given; name at least one results/<experiment>/scores/<system>/"
            f"{benchmark}.json, or leave the table out of the experiment"
        )
    read = read_accuracies(scores, benchmark)
    systems = joined(in_order(read.systems, order or []), families)
    known = load_accuracies(table) if table in ACCURACIES else {}
    columns = _columns(systems, known)
    version = systems[0].version
    beside = _chosen(table, known, printed) if version == PAPER_VERSION else {}
    ours = [row for system in systems for row in _rows(system, read, columns, families or {})]
    if not known and read.majority:
        ours.append(_row(MAJORITY, read.majority, columns))
    rows = [*ours, *(_printed_row(name, values, columns, known) for name, values in beside.items())]
    notes = [
        _note(table, version, read),
        *joined_notes(systems, families),
        *missing_notes(systems, list(columns.headings)),
        *_printed_notes(table, version, beside, known, printed),
    ]
    first = {system.system for system in systems}
    means = [number for number, row in enumerate(ours) if row.label in first]
    made = make_table(rows, len(ours), columns.blocks, notes, means)
    rules = {len(ours) + at for at in _class_starts(table, list(beside))}
    write_table(replace(made, rules=made.rules | rules), out)


def _columns(systems: list[Scores], known: Mapping[str, Mapping[str, float]]) -> Columns:
    """The directions of any system: the paper's first, as it has them, then the others."""
    there = {name for system in systems for name in system.values}
    paper = [name for values in known.values() for name in values if name != AVERAGE]
    languages = in_table_one_order({part for name in there for part in _parts(name)[:2]})
    others = sorted(there, key=lambda name: _place(name, languages))
    names = [name for name in dict.fromkeys([*paper, *others]) if name in there]
    names = sorted(names, key=lambda name: name != "en-en")  # stable: English first
    one_source = "en-en" in there
    return Columns({name: _target(name) if one_source else name for name in names})


def _parts(name: str) -> tuple[str, str, str]:
    """ "en-de books" -> "en", "de", " books"."""
    pair, space, domain = name.partition(" ")
    source, _, target = pair.partition("-")
    return source, target, space + domain


def _place(name: str, languages: list[str]) -> tuple[int, str, bool]:
    """Where a direction stands: by the language beside English, its domain, from English first."""
    source, target, domain = _parts(name)
    return languages.index(target if source == "en" else source), domain, source != "en"


def _target(name: str) -> str:
    return _parts(name)[1]


def _rows(system: Scores, read: Accuracies, columns: Columns, families: Families) -> list[Row]:
    """A system's means, and under them what else is known: the seeds' deviations, or precision."""
    headings = columns.headings
    rows = [_row(system.system, system.values, columns)]
    members = [system.system, *families.get(system.system, ())]
    seeds = {k: v for member in members for k, v in read.seeds.get(member, {}).items()}
    precision = {k: v for member in members for k, v in read.precision.get(member, {}).items()}
    if read.seeded:
        values = {head: deviation(seeds.get(name, [])) for name, head in headings.items()}
        rows.append(Row(f"{system.system}, s.d.", {**values, AVERAGE: _spread(seeds, columns)}))
    if read.ranked:
        rows.append(_row(f"{system.system}, AP", precision, columns))
    return rows


def _row(label: str, values: Mapping[str, float], columns: Columns) -> Row:
    shown = {head: values.get(name) for name, head in columns.headings.items()}
    return Row(label, {**shown, AVERAGE: mean(values, columns.averaged)})


def _spread(seeds: Mapping[str, list[float]], columns: Columns) -> float | None:
    """The deviation of the seeds' averages; None where they are not all of all directions."""
    of_each = [seeds.get(name, []) for name in columns.averaged]
    if len({len(values) for values in of_each}) != 1:
        return None
    return deviation([sum(values) / len(values) for values in zip(*of_each, strict=True)])


def _class_starts(table: str, beside: list[str]) -> list[int]:
    """The first printed row of each class of models, where the paper has classes."""
    classes = load_classes(table).values() if beside and table in ACCURACIES else ()
    return [min(map(beside.index, models)) for models in classes]


def _chosen(
    table: str, known: dict[str, dict[str, float]], printed: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The printed models to show: those named, or all of a table with models of its own."""
    if TABLES[table].every:
        return known if printed else {}
    return {name: known[name] for name in dict.fromkeys(printed) if name in known}


def _printed_row(
    name: str,
    values: Mapping[str, float],
    columns: Columns,
    known: Mapping[str, Mapping[str, float]],
) -> Row:
    """A model's printed values; a mean over other directions than the paper's has a dagger."""
    row = _row(f"{name} (printed)", values, columns)
    paper = {key for model in known.values() for key in model} - {AVERAGE, "en-en"}
    if set(columns.averaged) == paper and AVERAGE in values:
        row.values[AVERAGE] = values[AVERAGE]
    elif row.values[AVERAGE] is not None:
        row.daggers.add(AVERAGE)
    return row


def _note(table: str, version: str, read: Accuracies) -> str:
    counts = {len(of) for system in read.seeds.values() for of in system.values()}
    least, most = min(counts), max(counts)
    many = f"{least}" if least == most else f"{least} to {most}"
    seeds = f", mean of {many} seeds, and under it their standard deviation" if read.seeded else ""
    precision = "; AP: average precision of the cosine" if table == "pawsx" else ""
    part = f", {read.part}" if read.part else ""
    return (
        f"{TABLES[table].title}. Data {version}{part}: accuracy in percent{seeds}{precision}. "
        "Bold: best of our systems."
    )


def _printed_notes(
    table: str,
    version: str,
    beside: Mapping[str, object],
    known: Mapping[str, object],
    printed: Sequence[str],
) -> list[str]:
    """Where the printed rows are from, or why there are none."""
    if beside:
        where = PRINTED_IN[table]
        return [
            f"Rows marked printed: {where}; they do not compete for bold.",
            *_class_notes(table),
        ]
    if printed and known and version != PAPER_VERSION:
        return [f"Printed rows left out: they are of version {PAPER_VERSION}, these of {version}."]
    return []


def _class_notes(table: str) -> list[str]:
    classes = [f"{name}: {', '.join(models)}" for name, models in load_classes(table).items()]
    return [f"As the paper has them, {'; '.join(classes)}."] if classes else []
