"""Which modules a job of the workflow runs, where a benchmark has a part in that.

The hash of their source is in the `params` of the job's rule: decontamination depends on how
sentences are read, scoring also on the protocol, a table on its declaration alone.
"""

from collections.abc import Iterable

from ems.base.provenance import source_hash
from ems.bench.encoders import MODULES as ENCODERS
from ems.config.experiment import Experiment
from ems.config.plugins import benchmarks, has, module_name, score_module, sets_of
from ems.text.segmenters.base import module_name as segmenter_module


def source_of(modules: Iterable[str]) -> str:
    """Return the hash of the source of some modules, one after the other."""
    return "".join(map(source_hash, modules))


def bench_modules(name: str, kind: str) -> list[str]:
    """Return the modules that score a system of a `kind` on a benchmark: protocol, data and
    encoder.
    """
    own = [module_name(name, "score")] if has(name, "score") else []
    data = [module_name(each, "data") for each in sets_of(name)]
    return [score_module(name), *own, *data, ENCODERS[kind]]


def evalkeys_modules(against: Iterable[str]) -> list[str]:
    """Return the modules that read the evaluation sentences of some sets."""
    return ["ems.text.evalkeys", *(module_name(name, "data") for name in against)]


def segment_modules(experiment: Experiment, pair: str) -> list[str]:
    """Return the modules that segment a language pair: the segmenters of its two languages, and no
    other.
    """
    names = [experiment.segmenters[code] for code in pair.split("-")]
    return ["ems.text.bulk", *map(segmenter_module, names)]


def demo_modules() -> list[str]:
    """Return the modules that make the demo's mirror: its corpus and the data of each benchmark."""
    return [
        "ems.corpora.demo",
        *(module_name(name, "demo") for name in benchmarks() if has(name, "demo")),
    ]


def table_modules(table: str, experiment: Experiment | None = None) -> list[str]:
    """Return the modules that make a table: the engine and the declarations of its benchmarks."""
    own = [name for name, of in benchmarks().items() if table in {*of.tables, *of.joins}]
    return _declared([*own, *_studied(table, experiment)])


def figure_modules(figure: str, experiment: Experiment | None = None) -> list[str]:
    """Return the modules that make a figure."""
    own = [name for name, of in benchmarks().items() if figure in {*of.figures, *of.joins}]
    return _declared([*own, *_studied(figure, experiment)])


def _studied(name: str, experiment: Experiment | None) -> list[str]:
    """Return the benchmarks of a study: their tables say which data a paper prints scores of."""
    studies = (experiment and experiment.tables.studies) or {}
    return list(studies[name].columns) if name in studies else []


def _declared(owners: Iterable[str]) -> list[str]:
    parts = [module_name(name, part) for name in owners for part in ("__init__", "table")]
    return ["ems.tables", *parts]
