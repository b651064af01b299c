"""The table of FLORES-200, EMS v2 Table VII: P@1 between languages, without English.

Notable choices:
- the columns are the paper's, means over the directions of two groups of languages and eight pairs,
  and a last one over every direction that was scored, English included;
- a pair is the mean of its two directions, as everywhere in the paper;
- printed rows stand only beside scores of the same data. The paper prints no single directions, so
  where ours are fewer than its group, what it prints of the whole group carries a dagger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

from ems.damaged import Damaged
from ems.files import read_json
from ems.shapes import SOME, TEXT, mapping, shown
from ems.tables.papers import PRINTED_IN
from ems.tables.printed import load_flores, load_flores_groups
from ems.tables.rows import Row, absent_notes, joined_notes, make_table, mean
from ems.tables.scores import (
    Families,
    Scores,
    in_order,
    joined,
    percent,
    read_scores,
    scores_shape,
)
from ems.tables.table import Block
from ems.tables.write import write_table

BENCHMARK = "flores200"
PAPER = ("v1", 1012)  # the version and the sentences of devtest that the paper's numbers are of
BETWEEN = "-"  # of a direction's two languages, "de-fr"
SCORES = scores_shape(  # thousands of percentages, which `percent` looks at
    BENCHMARK, "P@1", {"type": "object"}, languages=mapping(TEXT), sentences=SOME
)
FOOTNOTE = "as printed, over all directions of the group"


@dataclass(frozen=True)
class _Column:
    """The directions that a heading averages, of those that we have."""

    directions: list[str]
    printed: str  # the heading of the paper's column, '' for none
    partial: bool = False  # of a group: fewer than the paper's


def direction(query: str, candidates: str) -> str:
    """The name of the search for sentences of one language among those of another."""
    return f"{query}{BETWEEN}{candidates}"


def read_flores(paths: Sequence[Path]) -> list[Scores]:
    """The score files of flores200: P@1 by direction, like "de-fr", of the experiment's languages.

    Raises `EmsError` for a malformed one, and when they cannot share a table.
    """
    return read_scores(paths, BENCHMARK, read=_read_one)


def _read_one(path: Path) -> Scores:
    data = read_json(path, SCORES)
    names = data["languages"]
    values = {}
    for query, row in data["directions"].items():
        for candidates, value in row.items():
            if query not in names or candidates not in names:
                expected = f"the languages {query} and {candidates} under `languages`"
                raise Damaged(path, f"expected {expected}, found {shown(names)}")
            where = f"{query}.{candidates}"
            values[direction(names[query], names[candidates])] = percent(path, where, value)
    return Scores(
        path=path,
        system=data["system"],
        version=data["version"],
        data_sha256=data["data_sha256"],
        values=values,
        languages={name: name for name in values},
        sentences=dict.fromkeys(values, data["sentences"]),
    )


def write_flores_table(
    scores: list[Path],
    out: Path,
    printed: list[str],
    order: list[str] | None = None,
    families: Families | None = None,
) -> None:
    """Write EMS v2 Table VII of some systems as .tex, .md and .csv beside `out`.

    `scores` are the systems' flores200.json; `printed` names models to show as printed, of which
    Table VII has only some; `order` names the systems that come first; `families` are systems that
    share a row, each with languages of its own. Raises `EmsError` as `read_flores` does.
    """
    systems = joined(in_order(read_flores(scores), order or []), families)
    columns = _columns(systems)
    known = load_flores()
    sentences = next(count for system in systems for count in system.sentences.values())
    found = (systems[0].version, sentences)
    models = [name for name in dict.fromkeys(printed) if name in known] if found == PAPER else []
    ours = [_our_row(system, columns) for system in systems]
    rows = [*ours, *(_printed_row(name, known[name], columns) for name in models)]
    notes = [_about(*found), *joined_notes(systems, families), *absent_notes(systems)]
    notes += _missing([row for row, of in zip(ours, systems, strict=True) if of.values], columns)
    notes += _printed_notes(printed, models, known, found)
    table = make_table(rows, len(ours), [Block(list(columns))], notes)
    write_table(replace(table, footnote=FOOTNOTE if table.dagger else ""), out)


def _columns(systems: list[Scores]) -> dict[str, _Column]:
    """Heading -> what it averages, in the order of Table VII, then all directions."""
    have = {name: None for system in systems for name in system.values}
    groups = load_flores_groups()
    columns = {}
    for heading in next(iter(load_flores().values())):
        languages = groups.get(heading) or heading.split(BETWEEN)
        every = [direction(*pair) for pair in permutations(languages, 2)]
        ours = [name for name in every if name in have]
        partial = heading in groups and len(ours) < len(every)
        part = f"{heading.partition(' ')[0]} {len(ours)}/{len(every)}"
        columns[part if partial else heading] = _Column(ours, heading, partial)
    columns[f"All ({len(have):,})"] = _Column(list(have), "")
    return columns


def _our_row(system: Scores, columns: dict[str, _Column]) -> Row:
    means = {name: mean(system.values, column.directions) for name, column in columns.items()}
    return Row(system.system, means)


def _printed_row(model: str, values: Mapping[str, float], columns: dict[str, _Column]) -> Row:
    """A model's printed values; with a dagger where we have a part of the group."""
    shown = {name: values.get(column.printed) for name, column in columns.items()}
    partial = {name for name, column in columns.items() if column.partial}
    return Row(f"{model} (printed)", shown, partial)


def _about(version: str, sentences: int) -> str:
    return (
        f"FLORES-200 {version}, devtest: P@1 in percent by cosine among {sentences:,} sentences of "
        "each language. mUSE and <300k: mean over the directions between the languages of the "
        "group; n/m are n of the paper's m directions. A pair: mean of its two directions. All: "
        "every direction scored, English included. Bold: best of our systems."
    )


def _missing(ours: list[Row], columns: dict[str, _Column]) -> list[str]:
    """Which columns no system can have, and which a single one cannot."""
    nobody = [name for name, column in columns.items() if not column.directions]
    notes = [f"No system was scored on both languages of {', '.join(nobody)}."] if nobody else []
    for row in ours:
        lacking = [name for name in columns if row.values[name] is None and name not in nobody]
        if lacking:
            notes.append(f"{row.label} has no score for a direction of {', '.join(lacking)}.")
    return notes


def _printed_notes(
    asked: list[str], shown: list[str], known: Mapping[str, object], found: tuple[str, int]
) -> list[str]:
    names = [name for name in dict.fromkeys(asked) if name in known]
    if names and not shown:
        version, sentences = PAPER
        return [
            f"Printed rows left out ({', '.join(names)}): they are of FLORES-200 {version} with "
            f"{sentences:,} sentences, these scores of {found[0]} with {found[1]:,}."
        ]
    absent = [name for name in dict.fromkeys(asked) if name not in known]
    notes = [f"Rows marked printed: {PRINTED_IN['flores']}; they do not compete for bold."]
    if absent:
        notes.append(f"Table VII has no row of {', '.join(absent)}.")
    return notes if shown else []
