"""What the benchmarks of an experiment need of it: their data, and languages that a system has.

Of several sets the first has the languages that are scored, and the `protocol`. A benchmark between
languages counts only those that a system is trained on, so it needs two.
"""

from collections.abc import Collection

from ems.base.errors import EmsError
from ems.base.schema import Settings
from ems.config.experiment import UNSEEN, Experiment
from ems.config.plugins import benchmark as record_of
from ems.config.plugins import sets_of


def protocol_of(experiment: Experiment, benchmark: str) -> Settings | None:
    """Return the settings of how a benchmark is scored; None for one that has nothing to set."""
    sets = sets_of(benchmark)
    return experiment.evalsets[sets[0]].protocol if sets else None


def check_systems(experiment: Experiment) -> None:
    """Raise `EmsError` for a system without a pair to train on, or without one to be scored on."""
    pairs = {pair for corpus in experiment.corpora for pair in corpus.pairs}
    for name, system in experiment.systems.items():
        if not any(set(pair.split("-")) <= set(system.languages) for pair in pairs):
            raise EmsError(
                f"systems.{name}: no corpus has a pair of its languages, "
                f"{', '.join(system.languages)}"
            )
        check_languages(name, experiment.of_system(name))


def check_sets(benchmarks: list[str], evalsets: Collection[str]) -> None:
    """Raise `EmsError` for a benchmark of a set that `evalsets` does not name."""
    for benchmark in benchmarks:
        for name in sets_of(benchmark):
            if name not in evalsets:
                what = name if name == benchmark else f"{benchmark} is of {name}, which"
                raise EmsError(f"benchmarks: {what} has no entry under evalsets")


def check_languages(system: str, own: Experiment) -> None:
    """Raise `EmsError` for a benchmark with none of a system's languages, or with too few.

    `own`: the experiment with the languages of that system.
    """
    for benchmark in own.benchmarks:
        for name in sets_of(benchmark):
            if not own.evalsets[name].languages:
                raise EmsError(
                    f"systems.{system}: {name} has none of its languages, "
                    f"{', '.join(own.languages)}"
                )
        _check_needed(system, benchmark, own)
        if record_of(benchmark).between is not None:
            _check_two(system, benchmark, own)


def _check_needed(system: str, benchmark: str, own: Experiment) -> None:
    """Raise `EmsError` unless a system has the language on one side of all that is scored."""
    needed = getattr(own.probes.get(benchmark), "source", None) or record_of(benchmark).needed
    if needed and needed not in own.languages:
        raise EmsError(
            f"systems.{system}: {benchmark} needs {needed}, found only {', '.join(own.languages)}: "
            "add the language, or take the benchmark out of `benchmarks`"
        )


def _check_two(system: str, benchmark: str, own: Experiment) -> None:
    name, one = sets_of(benchmark)[0], record_of(benchmark).between
    spoken = [language for language in own.spoken(name).values() if language != UNSEEN]
    if len(spoken) < 2 or (one and one not in spoken):
        expected = f"{one} and another" if one else "two"
        raise EmsError(
            f"systems.{system}: {benchmark} needs {expected} of its languages in {name}, found "
            f"{', '.join(spoken) or 'none'}; see evalsets.{name}.languages"
        )
