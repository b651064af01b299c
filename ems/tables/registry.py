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


def _tatoeba(request: Request) -> None:
    from ems.tables.tatoeba import write_tatoeba_table

    experiment = request.experiment
    how = (_printed_of_tatoeba(request), experiment.shown, experiment.families)
    write_tatoeba_table(request.sources, request.out, *how)


def _tatoeba_unseen(request: Request) -> None:
    from ems.tables.tatoeba import write_unseen_table

    experiment = request.experiment
    known = "tatoeba" in experiment.evalsets
    order = [
        name for name in experiment.shown if known and experiment.scores_unseen("tatoeba", name)
    ]
    write_unseen_table(request.sources, request.out, _printed_of_tatoeba(request), order)


def _printed_of_tatoeba(request: Request) -> list[str]:
    """The printed rows asked for that are in Tables IV to VI."""
    from ems.tables.printed import load_models

    return [name for name in request.experiment.tables["printed"] if name in load_models()]


def _ntrex(request: Request) -> None:
    from ems.tables.ntrex import write_ntrex_table

    how = (request.experiment.shown, request.experiment.families)
    write_ntrex_table(request.sources, request.out, *how)


def _flores(request: Request) -> None:
    from ems.tables.flores import write_flores_table

    write_flores_table(request.sources, request.out, *_how(request))


def _xsim(request: Request) -> None:
    from ems.tables.xsim import write_xsim_table

    how = (request.experiment.shown, request.experiment.families)
    write_xsim_table(request.sources, request.out, *how)


def _wordorder(request: Request) -> None:
    from ems.tables.case_study import write_wordorder_table

    experiment = request.experiment
    how = (experiment.tables["printed"], experiment.shown)
    write_wordorder_table(request.sources, request.out, *how)


def _bucc(request: Request) -> None:
    from ems.tables.bucc import write_bucc_table

    write_bucc_table(request.sources, request.out, *_how(request))


def _bucc_missed(request: Request) -> None:
    from ems.tables.bucc import write_missed_table

    write_missed_table(request.sources, request.out)


def _paracrawl(request: Request) -> None:
    from ems.tables.xsr import write_paracrawl_table

    write_paracrawl_table(request.sources, request.out, *_how(request))


def _europarlxsr(request: Request) -> None:
    from ems.tables.xsr import write_europarl_table

    write_europarl_table(request.sources, request.out, *_how(request))


def _how(request: Request) -> tuple[list[str], list[str], dict[str, tuple[str, ...]]]:
    """Printed rows, the systems in their order, and those that share a row."""
    experiment = request.experiment
    return experiment.tables["printed"], experiment.shown, experiment.families


def _accuracies(benchmark: str) -> Callable[[Request], None]:
    """What writes the table of a classification benchmark."""

    def write(request: Request) -> None:
        from ems.tables.documents import write_accuracy_table

        write_accuracy_table(benchmark, request.sources, request.out, *_how(request))

    return write


def _mldoc_bilingual(request: Request) -> None:
    from ems.tables.documents import write_accuracy_table

    printed, shown, families = _how(request)
    own = {name for members in families.values() for name in members}
    scores = [path for path in request.sources if path.parent.name in own]
    order = [name for name in shown if name in own]
    write_accuracy_table("mldoc_bilingual", scores, request.out, printed, order, families)


CLASSIFIED = ("mldoc", "cls", "marc", "rcv2", "xnli", "sib200", "counterfactual", "pawsx")


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


TABLES: dict[str, Callable[[Request], None]] = {
    "tatoeba": _tatoeba,
    "tatoeba_unseen": _tatoeba_unseen,
    "ntrex": _ntrex,
    "flores": _flores,
    "xsim": _xsim,
    "wordorder": _wordorder,
    "bucc2018": _bucc,
    "bucc_missed": _bucc_missed,
    "paracrawl": _paracrawl,
    "europarlxsr": _europarlxsr,
    **{name: _accuracies(name) for name in CLASSIFIED},
    "mldoc_bilingual": _mldoc_bilingual,
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
