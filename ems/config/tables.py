"""The settings `tables` of an experiment, and the systems in each row of a study."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ems.base.errors import EmsError, mistake
from ems.base.files import read_table
from ems.base.schema import Settings, by_type, listing, text
from ems.config import plugins

if TYPE_CHECKING:
    from ems.config.experiment import Experiment


def _choices(kind: str) -> Any:
    """Return the type of the names of a kind in choices.tsv."""
    rows = read_table(Path(__file__).with_name("choices.tsv"))
    return Literal[tuple(row["name"] for row in rows if row["kind"] == kind)]


Printed = _choices("printed")
_WORD = "expected small letters, digits and `_`, starting with a letter, at most 60 characters"
StudyName = text("^[a-z][a-z0-9_]{0,59}$", _WORD)
Fact = _choices("fact")
Cost = Literal["memory", "minutes", "speed"]
PrintedStudy = _choices("study")
MEAN = "Avg."  # in `columns` of a study
MODEL = "model"  # in a row of a study: the system of its facts and costs


class StudySettings(Settings):
    """A table whose rows you choose one by one, each with one system or several."""

    caption: str
    """Caption of the table and the figure."""
    heading: str = "Model"
    """Heading of the first column."""
    rows: Annotated[dict[str, by_type(str, dict[str, str])], Field(min_length=1)]
    """Rows as label -> system (for an entry with `each`: all its systems). A row with several
    systems maps benchmark -> system; its key `model` names the system for `facts` and `costs`
    (default: the first one named; for an entry with `each`, its first system)."""
    columns: dict[str, listing(str, least=1)] = Field({})
    """Columns as benchmark -> directions, like `{tatoeba: [en-fr, fr-en]}`: from the language of
    the queries or training examples to the other. `Avg.` is the mean of all directions."""
    facts: listing(Fact) = Field([])
    """Columns about the system: sizes, number of trained weights (`parameters`), training pairs
    before cleaning (`raw_pairs`) and after (`pairs`)."""
    costs: listing(Cost) = Field([])
    """Columns about the training, only in results/EXPERIMENT/costs/summary/: resident memory in MB,
    minutes per 10,000 steps, pairs per second."""
    printed: PrintedStudy | None = None
    """Table of a paper whose rows to print next to ours (ems/tables/printed/)."""
    figure: bool = False
    """Adds a figure, with a line per column over the rows."""


class TablesSettings(Settings):
    """Systems and published rows in the tables."""

    LATER = frozenset({"intervals"})

    systems: listing(str, least=1) | None = None
    """Systems of the tables, in this order (default: all; an entry with `each` stands for all its
    systems). Other systems are trained only on request: `snakemake
    results/EXPERIMENT/scores/SYSTEM/tatoeba.json`."""
    ablation: listing(str, least=2) | None = None
    """Trained systems of the ablation table and figures (EMS v2 Table XIV); the first is the one
    that the others are compared with (default: `systems`). Systems that are not in `systems` are
    trained for this table alone."""
    printed: list[Printed] = Field([])
    """Models of the papers whose rows and columns to print next to ours, in the tables that have
    them. The tables show nothing else that a paper printed."""
    intervals: bool = False
    """Shows the 95 % interval of each P@1, F1, accuracy and error rate of our systems, and marks
    the best one only if it is significantly better than every other (docs/benchmarks.md)."""
    studies: dict[StudyName, StudySettings] | None = None
    """Tables of your own, by name: `snakemake results/tables/NAME.tex`. Their systems are trained
    for them, whether or not they are in `systems`."""
    stand_ins: dict[str, str] | None = None
    """Substitutes as benchmark -> benchmark, used in the columns of `studies` if `benchmarks` lacks
    the first. Notes in the table say so."""


@dataclass(frozen=True)
class StudyRow:
    """A row of a study: benchmark -> the name of its system (`names`), the systems of that name
    with one of the directions (`systems`), and the system for facts and costs (`model`).
    """

    label: str
    names: dict[str, str]
    systems: dict[str, list[str]]
    model: str


def study_rows(experiment: "Experiment", study: StudySettings) -> list[StudyRow]:
    rows = []
    for label, row in study.rows.items():
        own = row if isinstance(row, dict) else dict.fromkeys([*study.columns, MODEL], row)
        names = {benchmark: own[benchmark] for benchmark in study.columns if benchmark in own}
        systems = {
            benchmark: _with_one(experiment, name, study.columns[benchmark])
            for benchmark, name in names.items()
        }
        model = own.get(MODEL, next(iter(own.values())))
        rows.append(StudyRow(label, names, systems, experiment.members(model)[0]))
    return rows


def _with_one(experiment: "Experiment", name: str, directions: Iterable[str]) -> list[str]:
    """Return the systems of a name that have the languages of one of the directions."""
    pairs = [{*direction.split("-")} - {MEAN} for direction in directions]
    languages = {own: experiment.systems[own].languages for own in experiment.members(name)}
    return [own for own, codes in languages.items() if any(pair <= {*codes} for pair in pairs)]


def check_studies(tables: TablesSettings, systems: Collection[str]) -> None:
    """Raise `EmsError` if a study has no columns, or an unknown system or benchmark."""
    for pair in (tables.stand_ins or {}).items():
        for name in pair:
            plugins.benchmark(name, "tables.stand_ins")
    for name, study in (tables.studies or {}).items():
        key = f"tables.studies.{name}"
        for benchmark in study.columns:
            plugins.benchmark(benchmark, f"{key}.columns")
        if not study.columns and (study.figure or not study.facts):
            raise EmsError(f"{key}: nothing to show; set `columns`, or `facts` for a table")
        columns = [*study.columns, MODEL]
        for label, row in study.rows.items():
            own = row if isinstance(row, dict) else {MODEL: row}
            if not own:
                raise EmsError(f"{key}.rows.{label}: set at least one system")
            for benchmark, system in own.items():
                if benchmark not in columns:
                    words = {"label": label, "benchmark": benchmark, "columns": columns}
                    raise mistake("study without the column", key=key, **words)
                if system not in systems:
                    raise EmsError(f"{key}.rows.{label}: {system} has no entry under systems")
