"""Precision, recall and F1 of sentence alignments, and figures of published aligners."""

from collections.abc import Sequence

from ems.benchmarks.alignment.data import LENGTHS, MAIN, MEASURES
from ems.tables.declarations import noted_table
from ems.tables.engine import Column, one_block
from ems.tables.scores import Scores


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
        label=lambda file, row: row.split or MAIN,
        blocks=one_block,
        shared=LENGTHS,
    )
}
