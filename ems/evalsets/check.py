"""Check before any job starts that every evaluation set of an experiment is there or can be had."""

from os.path import exists, isdir  # False for a name that no path can have, too
from pathlib import Path

from ems.benchmarks import benchmark, benchmarks, has
from ems.config import EMBEDDED, Experiment
from ems.corpora.demo.grammar import LANGUAGES
from ems.evalsets.sets import set_files
from ems.evalsets.units import units

SHOWN = 3  # files that a message names


def missing_evalsets(experiment: Experiment) -> list[str]:
    """Return a line for each copy (`path`) that lacks files, each set or language that the demo
    lacks, and each closed set without a copy: how to obtain it, the key to set, the files expected.
    """
    lines = []
    for name, evalset in experiment.evalsets.items():
        if evalset.path:
            folder = Path(evalset.path)
            files = set_files(experiment, name, folder)
            lines += missing_files(f"evalsets.{name}.path", folder, files)
        elif evalset.embedded:
            lines += _missing_in_demo(experiment, name)
        elif benchmark(name).status != "open" and name not in experiment.sources:
            lines.append(_how_to_obtain(experiment, name))
    return lines


def missing_files(key: str, folder: Path, files: list[Path]) -> list[str]:
    """Return a line, or none if all `files` exist; `key` names the folder that should have them."""
    if not isdir(folder):
        return [f"{key}: {folder} is no directory; expected {_some(files)}"]
    missing = [path for path in files if not exists(path)]
    counts = f"{len(missing):,} of the {len(files):,} files expected are not there"
    return [f"{key}: {counts}: {_some(missing)}"] if missing else []


def _missing_in_demo(experiment: Experiment, name: str) -> list[str]:
    if not has(name, "demo"):
        known = ", ".join(other for other in benchmarks() if has(other, "demo"))
        return [f"sources.{name}: found {EMBEDDED}, but the demo has only {known}"]
    unknown = sorted(set(experiment.evalsets[name].languages.values()) - set(LANGUAGES))
    known = f"evalsets.{name}.languages: the embedded demo has only {', '.join(LANGUAGES)}"
    return [f"{known}, found {unknown[0]}"] if unknown else []


def _how_to_obtain(experiment: Experiment, name: str) -> str:
    record = benchmark(name)
    files = _some(set_files(experiment, name, Path("DIRECTORY")))
    other = f" (or sources.{name} to the one with the archive)" if units(name) else ""
    return (
        f"evalsets.{name}: this set is {record.status} ({record.licence}): {record.obtain}; then "
        f"set evalsets.{name}.path to the DIRECTORY with it{other}; expected {files}"
    )


def _some(files: list[Path]) -> str:
    more = f" and {len(files) - SHOWN:,} more" if len(files) > SHOWN else ""
    return ", ".join(map(str, files[:SHOWN])) + more
