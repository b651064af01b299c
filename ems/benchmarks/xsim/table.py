"""Error rates of xsim and xsim++ per language, and the share of each kind of error of xsim++."""

from collections.abc import Sequence

from ems.base.records import NonBlank
from ems.tables.engine import Column, Declaration, one_each
from ems.tables.printed import in_table_one_order
from ems.tables.scores import Scores
from ems.tables.table import Block, balanced_blocks


def _columns(systems: Sequence[Scores]) -> list[Column]:
    measures = [item for system in systems for item in system.measures.items()]
    kinds = sorted({kind for kind, values in measures if any(values.values())})
    languages = one_each(systems, in_table_one_order)
    return [*languages, *(Column(kind.replace("_", " "), [kind], measure=kind) for kind in kinds)]


def _blocks(columns: list[Column]) -> list[Block]:
    kinds = [column.heading for column in columns if column.measure]
    languages = [column.heading for column in columns if not column.measure]
    return [*balanced_blocks(languages), *([Block(kinds, True, "xsim++: ")] if kinds else [])]


def _about(systems: Sequence[Scores]) -> list[str]:
    protocol = systems[0].file.setting
    kinds = " xsim++ errors by kind: percentage of sentences, mean over languages."
    kinds = kinds if any(system.measures for system in systems) else ""
    return [
        f"FLORES-200 {systems[0].version}, devtest, {protocol('margin', NonBlank)} margin, k = "
        f"{protocol('k')}: percentage of sentences whose English translation is not the best "
        f"candidate. xsim++ adds altered sentences to the candidates.{kinds} Bold: lowest of our "
        "systems."
    ]


TABLES = {
    "xsim": Declaration(
        benchmarks={"xsim": "xsim: ", "xsimpp": "xsim++: "},
        metric="error rate",
        label=lambda file, row: file.languages[row.source],
        columns=_columns,
        blocks=_blocks,
        about=_about,
    )
}
