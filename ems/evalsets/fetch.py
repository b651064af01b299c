"""Bring a benchmark's files to their place, checked by the reader that will read them."""

from pathlib import Path
from typing import Any

from ems.corpora.download import DOWNLOADS, Downloads
from ems.corpora.fetch import fetch
from ems.errors import EmsError
from ems.evalsets import flores200, sib200
from ems.evalsets.archives import fetch_unit
from ems.evalsets.registry import PER_LANGUAGE, unit
from ems.evalsets.tatoeba import file_names, read_sentences, unequal


def fetch_evalset(
    name: str,
    source: str,
    code: str,
    folder: Path,
    locked: bool = True,
    how: Downloads = DOWNLOADS,
) -> int:
    """Bring the files of one language of a set into `folder`; return the number of sentences.

    Of a set that is downloaded in archives `code` names one of them (`registry`), and `source` may
    be '' for the published address. Raises `EmsError` when a file is missing or malformed, or the
    sides of Tatoeba are unequal.
    """
    if name not in PER_LANGUAGE or code == flores200.UNIT:
        return int(fetch_unit(unit(name, code), source, folder, locked, how)["read"])
    if not source:
        raise EmsError(f"{name}: give --source, the directory or address of its files")
    if name == "tatoeba":
        return fetch_tatoeba(source, code, folder, locked, how)
    files = {"flores200": flores200.file_names, "sib200": sib200.file_names}[name](code)
    counts = [_fetch(name, source, file, folder, locked, how) for file in files]
    return sum(counts)


def _fetch(name: str, source: str, file: str, folder: Path, locked: bool, how: Downloads) -> int:
    def check(path: Path) -> dict[str, Any]:
        read = sib200.read_split if name == "sib200" else read_sentences
        return {"sentences": len(read(path))}

    location = f"{source.rstrip('/')}/{file}"
    return int(fetch(location, folder / file, check, locked, how)["sentences"])


def fetch_tatoeba(
    source: str, code: str, folder: Path, locked: bool = True, how: Downloads = DOWNLOADS
) -> int:
    """Bring both Tatoeba files of one language into `folder`; return the number of pairs.

    Raises `EmsError` when a file is missing, is not UTF-8, or the sides are unequal.
    """
    counts = [_fetch("tatoeba", source, name, folder, locked, how) for name in file_names(code)]
    if counts[0] != counts[1]:
        for name in file_names(code):  # one of the two is bad: neither may become data or be locked
            (folder / name).unlink()
            (folder / f"{name}.lock.json").unlink()
        raise EmsError(unequal(folder, code, counts))
    return counts[0]
