"""Files and sentences of an experiment's evaluation sets, as the `data` modules define them.

Decontamination removes every sentence of every split that a benchmark evaluates on (`read_sides`).
It keeps text that only trains a classifier, and whole corpora that a benchmark samples from. Your
own copy (`path`) and the embedded sets are used in place. Any other set is fetched in units, each
with a manifest, or is part of a corpus.

A unit is a row of units.tsv in the benchmark's folder, or a language. `members` is a pattern for
names inside an archive; its first group is the file's path below the set's folder. No stage reads
units.tsv, because a new address must not make results stale.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ems.base.errors import mistake
from ems.base.files import read_table
from ems.base.records import Json
from ems.config.experiment import EMBEDDED, Experiment
from ems.config.plugins import benchmark, folder, module

Sides = Iterable[Iterable[str]]


def read_bitext(experiment: Experiment, name: str, folder: Path, code: str) -> list[list[str]]:
    """Return [sentences, English sentences] of one language of a translated set, aligned."""
    return list(module(name, "data").read_language(folder, code, **_parts(experiment, name)))


def read_sides(experiment: Experiment, name: str, folder: Path, code: str) -> Sides:
    """Return the sentences of one language: both sides of a translated set, otherwise one side."""
    return module(name, "data").read_sides(folder, code, **_parts(experiment, name))


def _parts(experiment: Experiment, name: str) -> Json:
    """Return the reader's arguments that select a part of the set; {} if it has no parts."""
    record, evalset = benchmark(name), experiment.evalsets[name]
    if not record.parts:
        return _chosen(experiment, name)
    split = experiment.splits[record.corpus] if evalset.part else None
    return {"split": split, "part": evalset.part}


def _chosen(experiment: Experiment, name: str) -> Json:
    """Return the arguments that select files of the set; {} if it has no choice."""
    evalset = experiment.evalsets[name]
    if benchmark(name).dev:
        return {"dev": evalset.dev}
    return {"documents": evalset.documents} if evalset.documents else {}


def _names(name: str, listed: str, *arguments: Any, **options: Any) -> tuple[str, ...]:
    """Return the names `listed` in the set's `data` module, maybe by a function; () if absent."""
    names = getattr(module(name, "data"), listed, ())
    return names(*arguments, **options) if callable(names) else names


def default_folder(experiment: Experiment, name: str, data: Path) -> Path:
    """Return the folder of a set: `path`, the demo's, the corpus it is part of, or its own."""
    evalset, record = experiment.evalsets[name], benchmark(name)
    if evalset.path:
        return Path(evalset.path)
    if evalset.embedded:
        return data / EMBEDDED / (record.demo or name)
    place = f"opus/{record.corpus}" if record.corpus else f"evalsets/{name}"
    return data / place / evalset.version


def set_files(experiment: Experiment, name: str, folder: Path) -> list[Path]:
    """Return the files of a set; the classifier's training files only if it is a benchmark."""
    evalset, paths = experiment.evalsets[name], []
    chosen = _chosen(experiment, name)
    for code in evalset.languages:
        own = [folder / path for path in _names(name, "file_names", code, **chosen)]
        others = [folder / path for path in _names(name, "other_names", code)]
        use_others = any(map(Path.exists, others)) and not any(map(Path.exists, own))
        paths += others if use_others else own
    if name in experiment.benchmarks:
        settings = experiment.probes.get(name)
        for code in evalset.languages:
            paths += [folder / path for path in _names(name, "training_files", code, settings)]
    if evalset.part:
        paths.append(folder / experiment.splits[benchmark(name).corpus].documents)
    return list(dict.fromkeys(paths))


def units_of(experiment: Experiment, name: str) -> list[str]:
    """Return the units to fetch for a set; [] if it is used in place."""
    evalset = experiment.evalsets[name]
    if evalset.path or evalset.embedded:
        return []
    if _by_language(experiment, name):
        return list(evalset.languages)
    chosen = _chosen(experiment, name)
    units = [unit for code in evalset.languages for unit in _names(name, "units", code, **chosen)]
    for code in evalset.languages if name in experiment.benchmarks else ():
        units += _names(name, "training_units", code)
    return list(dict.fromkeys(units))


def data_files(experiment: Experiment, name: str, folder: Path) -> list[Path]:
    """Return the files that scores depend on: one per language, or the manifests of archives."""
    if _by_language(experiment, name):
        return set_files(experiment, name, folder)
    manifests = [folder / manifest_name(unit) for unit in units_of(experiment, name)]
    return manifests or set_files(experiment, name, folder)


def manifest_name(unit: str) -> str:
    return f"{unit}.manifest.json"


def unit_source(experiment: Experiment, name: str) -> str:
    """Return the source of a set's units: its entry under `sources`; '' (default: as published)."""
    source = experiment.sources.get(name, "")
    return source.rpartition("/")[0] or "." if _is_archive(name, source) else source


def _by_language(experiment: Experiment, name: str) -> bool:
    return benchmark(name).by_language and not _is_archive(name, experiment.sources.get(name, ""))


def _is_archive(name: str, source: str) -> bool:
    """Return True if `source` is the archive of a set that is also published by language."""
    archive = getattr(module(name, "data"), "ARCHIVE", None)
    return bool(archive) and source.endswith(archive)


@dataclass(frozen=True)
class Unit:
    """Files fetched together from the address `base`, with published checksum; '': unpublished."""

    set: str
    unit: str
    base: str
    files: tuple[str, ...]
    sha256: str = ""
    members: str = ""

    @property
    def is_archive(self) -> bool:
        return bool(self.members)

    def place(self, member: str) -> str | None:
        """Return the path of an archive's member below the set's folder; None if not needed."""
        match = re.fullmatch(self.members, member)
        return match[1] if match else None


@cache
def units(name: str) -> dict[str, Unit]:
    """Read a benchmark's units.tsv, by name of the unit; {} if it has no such file."""
    path = folder(name) / "units.tsv"
    if not path.is_file():
        return {}
    rows = read_table(path)
    return {row["unit"]: Unit(set=name, files=(row.pop("file"),), **row) for row in rows}


def unit(name: str, code: str) -> Unit:
    """Look up a unit in units.tsv, or the unit of a language. Raises `EmsError` if unknown."""
    if code in units(name):
        return units(name)[code]
    if benchmark(name).by_language:
        return Unit(name, code, "", tuple(module(name, "data").file_names(code)))
    raise mistake("no such download", set=name, code=code, known=units(name))
