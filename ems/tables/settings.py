"""The settings `tables` of an experiment."""

from typing import Literal

from pydantic import Field

from ems.settings import Settings, listing

Printed = Literal[
    "LASER",
    "LASER2",
    "SBERT-distill",
    "LaBSE-EMS-vanilla",
    "LaBSE-EMS-MLP",
    "LaBSE-EMS-joint",
    "EMS",
    "LaBSE",
    "mUSE",
    "LaBSE-bilingual",
    "Bi-Vec",
    "Bi-Sent2Vec",
    "TransGram",
    "Lightweight",
    "Reimers and Gurevych",
]


class TablesSettings(Settings):
    """Which systems and which printed rows the tables show."""

    systems: listing(str, least=1) | None = Field(
        None,
        description="The systems of the tables, in this order (default: all; an entry with "
        "`each` means all its systems). Others are trained when asked for: "
        "`snakemake results/EXPERIMENT/scores/SYSTEM/tatoeba.json`.",
    )
    ablation: listing(str, least=2) | None = Field(
        None,
        description="The trained systems of the table and the figures of the ablations (EMS v2 "
        "Table XIV), the first being what the others are compared with (default: `systems`). "
        "Others of them are trained for these alone.",
    )
    printed: list[Printed] = Field(
        [], description="Rows of the papers to print beside ours, in the tables that have them."
    )
