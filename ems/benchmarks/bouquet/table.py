"""P@1 with English, with each pivot language, among these, and of all directions."""

from collections.abc import Sequence

from ems.bench.scores import ENGLISH
from ems.benchmarks.bouquet.score import PARAGRAPHS
from ems.benchmarks.flores200.table import direction
from ems.tables.declarations import noted_table
from ems.tables.engine import Column, one_block
from ems.tables.scores import Scores

PIVOTS = ("ar", "de", "es", "fr", "hi", "id", "ru", "zh")  # the texts were written in these


def _columns(systems: Sequence[Scores]) -> list[Column]:
    ways = {name: {*name.split("-")} for system in systems for name in system.values}
    groups = {code: [name for name in ways if code in ways[name]] for code in (ENGLISH, *PIVOTS)}
    groups["Pivots"] = [name for name in ways if ways[name] <= {*PIVOTS}]
    groups["All"] = [*ways]
    return [Column(heading, members) for heading, members in groups.items() if members]


BOUQUET = noted_table(
    "bouquet", "P@1", _columns, label=direction, blocks=one_block, below={PARAGRAPHS: PARAGRAPHS}
)
TABLES = {"bouquet": BOUQUET}
