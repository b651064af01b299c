"""Bring a benchmark's files to their place, checked by the reader that will read them."""

from pathlib import Path
from typing import Any

from ems.benchmarks import benchmark, module
from ems.corpora.download import DOWNLOADS, Downloads
from ems.corpora.fetch import fetch
from ems.errors import EmsError
from ems.evalsets.archives import fetch_unit
from ems.evalsets.units import unit, units


def fetch_evalset(
    name: str,
    source: str,
    code: str,
    folder: Path,
    locked: bool = True,
    how: Downloads = DOWNLOADS,
) -> int:
    """Bring the files of one language of a set into `folder`; return the number of sentences.

    Of a set that is downloaded in archives `code` names one of them (units.tsv), and `source` may
    be '' for the published address. Raises `EmsError` when a file is missing or malformed.
    """
    if not benchmark(name).by_language or code in units(name):
        return int(fetch_unit(unit(name, code), source, folder, locked, how)["read"])
    if not source:
        raise EmsError(f"{name}: give --source, the directory or address of its files")
    return _fetch_language(name, source, code, folder, locked, how)


def _fetch_language(
    name: str, source: str, code: str, folder: Path, locked: bool, how: Downloads
) -> int:
    data = module(name, "data")

    def check(path: Path) -> dict[str, Any]:
        return {"sentences": data.read_file(path)}

    files = data.file_names(code)
    counts = [
        int(fetch(f"{source.rstrip('/')}/{file}", folder / file, check, locked, how)["sentences"])
        for file in files
    ]
    try:
        getattr(data, "check_language", lambda folder, code: None)(folder, code)
    except EmsError:
        for file in files:  # one of them is bad: none may become data or be locked
            (folder / file).unlink()
            (folder / f"{file}.lock.json").unlink()
        raise
    return counts[0] if hasattr(data, "check_language") else sum(counts)
