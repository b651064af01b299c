"""The evaluation sets by name: which files a language has, and what its sentences are.

Notable choices:
- what decontamination takes of a set is every sentence of every split that a benchmark evaluates
  on (`read_sides`; each reader says which); what only trains a classifier stays out (XNLI, MARC and
  MLDoc train), and ParaCrawl and Europarl, whose sentences the benchmark draws, cannot be named at
  all;
- sides are iterables: one language of BUCC is a million sentences, and none is kept here;
- a set that is downloaded in archives stands in the workflow by the manifests of its units, except
  under `path`: a copy of the user's is used in place, file by file, and so is the embedded one.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import ems.evalsets.bucc2018 as bucc2018  # one by one: the fetchers beside them
import ems.evalsets.cls as cls  # must not be part of the source that a stage depends on
import ems.evalsets.counterfactual as counterfactual
import ems.evalsets.flores200 as flores200
import ems.evalsets.marc as marc
import ems.evalsets.mldoc as mldoc
import ems.evalsets.ntrex as ntrex
import ems.evalsets.paracrawl as paracrawl
import ems.evalsets.pawsx as pawsx
import ems.evalsets.rcv2 as rcv2
import ems.evalsets.sib200 as sib200
import ems.evalsets.tatoeba as tatoeba
import ems.evalsets.xnli as xnli
import ems.evalsets.xsimpp as xsimpp
from ems.config import Experiment
from ems.config.experiment import EMBEDDED, NTREX, RETRIEVED

Names = Callable[[str], tuple[str, ...]]  # of a language's code in the set
Sides = Iterable[Iterable[str]]

FILES: dict[str, Names] = {
    "tatoeba": tatoeba.file_names,
    "flores200": flores200.file_names,
    "sib200": sib200.file_names,
    "ntrex": ntrex.file_names,
    "bucc2018": bucc2018.file_names,
    "xnli": xnli.file_names,
    "pawsx": pawsx.file_names,
    "xsimpp": xsimpp.file_names,
    "cls": cls.file_names,
    "marc": marc.file_names,
    "mldoc": mldoc.file_names,
    "rcv2": rcv2.file_names,
    "counterfactual": counterfactual.file_names,
    "paracrawl": paracrawl.file_names,
    "europarlxsr": paracrawl.file_names,
}
OTHER_LAYOUTS: dict[str, Names] = {  # of a copy of the user's
    "pawsx": pawsx.flat_names,
    "xnli": xnli.json_names,
}
UNITS: dict[str, Names] = {
    "bucc2018": bucc2018.units,
    "xnli": xnli.units,
    "pawsx": pawsx.units,
    "xsimpp": xsimpp.units,
    "cls": cls.units,
    "marc": marc.units,
    "counterfactual": counterfactual.units,
}
TRAINING_UNITS: dict[str, Names] = {
    "xnli": xnli.training_units,
    "marc": marc.training_units,
    "counterfactual": counterfactual.training_units,
}
TRAINING_FILES: dict[str, Names] = {  # of a copy of the user's; MLDoc's depend on a setting
    "xnli": xnli.training_files,
    "marc": marc.training_files,
    "counterfactual": counterfactual.training_files,
}
EMBEDDED_AS = {"mldoc": "reuters", "rcv2": "reuters"}  # folders of the demo that sets share
AMONG_CORPORA = {"ntrex": NTREX, **RETRIEVED}  # lie in OPUS layout
SIDES: dict[str, Callable[[Path, str], Sides]] = {
    "sib200": lambda folder, code: [sib200.read_language(folder, code)],
    "bucc2018": bucc2018.read_sides,
    "xnli": xnli.read_sides,
    "pawsx": pawsx.read_sides,
    "xsimpp": xsimpp.read_sides,
    "cls": cls.read_sides,
    "marc": marc.read_sides,
    "mldoc": mldoc.read_sides,
    "rcv2": rcv2.read_sides,
    "counterfactual": counterfactual.read_sides,
}


def read_bitext(experiment: Experiment, name: str, folder: Path, code: str) -> list[list[str]]:
    """[sentences, English sentences] of one language of a set of translations, line by line."""
    if name == "tatoeba":
        return list(tatoeba.read_language(folder, code))
    evalset = experiment.evalsets[name]
    split = experiment.splits[NTREX] if evalset.part else None
    return ntrex.read_language(folder, code, split, evalset.part)


def read_sides(experiment: Experiment, name: str, folder: Path, code: str) -> Sides:
    """All sentences of one language of a set: both sides of translations, else one side."""
    if name == "flores200":
        return [flores200.read_language(folder, code, experiment.evalsets[name].dev)]
    if name in SIDES:
        return SIDES[name](folder, code)
    return read_bitext(experiment, name, folder, code)


def units_of(experiment: Experiment, name: str) -> list[str]:
    """The downloads that an experiment needs of a set; none of one that is fetched by language.

    What only trains a classifier is needed where the set is one of the benchmarks.
    """
    evalset, kinds = experiment.evalsets[name], [UNITS.get(name)]
    if _in_archive(experiment, name):
        kinds = [flores200.units]
    if name in experiment.benchmarks:
        kinds.append(TRAINING_UNITS.get(name))
    names = [unit for kind in kinds if kind for code in evalset.languages for unit in kind(code)]
    return list(dict.fromkeys(names))


def default_folder(experiment: Experiment, name: str, data: Path) -> Path:
    """Where a set lies: the user's copy, or below `data` the demo's, among the corpora, or by
    itself.
    """
    evalset = experiment.evalsets[name]
    if evalset.path:
        return Path(evalset.path)
    if evalset.embedded:
        return data / EMBEDDED / EMBEDDED_AS.get(name, name)
    place = f"opus/{AMONG_CORPORA[name]}" if name in AMONG_CORPORA else f"evalsets/{name}"
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
    documents = [folder / experiment.splits[NTREX].documents] if evalset.part else []
    return list(dict.fromkeys([*paths, *documents]))


def _training_files(experiment: Experiment, name: str) -> list[str]:
    codes = experiment.evalsets[name].languages
    if name == "mldoc":
        count = experiment.probes[name]["train"]
        return [mldoc.file_name(code, f"train.{count}") for code in codes]
    return [path for code in codes for path in TRAINING_FILES.get(name, _none)(code)]


def _none(code: str) -> tuple[str, ...]:
    return ()


def _files(dev: bool, name: str, folder: Path, code: str) -> list[Path]:
    names = flores200.file_names(code, dev) if name == "flores200" else FILES[name](code)
    paths = [folder / path for path in names]
    if name in OTHER_LAYOUTS and not any(path.exists() for path in paths):
        others = [folder / path for path in OTHER_LAYOUTS[name](code)]
        return others if any(path.exists() for path in others) else paths
    return paths


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
    """Whether the set is FLORES-200 and comes as the official archive, not a file a language."""
    source = experiment.sources.get(name, "")
    return name == "flores200" and source.endswith(flores200.ARCHIVE)
