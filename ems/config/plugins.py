"""Find the plug-ins that settings name: benchmarks, segmenters and repairs.

A benchmark is a folder of ems.benchmarks, or of the project's extensions/. Its record, which is
light to read, is record.yaml, with settings of its own in `__init__.py` (`Protocol`, `Probe`): the
experiment, the rules and the command line read it. Modules that need libraries are `data`, `score`,
`table` and `demo`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from ems.base.errors import EmsError, mistake
from ems.base.schema import Settings
from ems.config import benchmarks as settings
from ems.config.languages import Language


@dataclass(frozen=True)
class Benchmark:
    """One benchmark, or data that is only used for decontamination. `title` is its name; `task` is
    its name in a table of several benchmarks, if different.

    Data: `status` (open, closed, withdrawn, yours), `licence`, how to `obtain` data that is not
    open, what `source` a user may set, and the address where its files are `published` if units.tsv
    has none.
    `codes` maps our language codes to the benchmark's, or names the column of the language table
    that has them. `corpus` is the OPUS corpus that the data equals or, if `drawn`, is sampled from
    (no experiment may train on that one). `unseen`: all its codes that are scored even if they are
    of languages that were not trained on. `dev` is the archive with a dev part. `demo` is the
    demo's folder, if several benchmarks share one.

    Scores: `sets` are the evaluation sets that it reads (default: its own). `family` is the
    protocol of ems.benchmarks.families that scores it, or the benchmark whose `score` does and
    whose tables show both. `between` says which languages a system needs two of ("": any two, "en":
    English and another). `pivot` is the language without which there is no score, if its family
    does not say it. `parallel`: all languages have the same sentences. `hours` is the time limit of
    a job without a GPU. `joins` maps a table or figure of several benchmarks to the position of
    this one in it.

    Settings: `protocol` is the model of `evalsets.<name>.protocol`, `probe` of `probes.<name>`.
    """

    title: str
    task: str = ""
    status: str = "open"
    licence: str = ""
    obtain: str = ""
    source: str = ""
    published: str = ""
    codes: Mapping[str, str] | str = "iso1"
    unseen: tuple[str, ...] = ()
    by_language: bool = False
    corpus: str = ""
    drawn: bool = False
    dev: str = ""
    demo: str = ""
    sets: tuple[str, ...] | None = None
    family: str = ""
    between: str | None = None
    pivot: str = ""
    parallel: bool = False
    hours: int = 1
    protocol: type[Settings] | None = None
    probe: type[Settings] | None = None
    joins: Mapping[str, int] = field(default_factory=dict)

    @property
    def english(self) -> bool:
        """True if English is a language of the set; false if it is one side of every pair."""
        return self.family != "retrieval"

    def code_of(self, language: Language) -> str:
        """Return a language's code in the set, '' for none (as for English in translations)."""
        if not isinstance(self.codes, str):
            return self.codes.get(language.iso1, "")
        return getattr(language, self.codes) if self.english or language.iso1 != "en" else ""

    @property
    def needed(self) -> str:
        """The language that every score needs, "" for none; a probe may set another `source`."""
        return "en" if self.family or self.probe else self.pivot

    @property
    def parts(self) -> bool:
        """True if an experiment may use one part of the set's documents and train on the others."""
        return bool(self.corpus) and not self.drawn


PACKAGE = "ems.benchmarks"
FAMILIES = "families"
SETTINGS = {"protocol", "probe"}  # fields of a record that are models of settings


def read_record(package: str, **own: Any) -> Benchmark:
    """Return the record in record.yaml next to the file `package`, and its `own` fields that are
    Python objects. A list of codes stands for codes that are the same in the benchmark, the name of
    a `protocol` or `probe` for one of ems.config.benchmarks.
    """
    from ems.config.load import load_yaml  # imported late: it knows the benchmarks

    values = load_yaml(Path(package).with_name("record.yaml"))
    read = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    if "codes" in read:
        read["codes"] = {code: code for code in read["codes"]}
    for key in SETTINGS & values.keys():
        read[key] = getattr(settings, values[key])
    return Benchmark(**{**values, **read, **own})


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return all benchmarks by name. Raises `EmsError` for a folder without a record."""
    folders = {each.name for each in iter_modules(import_module(PACKAGE).__path__) if each.ispkg}
    records = {}
    for name in sorted(folders - {FAMILIES}):
        package = import_module(f"{PACKAGE}.{name}")
        record = getattr(package, "BENCHMARK", None)
        if record is None and Path(package.__file__).with_name("record.yaml").is_file():
            own = {key: vars(package).get(key.capitalize()) for key in SETTINGS}
            record = read_record(package.__file__, **{k: v for k, v in own.items() if v})
        if not isinstance(record, Benchmark):
            raise mistake("no benchmark in a folder", file=package.__file__)
        records[name] = record
    return records


def benchmark(name: str, key: str = "") -> Benchmark:
    """Return the record of a benchmark. Raises `EmsError` with `key` and the allowed names."""
    if name not in benchmarks():
        known = f"unknown benchmark {name!r}; allowed: {', '.join(benchmarks())}"
        raise EmsError(f"{key}: {known}" if key else known)
    return benchmarks()[name]


def module_name(name: str, part: str) -> str:
    """Return the name of a benchmark's module; `part` is "data", "score", "table" or "demo"."""
    return f"{PACKAGE}.{name}.{part}"


def has_module(name: str, part: str) -> bool:
    return find_spec(module_name(name, part)) is not None


def module(name: str, part: str) -> ModuleType:
    return import_module(module_name(name, part))


def joining(output: str) -> list[str]:
    """Return the benchmarks that a table or figure of several is made of, in their order."""
    names = [name for name, record in benchmarks().items() if output in record.joins]
    return sorted(names, key=lambda name: benchmarks()[name].joins[output])


def folder(name: str) -> Path:
    return Path(str(import_module(f"{PACKAGE}.{name}").__file__)).parent


def sets_of(name: str, key: str = "") -> tuple[str, ...]:
    """Return the evaluation sets that a benchmark reads; the first one sets its languages."""
    sets = benchmark(name, key).sets
    return (name,) if sets is None else sets


def sets() -> list[str]:
    """Return the benchmarks that have data of their own."""
    return [name for name in benchmarks() if has_module(name, "data")]


def score_module(name: str) -> str:
    """Return the module whose `score(task)` scores a benchmark."""
    family = benchmark(name).family
    if family and family not in benchmarks():
        return module_name(FAMILIES, family)
    return module_name(family or name, "score")


def segmenters() -> ModuleType:
    return import_module("ems.text.segmenters.base")


def repairs() -> ModuleType:
    return import_module("ems.text.repairs.base")
