"""The tables and figures of an experiment: which it has, of which files, and how each is made.

The benchmarks bring their own (`tables` and `figures` of their records); here are the others. What
one needs is imported when it is made, so that the workflow and the command line know all of them
without pandas and matplotlib.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from ems.benchmarks import benchmarks, module
from ems.benchmarks.record import Shown
from ems.config import Experiment
from ems.tables import words

Times = Mapping[str, Path]  # system -> its costs/train/<system>.times.jsonl


@dataclass(frozen=True)
class Request:
    """A table or a figure to make: of `sources`, most often score files, beside `out`.

    `times` are those of the trained systems, for what shows the cost of training.
    """

    experiment: Experiment
    sources: list[Path]
    out: Path
    times: Times | None = None

    @property
    def losses(self) -> dict[str, Path]:
        """System -> its losses.jsonl, of models/<system>/losses.jsonl."""
        return {path.parent.name: path for path in self.sources}

    @property
    def shown_losses(self) -> dict[str, Path]:
        """The losses of the systems of the tables, in their order."""
        losses = self.losses
        return {name: losses[name] for name in self.experiment.shown if name in losses}

    @property
    def how(self) -> dict[str, Any]:
        """What tables of score files take besides them."""
        experiment = self.experiment
        return {"printed": experiment.tables["printed"], "families": experiment.families}


@dataclass(frozen=True)
class Output:
    """A table or figure: its words, the files that it is made of (none: the experiment does not
    have it), and what makes it.
    """

    shown: Shown
    sources: Callable[[Experiment], list[str]]
    make: Callable[[Request], None]


# --- files


def scores(experiment: Experiment, benchmark: str, systems: list[str] | None = None) -> list[str]:
    """The score files of a benchmark, of the systems of the tables; none where it is not scored."""
    names = experiment.shown if systems is None else systems
    known = benchmark in experiment.benchmarks
    folder = f"results/{experiment.name}/scores"
    return [f"{folder}/{name}/{benchmark}.json" for name in names] if known else []


def _report(experiment: Experiment) -> list[str]:
    return [f"results/{experiment.name}/reports/decontamination.json"]


def _losses(experiment: Experiment) -> list[str]:
    systems = experiment.learning(experiment.shown)
    return [f"results/{experiment.name}/models/{name}/losses.jsonl" for name in systems]


def _models_and_report(experiment: Experiment) -> list[str]:
    systems = experiment.learning(experiment.shown)
    models = [f"results/{experiment.name}/models/{name}/model.json" for name in systems]
    return [*models, *_report(experiment)] if models else []


def _vocabularies(experiment: Experiment) -> list[str]:
    systems = [experiment.systems[name] for name in experiment.shown]
    names = dict.fromkeys(s["vocabulary"] for s in systems if s["kind"] == "encoder")
    return [f"results/{experiment.name}/reports/vocabulary/{name}.json" for name in names]


def _swept(experiment: Experiment) -> list[str]:
    systems = dict.fromkeys(point.system for point in experiment.sweep)
    return [f"results/{experiment.name}/models/{name}/losses.jsonl" for name in systems]


def _ablated(experiment: Experiment, *benchmarks: str) -> list[str]:
    """Score files of the ablation, where there is something to compare on Tatoeba."""
    systems = experiment.learning(experiment.ablated)
    if len(systems) < 2 or "tatoeba" not in experiment.benchmarks:
        return []
    return [
        file
        for system in systems
        for name in benchmarks
        for file in scores(experiment, name, [system])
    ]


def _validated(experiment: Experiment) -> list[str]:
    return _losses(experiment) if experiment.validation else []


def _tatoeba_and_report(experiment: Experiment) -> list[str]:
    files = scores(experiment, "tatoeba")
    return [*files, *_report(experiment)] if files else []


def _priced(experiment: Experiment) -> list[str]:
    """Score files of the systems that cost minutes, where there is an ablation."""
    return (
        scores(experiment, "tatoeba", priced(experiment)) if _ablated(experiment, "tatoeba") else []
    )


def priced(experiment: Experiment) -> list[str]:
    """The systems that cost minutes."""
    shown, ablated = experiment.learning(experiment.shown), experiment.learning(experiment.ablated)
    return list(dict.fromkeys([*shown, *ablated]))


# --- what makes them


def _corpora(request: Request) -> None:
    from ems.tables.corpora import write_corpora_table

    write_corpora_table(request.sources[0], request.out)


def _decontamination(request: Request) -> None:
    from ems.tables.corpora import write_decontamination_table

    write_decontamination_table(request.sources[0], request.out)


def _filters(request: Request) -> None:
    from ems.tables.filters import write_filters_table

    write_filters_table(request.sources[0], request.out)


def _vocabulary(request: Request) -> None:
    from ems.tables.vocabulary import write_vocabulary_table

    write_vocabulary_table(request.sources, request.out)


def _models(request: Request) -> None:
    from ems.tables.models import write_models_table

    *models, report = request.sources
    write_models_table(models, report, request.experiment.tables["printed"], request.out)


def _ablation(request: Request) -> None:
    from ems.tables.ablation import write_ablation_table

    systems = request.experiment.systems
    order = request.experiment.learning(request.experiment.ablated)
    steps = {name: systems[name]["train"]["steps"] for name in order}
    own = {"order": order, "steps": steps, "times": request.times}
    write_ablation_table(request.sources, request.out, **request.how, **own)


def _sweep(request: Request) -> None:
    from ems.tables.sweep import write_sweep_table

    write_sweep_table(request.experiment.sweep, request.losses, request.out)


def _plot_pairs(request: Request) -> None:
    from ems.tables.pairs import plot_pairs

    *files, report = request.sources
    plot_pairs(files, report, request.out, request.experiment.families)


def _plot_ablation(request: Request) -> None:
    from ems.tables.deltas import plot_deltas

    found = {path.parent.name for path in request.sources}
    order = [name for name in request.experiment.ablated if name in found]
    plot_deltas(request.sources, order, request.out, request.experiment.families)


def _plot_learning(request: Request) -> None:
    from ems.tables.curves import plot_curves, plot_curves_in_time

    if request.times is None:
        plot_curves(request.shown_losses, request.out)
    else:
        plot_curves_in_time(request.shown_losses, request.times, request.out)


def _plot_learning_languages(request: Request) -> None:
    from ems.tables.languages import plot_languages

    plot_languages(request.shown_losses, request.out)


def _plot_tradeoff(request: Request) -> None:
    from ems.tables.tradeoff import plot_tradeoff

    plot_tradeoff(request.sources, request.times or {}, request.out)


def _of_benchmark(name: str, table: str, shown: Shown) -> Output:
    """A table of a benchmark, of its scores and of those that share it."""

    def sources(experiment: Experiment) -> list[str]:
        names = [name, *(other for other, of in benchmarks().items() if of.shares == name)]
        files = [file for each in names for file in scores(experiment, each, shown.of(experiment))]
        return files[:1] if shown.first else files

    def make(request: Request) -> None:
        from ems.tables.engine import Declaration, write_systems

        made = module(name, "table").TABLES[table]
        if isinstance(made, Declaration):
            order = shown.of(request.experiment)
            files = (
                [path for path in request.sources if path.parent.name in {*order}]
                if shown.among
                else request.sources
            )
            write_systems(made, files, request.out, order=order, **request.how)
        else:
            made(request.sources, request.out)

    return Output(shown, sources, make)


def _figure_of_benchmark(name: str, figure: str, shown: Shown) -> Output:
    def make(request: Request) -> None:
        plot = module(name, "table").FIGURES[figure]
        plot(request.sources, request.out, request.experiment.families)

    return Output(shown, partial(scores, benchmark=name), make)


@cache
def tables() -> dict[str, Output]:
    """Every table by name, in the order of the PDF."""
    own = {
        "corpora": (_report, _corpora),
        "decontamination": (_report, _decontamination),
        "filters": (_report, _filters),
        "vocabulary": (_vocabularies, _vocabulary),
        "models": (_models_and_report, _models),
        "ablation": (lambda e: _ablated(e, "tatoeba", "flores200", "mldoc"), _ablation),
        "sweep": (_swept, _sweep),
    }
    every = {name: Output(words.TABLES[name], *how) for name, how in own.items()}
    for name, record in benchmarks().items():
        every |= {
            table: _of_benchmark(name, table, shown) for table, shown in record.tables.items()
        }
    return dict(sorted(every.items(), key=lambda item: (item[1].shown.place, item[0])))


@cache
def figures() -> dict[str, Output]:
    """Every figure by name."""
    own = {
        "pairs": (_tatoeba_and_report, _plot_pairs),
        "ablation": (lambda e: _ablated(e, "tatoeba"), _plot_ablation),
        "learning": (_losses, _plot_learning),
        "learning_languages": (_validated, _plot_learning_languages),
    }
    every = {name: Output(words.FIGURES[name], *how) for name, how in own.items()}
    for name, record in benchmarks().items():
        every |= {of: _figure_of_benchmark(name, of, shown) for of, shown in record.figures.items()}
    return every


@cache
def timed() -> dict[str, Output]:
    """What shows the cost of training: figures, and the ablation as a table."""
    own = {
        "learning": (_losses, _plot_learning),
        "tradeoff": (_priced, _plot_tradeoff),
        "ablation": (tables()["ablation"].sources, _ablation),
    }
    return {name: Output(words.TIMED[name], *how) for name, how in own.items()}


ASKED = ("sweep",)  # no part of `all`


def made_of(outputs: Mapping[str, Output], experiment: Experiment) -> dict[str, list[str]]:
    """The outputs that an experiment has -> the files that each is made of."""
    sources = {name: output.sources(experiment) for name, output in outputs.items()}
    return {name: files for name, files in sources.items() if files}


def times_of(experiment: Experiment, sources: list[str]) -> list[str]:
    """Return the times of training of the systems that some files (scores, losses) are of."""
    names = dict.fromkeys(Path(file).parent.name for file in sources)
    return [f"results/{experiment.name}/costs/train/{name}.times.jsonl" for name in names]


def captions(names: list[str]) -> list[str]:
    """Return NAME=CAPTION of each table for the PDF, with the papers' table that it follows."""
    shown = {name: tables()[name].shown for name in names}
    papers = {name: f" As {of.paper}." if of.paper else "" for name, of in shown.items()}
    return [f"{name}={of.caption}{papers[name]}" for name, of in shown.items()]
