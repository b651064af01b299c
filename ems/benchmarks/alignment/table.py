"""Precision, recall and F1 of sentence alignments, and figures of published aligners."""

from collections.abc import Sequence

from ems.base.records import NonBlank
from ems.benchmarks.alignment.data import LENGTHS, MAIN, MEASURES
from ems.tables.declarations import words_of
from ems.tables.engine import Column, Declaration, PrintedRows, headings
from ems.tables.scores import Scores
from ems.tables.table import Block

TEST = "test0 test1 test2 test3 test4 test5 test6"
PUBLISHED = {  # percent, over the seven test documents
    "vecalign": dict(zip(MEASURES, (89.9, 90.4, 90.2, 98.5, 98.7, 98.6), strict=True)),
    "SentAlign": {"strict F1": 93.2, "lax F1": 96.4},
}


def _columns(systems: Sequence[Scores]) -> list[Column]:
    """Return a column per measure; systems are compared by the main one."""
    columns = []
    for name in MEASURES:
        values = {each.system: each.measures.get(name, {}).get(MAIN) for each in systems}
        columns.append(Column(name, [name], name, by_system=None if name == MAIN else values))
    return columns


def _about(systems: Sequence[Scores]) -> list[str]:
    file = systems[0].file
    return [
        f"Alignments of up to {file.setting('largest')} sentences, data {file.version}, documents "
        f"{file.setting('documents', NonBlank)}: precision, recall and F1 in percent. Strict: "
        "exactly the gold alignment. Lax: a source and a target sentence in common with it. Bold: "
        f"best {MAIN} of our systems. {LENGTHS.capitalize()}: the same aligner without an encoder."
    ]


TABLES = {
    "alignment": Declaration(
        benchmarks={"alignment": ""},
        metric="F1",
        label=lambda file, row: row.split or MAIN,
        columns=_columns,
        blocks=lambda columns: [Block(headings(columns))],
        about=_about,
        shared=LENGTHS,
        printed=PrintedRows(
            words_of("alignment")["table"]["alignment"].paper,
            lambda: PUBLISHED,
            "the seven test documents of Bleualign, v1",
            version="v1",
            protocol={"documents": TEST},
            all_rows=True,
        ),
    )
}
