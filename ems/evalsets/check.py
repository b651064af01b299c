"""Is every evaluation set of an experiment there, or can it be had? Asked before any job starts."""

from pathlib import Path

from ems.benchmarks import benchmark, benchmarks, has
from ems.config import EMBEDDED, Experiment
from ems.corpora.demo.grammar import LANGUAGES
from ems.errors import EmsError
from ems.evalsets.sets import set_files
from ems.evalsets.units import units

SHOWN = 3  # files that a message names


def check_evalsets(experiment: Experiment) -> None:
    """Raise `EmsError` with the first of `missing_evalsets`."""
    for line in missing_evalsets(experiment):
        raise EmsError(line)


def missing_evalsets(experiment: Experiment) -> list[str]:
    """A line for each copy of the user's (`path`) that lacks a file, each set or language that the
    embedded demo lacks, and each closed set without a copy: how to obtain it, which key to set, and
    which files are expected.
    """
    lines = []
    for name, evalset in experiment.evalsets.items():
        if evalset.path:
            lines += _missing_of_copy(experiment, name, Path(evalset.path))
        elif evalset.embedded:
            lines += _missing_of_demo(experiment, name)
        elif benchmark(name).status != "open" and name not in experiment.sources:
            lines.append(_how_to_obtain(experiment, name))
    return lines


def _missing_of_copy(experiment: Experiment, name: str, folder: Path) -> list[str]:
    key, files = f"evalsets.{name}.path", set_files(experiment, name, folder)
    if not folder.is_dir():
        return [f"{key}: {folder} is no directory; expected {_some(files)}"]
    missing = [path for path in files if not path.exists()]
    return (
        [
            f"{key}: {len(missing):,} of the {len(files):,} files expected are not there: "
            f"{_some(missing)}"
        ]
        if missing
        else []
    )


def _missing_of_demo(experiment: Experiment, name: str) -> list[str]:
    if not has(name, "demo"):
        known = ", ".join(other for other in benchmarks() if has(other, "demo"))
        return [f"sources.{name}: found {EMBEDDED}, but the demo has only {known}"]
    unknown = set(experiment.evalsets[name].languages.values()) - set(LANGUAGES)
    return [
        f"evalsets.{name}.languages: the embedded demo has only {', '.join(LANGUAGES)}, found "
        f"{code}"
        for code in sorted(unknown)[:1]
    ]


def _how_to_obtain(experiment: Experiment, name: str) -> str:
    info = benchmark(name)
    files = _some(set_files(experiment, name, Path("DIRECTORY")))
    other = f" (or sources.{name} to the one with the archive)" if units(name) else ""
    return (
        f"evalsets.{name}: this set is {info.status} ({info.licence}): {info.obtain}; then set "
        f"evalsets.{name}.path to the DIRECTORY with it{other}; expected {files}"
    )


def _some(files: list[Path]) -> str:
    more = f" and {len(files) - SHOWN:,} more" if len(files) > SHOWN else ""
    return ", ".join(map(str, files[:SHOWN])) + more
