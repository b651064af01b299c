"""Commands that make tables and figures."""

from functools import partial
from pathlib import Path
from typing import Annotated

from ems.commands import common
from ems.errors import EmsError
from ems.flags import Mark
from ems.outputs import Writes

TABLE, FIGURE = (".tex", ".csv", ".md"), (".svg", ".png")
OutTable = Annotated[Path, "table to write, in three forms", Writes(suffixes=TABLE)]
OutFigure = Annotated[Path, "figure to write, in two forms", Writes(suffixes=FIGURE)]
Sources = Annotated[list[Path], "files that it is made of"]


def table(
    table: Annotated[str, "name of the table", Mark.POSITIONAL],
    experiment: common.ExperimentName,
    sources: Sources,
    out: OutTable,
    expect: common.Expected = "",
) -> None:
    """Write a LaTeX table."""
    _make("table", table, experiment, expect, sources, out)


def figure(
    figure: Annotated[str, "name of the figure", Mark.POSITIONAL],
    experiment: common.ExperimentName,
    sources: Sources,
    out: OutFigure,
    expect: common.Expected = "",
) -> None:
    """Plot scores, or how training went."""
    _make("figure", figure, experiment, expect, sources, out)


def costs(
    experiment: common.ExperimentName,
    folder: Annotated[Path, "folder of cost files", Mark.AROUND],
    out: OutTable,
    expect: common.Expected = "",
) -> None:
    """Write the costs table."""
    from ems.plan import has_job
    from ems.tables.costs import write_costs_table

    settings = common.planned(experiment, expect, "tables")
    write_costs_table(folder, out, partial(has_job, settings))
    common.log.info("%s from %s", out, folder)


def timed(
    timed: Annotated[str, "name of the figure or table", Mark.POSITIONAL],
    experiment: common.ExperimentName,
    sources: Sources,
    times: Annotated[list[Path], "logs of the time of each step"],
    out: Annotated[Path, "table or figure to write", Writes(suffixes=(*TABLE, *FIGURE))],
    expect: common.Expected = "",
) -> None:
    """Make a figure or a table of the time that training takes; it differs from run to run."""
    systems = {path.name.removesuffix(".times.jsonl"): path for path in times}
    _make("timed", timed, experiment, expect, sources, out, systems)


def _make(
    kind: str,
    name: str,
    experiment: str,
    expected: str,
    sources: list[Path],
    out: Path,
    times: dict[str, Path] | None = None,
) -> None:
    """Make a table, a figure or a timed output. Raises `EmsError` for an unknown name."""
    from ems.tables import registry

    settings = common.planned(experiment, expected, "tables")
    outputs = registry.outputs_of(settings)[kind]
    if name not in outputs:
        raise EmsError(f"unknown {kind} {name!r}; allowed: {', '.join(outputs)}")
    outputs[name].make(registry.Request(settings, sources, out, times))
    common.log.info("%s from %s", out, ", ".join(map(str, sources)))


def pdf(
    tables: Annotated[list[Path], "LaTeX tables"],
    out: common.OutFile,
    caption: Annotated[dict[str, str], "captions of the tables"] = (),
) -> None:
    """Compile the tables to one PDF."""
    from ems.tables.pdf import compile_pdf

    compile_pdf(tables, caption, out)
    common.log.info("%s: %s tables", out, len(tables))
