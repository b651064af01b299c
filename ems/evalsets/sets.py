"""The files and the sentences of evaluation sets, asked of the modules `data` of the benchmarks.

What decontamination takes of a set is every sentence of every split that a benchmark evaluates on
(`read_sides`; each reader says which); what only trains a classifier stays out, and so do corpora
of which a benchmark draws its sentences. A set that is downloaded in archives stands in the
workflow by the manifests of its units, except under `path`: a copy of the user's is used in place,
file by file, and so is the embedded one.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ems.benchmarks import benchmark, module
from ems.config import Experiment
from ems.config.experiment import EMBEDDED

Sides = Iterable[Iterable[str]]
Names = Callable[[str], tuple[str, ...]]  # of a language's code in the set


def _names(name: str, function: str) -> Names:
    """A function of a set's `data` that names files or units of a language; none where absent."""
    return getattr(module(name, "data"), function, lambda code: ())


def read_bitext(experiment: Experiment, name: str, folder: Path, code: str) -> list[list[str]]:
    """[sentences, English sentences] of one language of a set of translations, line by line."""
    return list(module(name, "data").read_language(folder, code, **_how(experiment, name)))


def read_sides(experiment: Experiment, name: str, folder: Path, code: str) -> Sides:
    """All sentences of one language of a set: both sides of translations, else one side."""
    return module(name, "data").read_sides(folder, code, **_how(experiment, name))


def _how(experiment: Experiment, name: str) -> dict[str, Any]:
    """Which parts of a set an experiment uses, of those that leave a choice."""
    record, evalset = benchmark(name), experiment.evalsets[name]
    if record.dev:
        return {"dev": evalset.dev}
    if not record.parts:
        return {}
    split = experiment.splits[record.corpus] if evalset.part else None
    return {"split": split, "part": evalset.part}


def units_of(experiment: Experiment, name: str) -> list[str]:
    """The downloads that an experiment needs of a set; none of one that is fetched by language.

    What only trains a classifier is needed where the set is one of the benchmarks.
    """
    kinds = [] if benchmark(name).by_language else [_names(name, "units")]
    if _in_archive(experiment, name):
        kinds = [_names(name, "units")]
    if name in experiment.benchmarks:
        kinds.append(_names(name, "training_units"))
    codes = experiment.evalsets[name].languages
    return list(dict.fromkeys(unit for kind in kinds for code in codes for unit in kind(code)))


def default_folder(experiment: Experiment, name: str, data: Path) -> Path:
    """Where a set lies: the user's copy, or below `data` the demo's, among the corpora, or by
    itself.
    """
    evalset = experiment.evalsets[name]
    if evalset.path:
        return Path(evalset.path)
    if evalset.embedded:
        return data / EMBEDDED / (benchmark(name).demo or name)
    corpus = benchmark(name).corpus
    place = f"opus/{corpus}" if corpus else f"evalsets/{name}"
    return data / place / evalset.version


def manifest_name(unit: str) -> str:
    """The file that says a unit is there, in the set's folder."""
    return f"{unit}.manifest.json"


def set_files(experiment: Experiment, name: str, folder: Path) -> list[Path]:
    """The files of a set that lies in `folder`, in the layout that is there.

    What only trains a classifier is one of them where the set is one of the benchmarks.
    """
    evalset = experiment.evalsets[name]
    paths = [path for code in evalset.languages for path in _files(evalset.dev, name, folder, code)]
    if name in experiment.benchmarks:
        paths += [folder / path for path in _training_files(experiment, name)]
    if evalset.part:
        paths.append(folder / experiment.splits[benchmark(name).corpus].documents)
    return list(dict.fromkeys(paths))


def _training_files(experiment: Experiment, name: str) -> list[str]:
    """The files that only train a classifier, which may depend on its settings."""
    names = getattr(module(name, "data"), "training_files", None)
    if names is None:
        return []
    settings = experiment.probes.get(name)
    return [path for code in experiment.evalsets[name].languages for path in names(code, settings)]


def _files(dev: bool, name: str, folder: Path, code: str) -> list[Path]:
    names, chosen = _names(name, "file_names"), {"dev": dev} if benchmark(name).dev else {}
    paths = [folder / path for path in names(code, **chosen)]
    others = [folder / path for path in _names(name, "other_names")(code)]
    there = any(path.exists() for path in paths)
    return others if not there and any(path.exists() for path in others) else paths


def data_files(experiment: Experiment, name: str, folder: Path) -> list[Path]:
    """Every file that the scores of a benchmark depend on."""
    evalset = experiment.evalsets[name]
    units = [] if evalset.path or evalset.embedded else units_of(experiment, name)
    if units:
        return [folder / manifest_name(unit) for unit in units]
    return set_files(experiment, name, folder)


def unit_source(experiment: Experiment, name: str) -> str:
    """Where the units of a set come from: its entry under `sources`, or '' for as published."""
    source = experiment.sources.get(name, "")
    return source.rpartition("/")[0] or "." if _in_archive(experiment, name) else source


def _in_archive(experiment: Experiment, name: str) -> bool:
    """True if a set that has a file a language comes as an archive of all of them."""
    archive = getattr(module(name, "data"), "ARCHIVE", None)
    return bool(archive) and experiment.sources.get(name, "").endswith(archive)
