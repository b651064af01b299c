"""Precision, recall and F1 of sentence alignments, and figures of published aligners."""

from collections.abc import Sequence

from ems.benchmarks.alignment.data import LENGTHS, MAIN, MEASURES
from ems.tables.declarations import noted_table
from ems.tables.engine import Column, one_block
from ems.tables.scores import Scores

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


TABLES = {
    "alignment": noted_table(
        "alignment",
        "F1",
        _columns,
        lambda: PUBLISHED,
        label=lambda file, row: row.split or MAIN,
        blocks=one_block,
        shared=LENGTHS,
    )
}
