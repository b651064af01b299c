"""What the studies of an experiment are made of (`tables.studies`): rows -> systems."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ems.base.errors import EmsError
from ems.config.plugins import benchmarks
from ems.config.tables import MEAN, StudySettings, TablesSettings

if TYPE_CHECKING:
    from ems.config.experiment import Experiment

MODEL = "model"  # in a row: the system of its facts and costs


@dataclass(frozen=True)
class StudyRow:
    """A row of a study: benchmark of `columns` -> the name of its system, and `systems`: benchmark
    -> the systems that this name means and that have one of the directions; `model` is the system
    of facts and costs.
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
    """Return whether a system of these languages has one of the directions."""
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
        for label, row in study.rows.items():
            own = row if isinstance(row, dict) else {MODEL: row}
            _check_row(f"{key}.rows.{label}", own, study, systems)


def _check_row(
    key: str, row: dict[str, str], study: StudySettings, systems: Collection[str]
) -> None:
    if not row:
        raise EmsError(f"{key}: names no system")
    for benchmark, system in row.items():
        if benchmark not in {*study.columns, MODEL}:
            allowed = ", ".join([*study.columns, MODEL])
            raise EmsError(f"{key}: found {benchmark!r}, expected one of the columns: {allowed}")
        if system not in systems:
            raise EmsError(f"{key}: {system} has no entry under systems")


def _check_known(key: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in benchmarks():
            raise EmsError(f"{key}: unknown benchmark {name!r}; allowed: {', '.join(benchmarks())}")
