"""Commands that make tables and figures."""

from functools import partial
from pathlib import Path
from typing import Annotated

from ems.base.errors import EmsError, mistake
from ems.base.outputs import Writes
from ems.commands import common
from ems.commands.flags import Mark

TABLE, FIGURE = (".tex", ".csv", ".md"), (".svg", ".png", ".pdf")
OutTable = Annotated[Path, "table to write, as .tex, .csv and .md", Writes(suffixes=TABLE)]
PAGE = "page to write (default: results/<experiment>/report/report.html)"
OutFigure = Annotated[Path, "figure to write, as .svg, .png and .pdf", Writes(suffixes=FIGURE)]
SourcePaths = Annotated[list[Path], "input files"]


def table(
    table: Annotated[str, "name of the table", Mark.POSITIONAL],
    out: OutTable,
    experiment: common.OtherExperiment = None,
    sources: Annotated[list[Path], "input files (default: all that the table needs)"] = (),
    experiments: Annotated[str, "experiments that share the table, like small62,mine"] = "",
    expect: common.Expected = "",
) -> None:
    """Write a table of one experiment, or of several together."""
    if not experiments:
        _make("table", table, experiment, expect, sources, out)
        return
    from ems.base.schema import check_name
    from ems.tables.registry import write_together

    if experiment or sources or expect:
        raise mistake("experiments alone")
    names = dict.fromkeys(name.strip() for name in experiments.split(","))
    for name in names:
        check_name("--experiments", name)
    files = write_together(table, [common.experiment_of(name) for name in names], out)
    common.log.info("%s from %s", out, ", ".join(map(str, files)))


def select(
    experiment: common.ExperimentName,
    sources: Annotated[list[Path], "tables and figures to copy"],
    out: Annotated[Path, "folder for the copies", Writes("folder")],
) -> None:
    """Copy tables and figures, and name their experiment in them."""
    from ems.tables.table import write_selected

    write_selected(sources, out, experiment)
    common.log.info("%s of %s: %s files", out, experiment, len(sources))


def report(
    experiment: common.OtherExperiment = None,
    compare: Annotated[list[str], "systems of the experiment, or experiments, side by side"] = (),
    out: Annotated[Path | None, PAGE, Writes(suffixes=(".html",))] = None,
    expect: common.Expected = "",
) -> None:
    """Write a page about an experiment, or about several."""
    from ems.commands.help import version
    from ems.tables.report import runs_of, write_report

    own, chosen = common.planned(experiment, expect, "tables"), []
    name, settings = own.name, {own.name: own}
    for word in compare or [name]:
        if compare and word in settings[name].systems:
            chosen.append((name, word))
        else:
            settings[word] = settings.get(word) or common.experiment_of(word)
            chosen.append((word, ""))
    place = out or Path("results", "compared.html" if compare else f"{name}/report/report.html")
    write_report(runs_of(settings, chosen), place, version())
    common.log.info("%s", place)


def metrics(
    out: Annotated[Path, "folder to write into", Writes("folder", names=("scores.json",))],
    scores: Annotated[list[Path], "score files"] = (),
    losses: Annotated[list[Path], "loss logs, each in its model folder"] = (),
) -> None:
    """Write scores and losses for `dvc metrics` and `dvc plots`."""
    from ems.tables.logs import write_metrics

    write_metrics(scores, losses, out)
    common.log.info("%s: %s score files, %s loss logs", out, len(scores), len(losses))


def figure(
    figure: Annotated[str, "name of the figure", Mark.POSITIONAL],
    experiment: common.ExperimentName,
    sources: SourcePaths,
    out: OutFigure,
    expect: common.Expected = "",
) -> None:
    """Plot scores, or the course of training."""
    _make("figure", figure, experiment, expect, sources, out)


def costs(
    experiment: common.ExperimentName,
    folder: Annotated[Path, "folder of cost files", Mark.AROUND],
    out: OutTable,
    expect: common.Expected = "",
) -> None:
    """Write the table of time and memory."""
    from ems.tables.logs import write_costs_table
    from ems.workflow.plan import has_job

    settings = common.planned(experiment, expect, "tables")
    write_costs_table(folder, out, partial(has_job, settings))
    common.log.info("%s from %s", out, folder)


def timed(
    timed: Annotated[str, "name of the figure or table", Mark.POSITIONAL],
    experiment: common.ExperimentName,
    sources: SourcePaths,
    times: Annotated[list[Path], "logs of the times of training steps"],
    out: Annotated[Path, "table or figure to write", Writes(suffixes=(*TABLE, *FIGURE))],
    expect: common.Expected = "",
) -> None:
    """Write a table or figure that includes training times."""
    systems = {path.name.removesuffix(".times.jsonl"): path for path in times}
    _make("timed", timed, experiment, expect, sources, out, systems)


def _make(
    kind: str,
    name: str,
    experiment: str | None,
    expected: str,
    sources: list[Path],
    out: Path,
    times: dict[str, Path] | None = None,
) -> None:
    """Make a table, a figure or a timed output; without `sources`, of the experiment's files."""
    from ems.tables import registry

    settings = common.planned(experiment, expected, "tables")
    outputs = registry.outputs_of(settings)[kind]
    if name not in outputs:
        raise EmsError(f"unknown {kind} {name!r}; choose one of {', '.join(outputs)}")
    sources = sources or [Path(file) for file in outputs[name].inputs(settings)]
    if not sources:
        raise mistake("no inputs", experiment=settings.name, kind=kind, name=name)
    outputs[name].make(settings, sources, out, times)
    common.log.info("%s from %s", out, ", ".join(map(str, sources)))


def pdf(
    tables: Annotated[list[Path], "LaTeX tables"],
    out: common.OutFile,
    caption: Annotated[dict[str, str], "captions by the name of the table"] = (),
) -> None:
    """Compile tables into one PDF."""
    from ems.tables.pdf import compile_pdf

    compile_pdf(tables, caption, out)
    common.log.info("%s: %s tables", out, len(tables))
