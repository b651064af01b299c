"""The tables and figures of an experiment: which it has, of which files, and what makes each.

The benchmarks bring their own (`tables` and `figures` of their records); here are the others. The
workflow and the command line read this, so matplotlib is imported only where a figure is drawn.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path

from ems.base.errors import EmsError
from ems.config.experiment import Experiment
from ems.config.plugins import Shown, benchmarks, joining, module, of_ems
from ems.config.tables import StudySettings, study_rows
from ems.config.yaml import parse_yaml
from ems.tables.corpora import (
    write_corpora_table,
    write_decontamination_table,
    write_filters_table,
    write_vocabulary_table,
)
from ems.tables.declarations import tables_of
from ems.tables.engine import Declaration, write_systems
from ems.tables.models import write_mining_table, write_models_table, write_sweep_table
from ems.tables.printed import paper_of_study
from ems.tables.study import plot_study, write_ablation_table, write_study

ASKED = ("sweep",)  # no part of `all`
STUDIED = "A study of the experiment (`tables.studies` of its file)."


@dataclass(frozen=True)
class Request:
    """A table or a figure to make: of `sources`, most often score files, beside `out`.

    `times`: system -> its costs/train/<system>.times.jsonl, for what shows the cost of training.
    """

    experiment: Experiment
    sources: list[Path]
    out: Path
    times: Mapping[str, Path] | None = None


@dataclass(frozen=True)
class Output:
    """A table or figure: its words, the files that it is made of (none: the experiment does not
    have it), what makes it, and the benchmark that declares it, if one does.
    """

    shown: Shown
    inputs: Callable[[Experiment], list[str]]
    make: Callable[[Request], None]
    benchmark: str = ""


Outputs = dict[str, Output]


# --- inputs


def scores(experiment: Experiment, benchmark: str, systems: list[str] | None = None) -> list[str]:
    """Return the score files of a benchmark, of the systems of the tables; none where it is not
    scored.
    """
    names = experiment.shown if systems is None else systems
    known = benchmark in experiment.benchmarks
    folder = f"results/{experiment.name}/scores"
    return [f"{folder}/{name}/{benchmark}.json" for name in names] if known else []


def report_file(experiment: Experiment) -> list[str]:
    """Return the decontamination report."""
    return [f"results/{experiment.name}/reports/decontamination.json"]


def models(experiment: Experiment) -> list[str]:
    """Return the descriptions of the trained models, and the decontamination report."""
    files = _of_models(experiment, experiment.learning(experiment.shown), "model.json")
    return [*files, *report_file(experiment)] if files else []


def losses(experiment: Experiment) -> list[str]:
    """Return the loss logs of the systems of the tables."""
    return _of_models(experiment, experiment.learning(experiment.shown), "losses.jsonl")


def language_losses(experiment: Experiment) -> list[str]:
    """Return the loss logs that have P@1 per language."""
    return losses(experiment) if experiment.validation else []


def swept(experiment: Experiment) -> list[str]:
    """Return the loss logs of the points of a sweep."""
    systems = dict.fromkeys(point.system for point in experiment.sweep)
    return _of_models(experiment, systems, "losses.jsonl")


def vocabularies(experiment: Experiment) -> list[str]:
    """Return the reports on the vocabularies of the systems of the tables."""
    systems = [experiment.systems[name] for name in experiment.shown]
    names = dict.fromkeys(system.vocabulary for system in systems if system.trained)
    return [f"results/{experiment.name}/reports/vocabulary/{name}.json" for name in names]


def mined(experiment: Experiment) -> list[str]:
    """Return the manifests of mined pairs for all tabled systems and those they start from."""
    systems, used = experiment.systems, set(experiment.tabled)
    for name in [*used]:
        while name := systems[name].train.start_from:
            used.add(name)
    names = experiment.learning([name for name in systems if name in used])
    names = [name for name in names if systems[name].objectives.coherence.weight]
    return _of_models(experiment, names, "mined/manifest.json")


def pairs_and_scores(experiment: Experiment) -> list[str]:
    """Return the score files for the figure of training pairs, and the decontamination report."""
    files = scores(experiment, joining("pairs")[0])
    return [*files, *report_file(experiment)] if files else []


def ablated(experiment: Experiment) -> list[str]:
    """Return the score files of the ablation, where its first benchmark has two systems."""
    systems = experiment.learning(experiment.ablated)
    if len(systems) < 2 or joining("ablation")[0] not in experiment.benchmarks:
        return []
    names = joining("ablation")
    return [file for each in systems for name in names for file in scores(experiment, name, [each])]


def compared(experiment: Experiment) -> list[str]:
    """Return the score files of the ablation on its first benchmark."""
    first = joining("ablation")[0]
    return [file for file in ablated(experiment) if Path(file).stem == first]


def priced(experiment: Experiment) -> list[str]:
    """Return the score files for the speed/quality plot; none if there is no ablation."""
    systems = experiment.learning([*experiment.shown, *experiment.ablated])
    names = list(dict.fromkeys(systems))
    return scores(experiment, joining("tradeoff")[0], names) if ablated(experiment) else []


def of_study(experiment: Experiment, study: StudySettings) -> list[str]:
    """Return what a study is made of: score files, models, the report."""
    if not (study.facts or any(map(experiment.scored, study.columns))):
        return []
    rows = study_rows(experiment, study)
    files = [
        file
        for row in rows
        for name, systems in row.systems.items()
        for file in scores(experiment, experiment.scored(name), systems)
    ]
    if study.costs or "parameters" in study.facts:
        names = experiment.learning([row.model for row in rows])
        files += _of_models(experiment, names, "model.json")
    if {"raw_pairs", "pairs"} & {*study.facts}:
        files += report_file(experiment)
    return list(dict.fromkeys(files))


def of_benchmark(experiment: Experiment, benchmark: str, shown: Shown) -> list[str]:
    """Return the score files of a benchmark and of those that share its table."""
    names = [
        benchmark,
        *(name for name, record in benchmarks().items() if record.family == benchmark),
    ]
    systems = shown.of(experiment)
    files = [file for name in names for file in scores(experiment, name, systems)]
    return files[:1] if shown.first else files


def _of_models(experiment: Experiment, systems: Iterable[str], file: str) -> list[str]:
    return [f"results/{experiment.name}/models/{name}/{file}" for name in systems]


# --- what makes them


def make_corpora(request: Request) -> None:
    write_corpora_table(request.sources[0], request.out)


def make_decontamination(request: Request) -> None:
    write_decontamination_table(request.sources[0], request.out)


def make_filters(request: Request) -> None:
    write_filters_table(request.sources[0], request.out)


def make_vocabulary(request: Request) -> None:
    write_vocabulary_table(request.sources, request.out)


def make_models(request: Request) -> None:
    *files, report = request.sources
    write_models_table(files, report, request.experiment.tables.printed, request.out)


def make_mining(request: Request) -> None:
    write_mining_table(request.sources, request.out)


def make_sweep(request: Request) -> None:
    write_sweep_table(request.experiment.sweep, _losses_of(request), request.out)


def make_ablation(request: Request) -> None:
    experiment = request.experiment
    order = experiment.learning(experiment.ablated)
    write_ablation_table(
        request.sources,
        request.out,
        experiment.tables.printed,
        order,
        experiment.families,
        request.times,
        {name: experiment.systems[name].train.steps for name in order},
    )


def make_study(request: Request, name: str) -> None:
    write_study(request.experiment, name, request.sources, request.out, request.times)


def draw_study(request: Request, name: str) -> None:
    plot_study(request.experiment, name, request.sources, request.out)


def draw_ablation(request: Request) -> None:
    from ems.tables.compare import plot_deltas

    scored = {path.parent.name for path in request.sources}
    order = [name for name in request.experiment.ablated if name in scored]
    plot_deltas(request.sources, order, request.out, request.experiment.families)


def draw_pairs(request: Request) -> None:
    from ems.tables.figures import plot_pairs

    *files, report = request.sources
    plot_pairs(files, report, request.out, request.experiment.families)


def draw_tradeoff(request: Request) -> None:
    from ems.tables.figures import plot_tradeoff

    plot_tradeoff(request.sources, request.times or {}, request.out)


def draw_learning(request: Request) -> None:
    """Draw the curves against the pairs seen or, if times are given, against minutes."""
    from ems.tables.curves import plot_curves, plot_curves_in_time

    if request.times is None:
        plot_curves(_losses_of(request), request.out)
    else:
        plot_curves_in_time(_losses_of(request), request.times, request.out)


def draw_languages(request: Request) -> None:
    from ems.tables.curves import plot_languages

    plot_languages(_losses_of(request), request.out)


def make_of_benchmark(request: Request, benchmark: str, table: str, shown: Shown) -> None:
    """Write a table that a benchmark declares; a function there writes it itself."""
    declared = tables_of(benchmark)[table]
    if callable(declared):
        declared(request.sources, request.out)
        return
    experiment, order = request.experiment, shown.of(request.experiment)
    kept = [path for path in request.sources if not shown.among or path.parent.name in order]
    printed = experiment.tables.printed
    write_systems(declared, kept, request.out, printed, order, experiment.families)


def draw_of_benchmark(request: Request, benchmark: str, figure: str) -> None:
    plot = module(benchmark, "table").FIGURES[figure]
    plot(request.sources, request.out, request.experiment.families)


def _losses_of(request: Request) -> dict[str, Path]:
    """Return system -> its losses.jsonl: those of the tables first, in their order."""
    logs = {path.parent.name: path for path in request.sources}
    first = [name for name in request.experiment.shown if name in logs]
    return {name: logs[name] for name in dict.fromkeys([*first, *logs])}


# --- all of them


@cache
def outputs() -> dict[str, Outputs]:
    """Return the command that makes an output (`ems table`, `ems figure`, `ems timed`) -> outputs
    by name: every one that is no study, tables in the order of the PDF.
    """
    table, figure, timing = _words().values()
    tables = {
        "corpora": Output(table["corpora"], report_file, make_corpora),
        "decontamination": Output(table["decontamination"], report_file, make_decontamination),
        "filters": Output(table["filters"], report_file, make_filters),
        "vocabulary": Output(table["vocabulary"], vocabularies, make_vocabulary),
        "models": Output(table["models"], models, make_models),
        "mining": Output(table["mining"], mined, make_mining),
        "ablation": Output(table["ablation"], ablated, make_ablation),
        "sweep": Output(table["sweep"], swept, make_sweep),
    }
    figures = {
        "pairs": Output(figure["pairs"], pairs_and_scores, draw_pairs),
        "ablation": Output(figure["ablation"], compared, draw_ablation),
        "learning": Output(figure["learning"], losses, draw_learning),
        "learning_languages": Output(figure["learning_languages"], language_losses, draw_languages),
    }
    timed = {
        "learning": Output(timing["learning"], losses, draw_learning),
        "tradeoff": Output(timing["tradeoff"], priced, draw_tradeoff),
        "ablation": Output(timing["ablation"], ablated, make_ablation),
    }
    for benchmark, record in benchmarks().items():
        for name, shown in record.tables.items():
            inputs = partial(of_benchmark, benchmark=benchmark, shown=shown)
            make = partial(make_of_benchmark, benchmark=benchmark, table=name, shown=shown)
            tables[name] = Output(shown, inputs, make, benchmark)
        for name, shown in record.figures.items():
            inputs = partial(scores, benchmark=benchmark)
            make = partial(draw_of_benchmark, benchmark=benchmark, figure=name)
            figures[name] = Output(shown, inputs, make, benchmark)
    ordered = dict(sorted(tables.items(), key=lambda item: (item[1].shown.place, item[0])))
    return {"table": ordered, "figure": figures, "timed": timed}


def _words() -> dict[str, dict[str, Shown]]:
    """Return what the PDF and the report say of tables and figures that belong to no benchmark."""
    text = resources.files("ems.tables").joinpath("words.yaml").read_text(encoding="utf-8")
    return {
        kind: {
            name: Shown(paper=of_ems(*own) if (own := words.pop("ems_tables", ())) else "", **words)
            for name, words in described.items()
        }
        for kind, described in parse_yaml(text).items()
    }


def outputs_of(experiment: Experiment) -> dict[str, Outputs]:
    """Return all outputs that there may be for an experiment, its studies last.

    Raises `EmsError` for a study that is named as another table or figure.
    """
    every = {kind: dict(known) for kind, known in outputs().items()}
    taken = {*outputs()["table"], *outputs()["figure"]}
    for place, (name, study) in enumerate((experiment.tables.studies or {}).items()):
        if name in taken:
            raise EmsError(f"tables.studies.{name}: this is the name of another table; rename it")
        paper = paper_of_study(study.printed) if study.printed else ""
        shown = Shown(study.caption, 20_000 + place, paper, f"{study.caption} {STUDIED}")
        inputs = partial(of_study, study=study)
        table = Output(shown, inputs, partial(make_study, name=name))
        every["table"][name] = table
        if study.figure:
            every["figure"][name] = Output(shown, inputs, partial(draw_study, name=name))
        if study.costs:
            every["timed"][name] = table
    return every


def made_of(known: Mapping[str, Output], experiment: Experiment) -> dict[str, list[str]]:
    """Return output -> the files that it is made of, of the outputs that an experiment has."""
    inputs = {name: output.inputs(experiment) for name, output in known.items()}
    return {name: files for name, files in inputs.items() if files}


def times_of(experiment: Experiment, sources: list[str]) -> list[str]:
    """Return the times of training of the systems that some files (scores, losses) are of."""
    names = experiment.learning(dict.fromkeys(Path(file).parent.name for file in sources))
    return [f"results/{experiment.name}/costs/train/{name}.times.jsonl" for name in names]


def captions(experiment: Experiment, names: list[str]) -> list[str]:
    """Return NAME=CAPTION of each table for the PDF, with the papers' table that it follows."""
    every = outputs_of(experiment)["table"]
    words = [(name, every[name].shown) for name in names]
    return [f"{name}={own.caption}{own.paper and f' As {own.paper}.'}" for name, own in words]


# --- of several experiments


def write_together(table: str, experiments: Sequence[Experiment], out: Path) -> list[Path]:
    """Write a table of the systems of several experiments as .tex, .md and .csv beside `out`;
    return the score files that it is made of.

        ems table tatoeba --experiments small62,mine --out both.tex

    A system whose name two experiments have is named after its experiment: "mine: ems". The data
    must be the same: an experiment of fewer languages reads fewer files, so those that both read
    count. Raises `EmsError` for a table that is of one experiment, an experiment that does not have
    it, and scores that cannot share a table.
    """
    declared = {
        name: made
        for name, output in outputs()["table"].items()
        if output.benchmark and isinstance(made := tables_of(output.benchmark)[name], Declaration)
    }
    if table not in declared:
        raise EmsError(
            f"--experiments: expected a table of systems, found {table!r}; these may have several "
            f"experiments: {', '.join(declared)}"
        )
    output = outputs()["table"][table]
    systems = {each.name: output.shown.of(each) for each in experiments}
    counts = Counter(name for each in experiments for name in {*systems[each.name], *each.families})
    paths: dict[Path, str] = {}  # score file -> its row
    order, families = [], {}
    for each in experiments:
        files = [Path(file) for file in output.inputs(each)]
        if not files:
            raise EmsError(
                f"configs/{each.name}.yaml: expected an experiment that has the table {table}, "
                "found none of its scores; add its benchmark, or leave the experiment out"
            )
        rows = {
            name: f"{each.name}: {name}" if counts[name] > 1 else name
            for name in [*systems[each.name], *each.families]
        }
        paths |= {path: rows[path.parent.name] for path in files}
        order += [rows[system] for system in systems[each.name]]
        families |= {
            rows[family]: [rows[member] for member in members]
            for family, members in each.families.items()
            if set(members) <= rows.keys()
        }
    printed = list(dict.fromkeys(name for each in experiments for name in each.tables.printed))
    write_systems(declared[table], [*paths], out, printed, order, families, paths)
    return list(paths)
