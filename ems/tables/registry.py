"""The tables and figures by name: each is made of an experiment and of files, nothing else.

What one needs is imported when it is made, so that the command line knows the names without pandas
and matplotlib.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ems.config import Experiment

Times = Mapping[str, Path]  # system -> its costs/train/<system>.times.jsonl


@dataclass(frozen=True)
class Request:
    """What a table or a figure is made of: `sources`, most often score files, and where it goes."""

    experiment: Experiment
    sources: list[Path]
    out: Path

    @property
    def losses(self) -> dict[str, Path]:
        """System -> its losses.jsonl, of models/<system>/losses.jsonl."""
        return {path.parent.name: path for path in self.sources}

    @property
    def ablated(self) -> list[str]:
        """The systems of scores/<system>/<benchmark>.json, in the order of the ablation table."""
        found = {path.parent.name for path in self.sources}
        return [name for name in self.experiment.ablated if name in found]

    @property
    def shown_losses(self) -> dict[str, Path]:
        """As `losses`, of the systems of the tables, in their order."""
        losses = self.losses
        return {name: losses[name] for name in self.experiment.shown if name in losses}


def _systems(table: str) -> Callable[[Request], None]:
    """What writes a declared table of systems x columns."""

    def write(request: Request) -> None:
        from ems.tables.declared import DECLARED
        from ems.tables.engine import write_systems

        order = _order(request, table)
        own = {name for members in request.experiment.families.values() for name in members}
        scores = request.sources
        if table == "mldoc_bilingual":
            scores = [path for path in scores if path.parent.name in own]
            order = [name for name in order if name in own]
        how = {"order": order, "families": request.experiment.families}
        write_systems(
            DECLARED[table], scores, request.out, request.experiment.tables["printed"], **how
        )

    return write


def _order(request: Request, table: str) -> list[str]:
    """The systems of a table in their order; of unseen languages those that have some."""
    experiment = request.experiment
    if table != "tatoeba_unseen":
        return experiment.shown
    known = "tatoeba" in experiment.evalsets
    return [
        name for name in experiment.shown if known and experiment.scores_unseen("tatoeba", name)
    ]


def _bucc_missed(request: Request) -> None:
    from ems.benchmarks.bucc2018.missed import write_missed_table

    write_missed_table(request.sources, request.out)


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

    how = _how_ablated(request)
    write_ablation_table(request.sources, request.out, *how, None, _steps(request))


def _how_ablated(request: Request) -> tuple[list[str], list[str], dict[str, tuple[str, ...]]]:
    experiment = request.experiment
    order = experiment.learning(experiment.ablated)
    return experiment.tables["printed"], order, experiment.families


def _steps(request: Request) -> dict[str, int]:
    """Steps of training of the systems of the ablation table."""
    experiment = request.experiment
    names = experiment.learning(experiment.ablated)
    return {name: experiment.systems[name]["train"]["steps"] for name in names}


def _sweep(request: Request) -> None:
    from ems.tables.sweep import write_sweep_table

    write_sweep_table(request.experiment.sweep, request.losses, request.out)


def _plot_tatoeba(request: Request) -> None:
    from ems.tables.figures import plot_tatoeba

    plot_tatoeba(request.sources, request.out, request.experiment.families)


def _plot_flores(request: Request) -> None:
    from ems.tables.heatmap import plot_flores

    plot_flores(request.sources, request.out, request.experiment.families)


def _plot_pairs(request: Request) -> None:
    from ems.tables.pairs import plot_pairs

    *scores, report = request.sources
    plot_pairs(scores, report, request.out, request.experiment.families)


def _plot_ablation(request: Request) -> None:
    from ems.tables.deltas import plot_deltas

    plot_deltas(request.sources, request.ablated, request.out, request.experiment.families)


def _plot_learning(request: Request) -> None:
    from ems.tables.curves import plot_curves

    plot_curves(request.shown_losses, request.out)


def _plot_learning_languages(request: Request) -> None:
    from ems.tables.languages import plot_languages

    plot_languages(request.shown_losses, request.out)


def _plot_learning_in_time(request: Request, times: Times) -> None:
    from ems.tables.curves import plot_curves_in_time

    plot_curves_in_time(request.shown_losses, times, request.out)


def _plot_tradeoff(request: Request, times: Times) -> None:
    from ems.tables.tradeoff import plot_tradeoff

    plot_tradeoff(request.sources, times, request.out)


def _ablation_in_time(request: Request, times: Times) -> None:
    from ems.tables.ablation import write_ablation_table

    how = _how_ablated(request)
    write_ablation_table(request.sources, request.out, *how, times, _steps(request))


SYSTEMS = (
    *("tatoeba", "tatoeba_unseen", "ntrex", "flores", "xsim", "wordorder"),
    *("bucc2018", "paracrawl", "europarlxsr", "mldoc", "mldoc_bilingual", "cls", "marc", "rcv2"),
    *("xnli", "sib200", "counterfactual", "pawsx"),
)
TABLES: dict[str, Callable[[Request], None]] = {
    **{name: _systems(name) for name in SYSTEMS},
    "bucc_missed": _bucc_missed,
    "corpora": _corpora,
    "decontamination": _decontamination,
    "filters": _filters,
    "vocabulary": _vocabulary,
    "models": _models,
    "ablation": _ablation,
    "sweep": _sweep,
}
FIGURES: dict[str, Callable[[Request], None]] = {
    "tatoeba": _plot_tatoeba,
    "pairs": _plot_pairs,
    "ablation": _plot_ablation,
    "flores": _plot_flores,
    "learning": _plot_learning,
    "learning_languages": _plot_learning_languages,
}
TIMED: dict[str, Callable[[Request, Times], None]] = {
    "learning": _plot_learning_in_time,
    "tradeoff": _plot_tradeoff,
    "ablation": _ablation_in_time,
}
