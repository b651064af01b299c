"""Finds the benchmarks: one folder of ems.benchmarks each, or of the project's extensions/."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from ems.base.errors import EmsError
from ems.config.record import Benchmark

PACKAGE = "ems.benchmarks"
FAMILIES = "families"


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return every benchmark by name. Raises `EmsError` for a folder without a record."""
    names = {
        module.name for module in iter_modules(import_module(PACKAGE).__path__) if module.ispkg
    } - {FAMILIES}
    return {name: _record(name) for name in sorted(names)}


def _record(name: str) -> Benchmark:
    package = import_module(f"{PACKAGE}.{name}")
    record = getattr(package, "BENCHMARK", None)
    if not isinstance(record, Benchmark):
        raise EmsError(f"{package.__file__}: expected BENCHMARK, a record of ems.config.record")
    return record


def benchmark(name: str) -> Benchmark:
    """Return the record of a benchmark. Raises `EmsError` with the allowed names."""
    if name not in benchmarks():
        raise EmsError(f"unknown benchmark {name!r}; allowed: {', '.join(benchmarks())}")
    return benchmarks()[name]


def module_name(name: str, part: str) -> str:
    """Return the module of a benchmark's folder for a `part`: "data", "score", "table", "demo"."""
    return f"{PACKAGE}.{name}.{part}"


def has(name: str, part: str) -> bool:
    """True if a benchmark's folder has a module for a part."""
    return find_spec(module_name(name, part)) is not None


def module(name: str, part: str) -> ModuleType:
    """Import a part of a benchmark."""
    return import_module(module_name(name, part))


def joining(output: str) -> list[str]:
    """Return the benchmarks that a table or figure of several is made of, in their order."""
    places = {
        n: record.joins[output] for n, record in benchmarks().items() if output in record.joins
    }
    return sorted(places, key=lambda name: places[name])


def folder(name: str) -> Path:
    """Return the folder of a benchmark."""
    return Path(str(import_module(f"{PACKAGE}.{name}").__file__)).parent


def sets_of(name: str) -> tuple[str, ...]:
    """Return the data that a benchmark reads; the first of them have the languages."""
    sets = benchmark(name).sets
    return (name,) if sets is None else sets


def sets() -> list[str]:
    """Return the benchmarks that have data of their own."""
    return [name for name in benchmarks() if has(name, "data")]


def score_module(name: str) -> str:
    """Return the module whose `score(task)` scores a benchmark."""
    family = benchmark(name).family
    if family and family not in benchmarks():
        return module_name(FAMILIES, family)
    return module_name(family or name, "score")
