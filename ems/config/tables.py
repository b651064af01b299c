"""The settings `tables` of an experiment, and the systems of each row of a study."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from ems.base.errors import EmsError
from ems.base.schema import Settings, by_type, listing, text
from ems.config import plugins

if TYPE_CHECKING:
    from ems.config.experiment import Experiment

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
MODEL = "model"  # in a row of a study: the system of its facts and costs


class StudySettings(Settings):
    """A table whose rows are chosen one by one, each of one system or of several."""

    caption: str
    """The caption of the table and the figure."""
    heading: str = "Model"
    """The heading of the first column."""
    rows: Annotated[dict[str, by_type(str, dict[str, str])], Field(min_length=1)]
    """Label of a row -> its system (an entry with `each`: all its systems), or, for a row of
    several systems, a mapping: benchmark -> system. There `model` is the system of `facts` and
    `costs` (default: the first named); of an entry with `each` it is the first."""
    columns: dict[str, listing(str, least=1)] = Field({})
    """Benchmark -> directions, like `{tatoeba: [en-fr, fr-en]}`: from the language of the queries,
    or of the training examples; `Avg.` is the mean of all directions."""
    facts: listing(Fact) = Field([])
    """Columns of the system: sizes, all trained weights (`parameters`), its training pairs before
    cleaning (`raw_pairs`) and after (`pairs`)."""
    costs: listing(Cost) = Field([])
    """Columns of its training, in results/EXPERIMENT/costs/summary/ alone: resident memory in MB,
    minutes of 10,000 steps, pairs a second."""
    printed: PrintedStudy | None = None
    """The rows of a paper to print beside ours (ems/tables/printed/)."""
    figure: bool = False
    """Makes a figure too: a line per column over the rows."""


class TablesSettings(Settings):
    """Which systems and which printed rows the tables show."""

    systems: listing(str, least=1) | None = None
    """The systems of the tables, in this order (default: all; an entry with `each` means all its
    systems). Others are trained when asked for: `snakemake
    results/EXPERIMENT/scores/SYSTEM/tatoeba.json`."""
    ablation: listing(str, least=2) | None = None
    """The trained systems of the table and the figures of the ablations (EMS v2 Table XIV), the
    first being what the others are compared with (default: `systems`). Others of them are trained
    for these alone."""
    printed: list[Printed] = Field([])
    """Rows of the papers to print beside ours, in the tables that have them."""
    studies: dict[StudyName, StudySettings] | None = None
    """Tables of your own, by name: `snakemake results/tables/NAME.tex`. Their systems are trained
    for them, whether or not they are among `systems`."""
    stand_ins: dict[str, str] | None = None
    """Benchmark -> the one that takes its place in the columns of `studies` where `benchmarks`
    lacks it. Notes say so."""


@dataclass(frozen=True)
class StudyRow:
    """A row of a study: benchmark of `columns` -> the name of its system, and -> the systems of
    that name that have one of the directions; `model` has the facts and costs.
    """

    label: str
    names: dict[str, str]
    systems: dict[str, list[str]]
    model: str


def study_rows(experiment: "Experiment", study: StudySettings) -> list[StudyRow]:
    """Return the rows of a study, in their order."""
    rows = []
    for label, row in study.rows.items():
        own = row if isinstance(row, dict) else dict.fromkeys([*study.columns, MODEL], row)
        names = {benchmark: own[benchmark] for benchmark in study.columns if benchmark in own}
        systems = {
            benchmark: [
                system
                for system in experiment.members(name)
                if _has_one(experiment.systems[system].languages, study.columns[benchmark])
            ]
            for benchmark, name in names.items()
        }
        model = own.get(MODEL, next(iter(own.values())))
        rows.append(StudyRow(label, names, systems, experiment.members(model)[0]))
    return rows


def _has_one(languages: Collection[str], directions: Iterable[str]) -> bool:
    return any(name == MEAN or set(name.split("-")) <= set(languages) for name in directions)


def check_studies(tables: TablesSettings, systems: Collection[str]) -> None:
    """Raise `EmsError` for a study of an unknown system or benchmark, or without columns."""
    stand_ins = (tables.stand_ins or {}).items()
    _check_known("tables.stand_ins", [name for pair in stand_ins for name in pair])
    for name, study in (tables.studies or {}).items():
        key = f"tables.studies.{name}"
        _check_known(f"{key}.columns", study.columns)
        if not study.columns and (study.figure or not study.facts):
            raise EmsError(f"{key}: has nothing to show; set `columns`, or `facts` for a table")
        columns = [*study.columns, MODEL]
        for label, row in study.rows.items():
            own = row if isinstance(row, dict) else {MODEL: row}
            if not own:
                raise EmsError(f"{key}.rows.{label}: names no system")
            for benchmark, system in own.items():
                if benchmark not in columns:
                    raise EmsError(
                        f"{key}.rows.{label}: found {benchmark!r}, expected one of the columns: "
                        f"{', '.join(columns)}"
                    )
                if system not in systems:
                    raise EmsError(f"{key}.rows.{label}: {system} has no entry under systems")


def _check_known(key: str, names: Iterable[str]) -> None:
    for name in names:
        plugins.benchmark(name, key)
