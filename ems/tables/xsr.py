"""The tables of retrieval among 200,000 sentences: ParaCrawl (EMS v2 Table X), P@1 per language,
and Europarl (Lightweight Table 4), P@1 per direction.

Notable choices:
- Table X has one number a language, and the paper does not say of which direction: ours is the mean
  of both, as in its Table IV;
- printed rows stand only beside scores of the same release, of as many queries and candidates, by
  the same measure; which sentences were drawn is the paper's own in any case, so a note says so.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ems.shapes import COUNT
from ems.tables.papers import PRINTED_IN
from ems.tables.printed import (
    AVERAGE,
    in_given_order,
    in_table_one_order,
    load_europarl,
    load_table,
)
from ems.tables.rows import (
    Row,
    joined_notes,
    make_table,
    mean,
    missing_notes,
    printed_row,
    system_row,
)
from ems.tables.scores import (
    Families,
    Reader,
    Scores,
    in_order,
    joined,
    mean_of_both,
    percentage,
    read_scores,
)
from ems.tables.table import Block, balanced_blocks
from ems.tables.write import write_table

DRAWN = {"queries": 2000, "candidates": 200_000}
ORDER = ("fr", "de", "es", "it")  # of Lightweight Table 4
HOW = {
    "ratio": "the ratio margin with {k} neighbours",
    "distance": "the distance margin with {k} neighbours",
    "absolute": "cosine",
}
PROTOCOL = {"queries": COUNT, "candidates": COUNT, "margin": {"enum": list(HOW)}, "k": COUNT}


@dataclass(frozen=True)
class _Paper:
    """A printed table: the title of the data, its release, and the measure."""

    benchmark: str
    title: str
    version: str
    margin: str

    def same(self, system: Scores) -> bool:
        """Whether a system was scored as this table was."""
        wanted = {**DRAWN, "margin": self.margin}
        found = dict(system.protocol)
        alike = all(found.get(key) == value for key, value in wanted.items())
        return alike and system.version == self.version


PARACRAWL = _Paper("paracrawl", "ParaCrawl", "v5", "ratio")
EUROPARL = _Paper("europarlxsr", "Europarl", "v7", "absolute")


def write_paracrawl_table(
    scores: list[Path],
    out: Path,
    printed: list[str],
    order: list[str] | None = None,
    families: Families | None = None,
) -> None:
    """Write EMS v2 Table X of some systems as .tex, .md and .csv beside `out`.

    `scores` are the systems' paracrawl.json; `printed` names models of the papers, of which those
    of Table X are shown as printed; `order` names the systems that come first; `families` are
    systems that share a row. Raises `EmsError` for scores of different data or protocols.
    """
    systems = _systems(scores, PARACRAWL, mean_of_both, order, families)
    codes = in_table_one_order({code for system in systems for code in system.values})
    rows = [system_row(system, codes) for system in systems]
    models = load_table("ems-v2-table10-paracrawl", "model", "language")
    what = "P@1 in percent, mean of both directions"
    notes = _notes(systems, PARACRAWL, what, codes, families)
    _write(rows, codes, models, _Shown(systems[0], PARACRAWL, printed), notes, out)


def write_europarl_table(
    scores: list[Path],
    out: Path,
    printed: list[str],
    order: list[str] | None = None,
    families: Families | None = None,
) -> None:
    """Write Lightweight Table 4 of some systems: as `write_paracrawl_table`, a column a direction.

    en->fr has English queries and French candidates.
    """
    ways = {
        arrow: _systems(scores, EUROPARL, partial(percentage, key=key), order, families)
        for arrow, key in (("->", "from_english"), ("<-", "to_english"))
    }
    systems = ways["->"]
    codes = in_given_order({code for system in systems for code in system.values}, ORDER)
    columns = [f"en{arrow}{code}" for code in codes for arrow in ways]
    rows = []
    for same in zip(*ways.values(), strict=True):
        found = {
            f"en{arrow}{code}": value
            for arrow, system in zip(ways, same, strict=True)
            for code, value in system.values.items()
        }
        values: dict[str, float | None] = {column: found.get(column) for column in columns}
        rows.append(Row(same[0].system, {**values, AVERAGE: mean(found, columns)}))
    models = load_europarl()
    what = "P@1 in percent; in en->fr queries are English, candidates French, in en<-fr the reverse"
    notes = _notes(systems, EUROPARL, what, codes, families)
    _write(rows, columns, models, _Shown(systems[0], EUROPARL, printed), notes, out)


def _systems(
    scores: list[Path],
    paper: _Paper,
    value: Reader,
    order: list[str] | None,
    families: Families | None,
) -> list[Scores]:
    found = read_scores(scores, paper.benchmark, value=value)
    return joined(in_order(found, order or []), families)


def _notes(
    systems: list[Scores], paper: _Paper, what: str, codes: list[str], families: Families | None
) -> list[str]:
    """What the numbers are, which systems share a row, and who lacks what."""
    settings = {name: systems[0].setting(name, shape) for name, shape in PROTOCOL.items()}
    queries, candidates, margin, k = (settings[name] for name in PROTOCOL)
    return [
        f"{paper.title} {systems[0].version}: {what}, of {queries:,} queries among {candidates:,} "
        f"candidates, by {HOW[margin].format(k=k)}. Bold: best of our systems.",
        *joined_notes(systems, families),
        *missing_notes(systems, codes),
    ]


@dataclass(frozen=True)
class _Shown:
    """Which printed rows are asked for, beside the scores of which system, of which paper."""

    system: Scores
    paper: _Paper
    names: list[str]


def _write(
    rows: list[Row],
    columns: list[str],
    models: dict[str, dict[str, float]],
    shown: _Shown,
    notes: list[str],
    out: Path,
) -> None:
    named = [name for name in dict.fromkeys(shown.names) if name in models]
    beside = named if shown.paper.same(shown.system) else []
    every = [*rows, *(printed_row(name, models[name], columns) for name in beside)]
    notes = [*notes, *_printed_notes(named, beside, shown.paper)]
    blocks: list[Block] = balanced_blocks([*columns, AVERAGE])
    write_table(make_table(every, len(rows), blocks, notes), out)


def _printed_notes(named: list[str], beside: list[str], paper: _Paper) -> list[str]:
    if beside:
        where = PRINTED_IN[paper.benchmark]
        return [
            f"Rows marked printed: {where}, of other sentences drawn from {paper.title}; they do "
            "not compete for bold."
        ]
    if named:
        return [
            f"Printed rows left out ({', '.join(named)}): they are of {paper.title} "
            f"{paper.version}, {DRAWN['queries']:,} queries among {DRAWN['candidates']:,}, by "
            f"{HOW[paper.margin].format(k=4)}."
        ]
    return []
