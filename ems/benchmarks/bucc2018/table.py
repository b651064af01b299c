"""F1 per language pair (EMS v2 Table IX), and pairs that were found and that gold lacks (Table
VIII).

The note says how the threshold was chosen, which moves F1 by more than models differ.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from ems.base.schema import Text
from ems.benchmarks.bucc2018.missed import write_missed_table
from ems.config.plugins import benchmark
from ems.tables.engine import BEST, Declaration, Models, Printed, headings, one_each
from ems.tables.printed import in_given_order, load_table
from ems.tables.scores import Scores
from ems.tables.table import Block

THRESHOLDS = {
    "oracle": "The threshold of each pair is the one with the best F1 on these same gold pairs "
    "(oracle), as in the script that the paper used (sentence-transformers, bucc2018.py).",
    "sample": "The threshold of each pair is the one with the best F1 on its sample part; gold "
    "pairs of the part that is scored were not used.",
}
ORDER = [f"en-{code}" for code in ("de", "fr", "ru", "zh")]


def _models() -> Models:
    return load_table("ems-v2-table09-bucc", "pair")


def _about(systems: Sequence[Scores]) -> list[str]:
    """Say what the numbers of BUCC are, and how the threshold was chosen."""
    protocol = systems[0].file.setting
    return [
        f"BUCC {systems[0].version}, training part: F1 in percent of pairs mined with "
        f"{protocol('margin', Text)} margin, {protocol('k')} neighbours, exact search from both "
        f"sides, each sentence in one pair. {BEST}",
        THRESHOLDS[protocol("threshold", Literal[tuple(THRESHOLDS)])],
    ]


BUCC = Declaration(
    benchmarks={"bucc2018": ""},
    metric="F1",
    label=lambda file, row: f"en-{row.source}",
    columns=lambda systems: one_each(systems, partial(in_given_order, first=ORDER), _models()),
    blocks=lambda columns: [Block(headings(columns))],
    about=_about,
    printed=Printed(
        benchmark("bucc2018").tables["bucc2018"].paper,
        _models,
        "BUCC v2018, ratio margin, 4 neighbours, threshold chosen on the gold pairs that are "
        "scored",
        version="v2018",
        protocol={"k": 4, "margin": "ratio", "threshold": "oracle"},
    ),
)
TABLES = {"bucc2018": BUCC, "bucc_missed": write_missed_table}
