"""The settings `tables` of an experiment."""

from typing import Annotated, Literal

from pydantic import Field

from ems.base.schema import Settings, by_type, listing, text

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


_WORD = "expected small letters, digits and `_`, starting with a letter, at most 60 characters"
StudyName = text("^[a-z][a-z0-9_]{0,59}$", _WORD)
Fact = Literal[
    "architecture",
    "width",
    "feed_forward",
    "heads",
    "layers",
    "decoder_layers",
    "parameters",
    "raw_pairs",
    "pairs",
]
Cost = Literal["memory", "minutes", "speed"]
PrintedStudy = Literal[
    "lightweight-table01-models",
    "lightweight-table02-data",
    "lightweight-table05-layers",
    "lightweight-table06-generative",
    "lightweight-table07-contrastive",
    "lightweight-table08-batch",
    "lightweight-table09-corpus",
    "monolingual-table01-xnli",
    "monolingual-table02-rcv2",
    "monolingual-table03-samples",
]
MEAN = "Avg."  # in `columns` of a study


class StudySettings(Settings):
    """A table whose rows are chosen one by one, each of one system or of several."""

    caption: str = Field(description="The caption of the table and the figure.")
    heading: str = Field("Model", description="The heading of the first column.")
    rows: Annotated[dict[str, by_type(str, dict[str, str])], Field(min_length=1)] = Field(
        description="Label of a row -> its system (an entry with `each`: all its systems), or, for "
        "a row of several systems, a mapping: benchmark -> system. There `model` is the system of "
        "`facts` and `costs` (default: the first named); of an entry with `each` it is the first."
    )
    columns: dict[str, listing(str, least=1)] = Field(
        {},
        description="Benchmark -> directions, like `{tatoeba: [en-fr, fr-en]}`: from the language "
        "of the queries, or of the training examples; `Avg.` is the mean of all directions.",
    )
    facts: listing(Fact) = Field(
        [],
        description="Columns of the system: sizes, all trained weights (`parameters`), its "
        "training pairs before cleaning (`raw_pairs`) and after (`pairs`).",
    )
    costs: listing(Cost) = Field(
        [],
        description="Columns of its training, in results/EXPERIMENT/costs/summary/ alone: resident "
        "memory in MB, minutes of 10,000 steps, pairs a second.",
    )
    printed: PrintedStudy | None = Field(
        None, description="The rows of a paper to print beside ours (ems/tables/printed/)."
    )
    figure: bool = Field(False, description="Makes a figure too: a line per column over the rows.")


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
    studies: dict[StudyName, StudySettings] | None = Field(
        None,
        description="Tables of your own, by name: `snakemake results/tables/NAME.tex`. Their "
        "systems are trained for them, whether or not they are among `systems`.",
    )
    stand_ins: dict[str, str] | None = Field(
        None,
        description="Benchmark -> the one that takes its place in the columns of `studies` where "
        "`benchmarks` lacks it. Notes say so.",
    )
