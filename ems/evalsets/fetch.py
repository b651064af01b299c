"""Bring a benchmark's files to their place, checked by the reader that will read them."""

from pathlib import Path
from typing import Any

from ems.corpora.fetch import fetch
from ems.errors import EmsError
from ems.evalsets.tatoeba import file_names, read_sentences, unequal


def fetch_tatoeba(source: str, code: str, folder: Path, locked: bool = True) -> int:
    """Bring both Tatoeba files of one language into `folder`; return the number of pairs.

    Raises `EmsError` when a file is missing, is not UTF-8, or the sides are unequal.
    """

    def check(path: Path) -> dict[str, Any]:
        return {"sentences": len(read_sentences(path))}

    counts = [
        fetch(f"{source.rstrip('/')}/{name}", folder / name, check, locked)["sentences"]
        for name in file_names(code)
    ]
    if counts[0] != counts[1]:
        for name in file_names(code):  # one of the two is bad: neither may become data or be locked
            (folder / name).unlink()
            (folder / f"{name}.lock.json").unlink()
        raise EmsError(unequal(folder, code, counts))
    return counts[0]
