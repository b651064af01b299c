"""The tables and figures of an experiment: which it has, of which files, and how each is made.

The benchmarks bring their own (`tables` and `figures` of their records); here are the others. What
one needs is imported when it is made, so that the workflow and the command line know all of them
without pandas and matplotlib.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.config.experiment import Experiment
from ems.config.plugins import benchmarks, joining, module
from ems.config.record import Shown
from ems.config.studies import study_rows
from ems.config.tables import StudySettings
from ems.tables import words
from ems.tables.printed import paper_of_study

ASKED = ("sweep",)  # no part of `all`


@dataclass(frozen=True)
class Request:
    """A table or a figure to make: of `sources`, most often score files, beside `out`.

    `times`: system -> its costs/train/<system>.times.jsonl, for what shows the cost of training.
    """

    experiment: Experiment
    sources: list[Path]
    out: Path
    times: Mapping[str, Path] | None = None

    @property
    def losses(self) -> dict[str, Path]:
        """Return system -> its losses.jsonl: those of the tables first, in their order."""
        losses = {path.parent.name: path for path in self.sources}
        first = [name for name in self.experiment.shown if name in losses]
        return {name: losses[name] for name in dict.fromkeys([*first, *losses])}

    @property
    def printed(self) -> list[str]:
        """Return the papers' models that the tables show."""
        return self.experiment.tables.printed

    @property
    def families(self) -> Mapping[str, Sequence[str]]:
        """Return the systems that share a row."""
        return self.experiment.families


Sources = Callable[[Experiment], list[str]]
Make = Callable[[Request], None]


@dataclass(frozen=True)
class Output:
    """A table or figure: its words, the files that it is made of (none: the experiment does not
    have it), what makes it, and the benchmark that declares it, if one does.
    """

    shown: Shown
    sources: Sources
    make: Make
    benchmark: str = ""


# --- files


def scores(experiment: Experiment, benchmark: str, systems: list[str] | None = None) -> list[str]:
    """Return the score files of a benchmark, of the systems of the tables; none where it is not
    scored.
    """
    names = experiment.shown if systems is None else systems
    known = benchmark in experiment.benchmarks
    folder = f"results/{experiment.name}/scores"
    return [f"{folder}/{name}/{benchmark}.json" for name in names] if known else []


def _report(experiment: Experiment) -> list[str]:
    return [f"results/{experiment.name}/reports/decontamination.json"]


def _models(experiment: Experiment, file: str) -> list[str]:
    systems = experiment.learning(experiment.shown)
    return [f"results/{experiment.name}/models/{name}/{file}" for name in systems]


def _losses(experiment: Experiment) -> list[str]:
    return _models(experiment, "losses.jsonl")


def _and_report(experiment: Experiment, files: list[str]) -> list[str]:
    return [*files, *_report(experiment)] if files else []


def _vocabularies(experiment: Experiment) -> list[str]:
    systems = [experiment.systems[name] for name in experiment.shown]
    names = dict.fromkeys(s.vocabulary for s in systems if s.trained)
    return [f"results/{experiment.name}/reports/vocabulary/{name}.json" for name in names]


def _mined(experiment: Experiment) -> list[str]:
    """Return what was mined for the systems of all tables and for those that they start from."""
    systems, used = experiment.systems, set(experiment.tabled)
    for name in [*used]:
        while name := systems[name].train.start_from:
            used.add(name)
    names = experiment.learning([name for name in systems if name in used])
    names = [name for name in names if systems[name].objectives.coherence.weight]
    return [f"results/{experiment.name}/models/{name}/mined/manifest.json" for name in names]


def _swept(experiment: Experiment) -> list[str]:
    systems = dict.fromkeys(point.system for point in experiment.sweep)
    return [f"results/{experiment.name}/models/{name}/losses.jsonl" for name in systems]


def _ablated(experiment: Experiment, names: list[str]) -> list[str]:
    """Return score files of the ablation, where its first benchmark has something to compare."""
    systems = experiment.learning(experiment.ablated)
    if len(systems) < 2 or joining("ablation")[0] not in experiment.benchmarks:
        return []
    return [file for each in systems for name in names for file in scores(experiment, name, [each])]


def _priced(experiment: Experiment) -> list[str]:
    """Return score files of the systems that cost minutes, where there is an ablation."""
    name = joining("tradeoff")[0]
    systems = experiment.learning([*experiment.shown, *experiment.ablated])
    systems = list(dict.fromkeys(systems))
    return scores(experiment, name, systems) if _ablated(experiment, [name]) else []


# --- what makes them


def _in(name: str) -> Any:
    """Return a module of this package, imported."""
    return import_module(f"ems.tables.{name}")


def _make_ablation(request: Request) -> None:
    systems = request.experiment.systems
    order = request.experiment.learning(request.experiment.ablated)
    steps = {name: systems[name].train.steps for name in order}
    _in("ablation").write_ablation_table(
        request.sources, request.out, request.printed, order, request.families, request.times, steps
    )


def _plot_ablation(request: Request) -> None:
    scored = {path.parent.name for path in request.sources}
    order = [name for name in request.experiment.ablated if name in scored]
    _in("compare").plot_deltas(request.sources, order, request.out, request.families)


TABLES: dict[str, tuple[Sources, Make]] = {
    "corpora": (_report, lambda r: _in("corpora").write_corpora_table(r.sources[0], r.out)),
    "decontamination": (
        _report,
        lambda r: _in("corpora").write_decontamination_table(r.sources[0], r.out),
    ),
    "filters": (_report, lambda r: _in("corpora").write_filters_table(r.sources[0], r.out)),
    "vocabulary": (
        _vocabularies,
        lambda r: _in("vocabulary").write_vocabulary_table(r.sources, r.out),
    ),
    "models": (
        lambda experiment: _and_report(experiment, _models(experiment, "model.json")),
        lambda r: _in("models").write_models_table(r.sources[:-1], r.sources[-1], r.printed, r.out),
    ),
    "mining": (_mined, lambda r: _in("mining").write_mining_table(r.sources, r.out)),
    "ablation": (lambda experiment: _ablated(experiment, joining("ablation")), _make_ablation),
    "sweep": (
        _swept,
        lambda r: _in("sweep").write_sweep_table(r.experiment.sweep, r.losses, r.out),
    ),
}
FIGURES: dict[str, tuple[Sources, Make]] = {
    "pairs": (
        lambda experiment: _and_report(experiment, scores(experiment, joining("pairs")[0])),
        lambda r: _in("figures").plot_pairs(r.sources[:-1], r.sources[-1], r.out, r.families),
    ),
    "ablation": (lambda experiment: _ablated(experiment, joining("ablation")[:1]), _plot_ablation),
    "learning": (_losses, lambda r: _in("curves").plot_curves(r.losses, r.out)),
    "learning_languages": (
        lambda experiment: _losses(experiment) if experiment.validation else [],
        lambda r: _in("curves").plot_languages(r.losses, r.out),
    ),
}
TIMED: dict[str, tuple[Sources, Make]] = {
    "learning": (
        _losses,
        lambda r: _in("curves").plot_curves_in_time(r.losses, r.times, r.out),
    ),
    "tradeoff": (
        _priced,
        lambda r: _in("figures").plot_tradeoff(r.sources, r.times or {}, r.out),
    ),
    "ablation": TABLES["ablation"],
}


def _of_benchmark(name: str, table: str, shown: Shown) -> Output:
    """Return the output of a benchmark's table, made of its scores and those of its family."""

    def sources(experiment: Experiment) -> list[str]:
        names = [name, *(other for other, of in benchmarks().items() if of.family == name)]
        files = [file for each in names for file in scores(experiment, each, shown.of(experiment))]
        return files[:1] if shown.first else files

    def make(request: Request) -> None:
        made = module(name, "table").TABLES[table]
        if callable(made):
            made(request.sources, request.out)
            return
        order = shown.of(request.experiment)
        files = request.sources
        if shown.among:
            files = [path for path in files if path.parent.name in order]
        _in("engine").write_systems(
            made, files, request.out, request.printed, order, request.families
        )

    return Output(shown, sources, make, name)


def _figure_of_benchmark(name: str, figure: str, shown: Shown) -> Output:
    def make(request: Request) -> None:
        plot = module(name, "table").FIGURES[figure]
        plot(request.sources, request.out, request.families)

    return Output(shown, partial(scores, benchmark=name), make)


# --- studies, which an experiment declares itself

STUDIED = "A study of the experiment (`tables.studies` of its file)."


def _studied(study: StudySettings) -> Sources:
    """Return what a study is made of: score files, models, the report."""

    def sources(experiment: Experiment) -> list[str]:
        if not (study.facts or any(map(experiment.scored, study.columns))):
            return []
        rows = study_rows(experiment, study)
        files = [
            file
            for row in rows
            for of, systems in row.systems.items()
            for file in scores(experiment, experiment.scored(of), systems)
        ]
        if study.costs or "parameters" in study.facts:
            models = experiment.learning([row.model for row in rows])
            files += [f"results/{experiment.name}/models/{name}/model.json" for name in models]
        counted = {"raw_pairs", "pairs"} & {*study.facts}
        return [*files, *(_report(experiment) if counted else [])]

    return lambda experiment: list(dict.fromkeys(sources(experiment)))


def _studies(
    experiment: Experiment, make: str, known: Mapping[str, Output], kept: str = ""
) -> dict[str, Output]:
    """Return the studies by name, in their order, made by a function of ems.tables.study; those
    alone that set `kept`. Raises `EmsError` for a name that another output has.
    """
    made: dict[str, Output] = {}
    for place, (name, study) in enumerate((experiment.tables.studies or {}).items()):
        if name in known:
            raise EmsError(f"tables.studies.{name}: this is the name of another table; rename it")
        if kept and not getattr(study, kept):
            continue
        paper = paper_of_study(study.printed) if study.printed else ""
        shown = Shown(study.caption, 20_000 + place, paper, f"{study.caption} {STUDIED}")
        made[name] = Output(shown, _studied(study), partial(_make_study, name=name, make=make))
    return made


def _make_study(request: Request, name: str, make: str) -> None:
    times = {"times": request.times} if request.times is not None else {}
    getattr(_in("study"), make)(request.experiment, name, request.sources, request.out, **times)


def tables_of(experiment: Experiment) -> dict[str, Output]:
    """Return every table that there may be for an experiment, its studies last."""
    return {**tables(), **_studies(experiment, "write_study", tables())}


def figures_of(experiment: Experiment) -> dict[str, Output]:
    """Return every figure that there may be for an experiment, its studies last."""
    return {**figures(), **_studies(experiment, "plot_study", {**tables(), **figures()}, "figure")}


def timed_of(experiment: Experiment) -> dict[str, Output]:
    """Return what may show the cost of training in an experiment."""
    return {**timed(), **_studies(experiment, "write_study", tables(), "costs")}


def outputs_of(experiment: Experiment) -> dict[str, dict[str, Output]]:
    """Return the command that makes an output (`ems table`, `ems figure`, `ems timed`) -> outputs
    by name, all that there may be for an experiment.
    """
    return {
        "table": tables_of(experiment),
        "figure": figures_of(experiment),
        "timed": timed_of(experiment),
    }


# --- all of them


@cache
def tables() -> dict[str, Output]:
    """Return every table by name, in the order of the PDF."""
    every = {name: Output(words.TABLES[name], *of) for name, of in TABLES.items()}
    for name, record in benchmarks().items():
        every |= {of: _of_benchmark(name, of, shown) for of, shown in record.tables.items()}
    return dict(sorted(every.items(), key=lambda item: (item[1].shown.place, item[0])))


@cache
def figures() -> dict[str, Output]:
    """Return every figure by name."""
    every = {name: Output(words.FIGURES[name], *of) for name, of in FIGURES.items()}
    for name, record in benchmarks().items():
        every |= {of: _figure_of_benchmark(name, of, shown) for of, shown in record.figures.items()}
    return every


@cache
def timed() -> dict[str, Output]:
    """Return what shows the cost of training: figures, and the ablation as a table."""
    return {name: Output(words.TIMED[name], *of) for name, of in TIMED.items()}


def made_of(outputs: Mapping[str, Output], experiment: Experiment) -> dict[str, list[str]]:
    """Return output -> the files that it is made of, of the outputs that an experiment has."""
    sources = {name: output.sources(experiment) for name, output in outputs.items()}
    return {name: files for name, files in sources.items() if files}


def times_of(experiment: Experiment, sources: list[str]) -> list[str]:
    """Return the times of training of the systems that some files (scores, losses) are of."""
    names = experiment.learning(dict.fromkeys(Path(file).parent.name for file in sources))
    return [f"results/{experiment.name}/costs/train/{name}.times.jsonl" for name in names]


def captions(experiment: Experiment, names: list[str]) -> list[str]:
    """Return NAME=CAPTION of each table for the PDF, with the papers' table that it follows."""
    every = tables_of(experiment)
    shown = {name: every[name].shown for name in names}
    papers = {name: f" As {of.paper}." if of.paper else "" for name, of in shown.items()}
    return [f"{name}={of.caption}{papers[name]}" for name, of in shown.items()]
