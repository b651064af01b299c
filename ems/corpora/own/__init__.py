"""The user's own text, read where it lies: one module for each form of file.

The name of a file says its form, its first bytes how it is packed. A reader yields a row for each
row of the file, and for one that is no pair the reason (`Bad`): a file of millions of rows has a
few of these, and one of them must not stop a run.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from ems.base.errors import EmsError
from ems.config.experiment import Corpus
from ems.corpora.own import aligned, json_lines, parquet, tsv
from ems.corpora.own.rows import BAD, Bad, Row
from ems.corpora.packed import OWN, open_packed

__all__ = ["BAD", "Bad", "Row", "check_needs", "count_rows", "own_files", "read_rows"]

PACKED = {".gz", ".bz2", ".xz", ".zst"}
FORMS = {
    ".tsv": tsv,
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": json_lines,
    ".parquet": parquet,
}


def own_files(corpus: Corpus, pair: str) -> list[Path]:
    """Return the user's files of a pair: one, two of as many lines, or the parquet files of a
    folder (those that are named train, if there are any); a folder without any stands for itself.
    """
    places = [Path(place) for place in corpus.paths[pair]]
    if len(places) > 1 or not places[0].is_dir():
        return places
    found = sorted(places[0].rglob("*.parquet"))
    return [path for path in found if path.name.startswith("train")] or found or places


def count_rows(paths: list[Path]) -> int:
    """Return the number of rows, good and bad. Raises `EmsError` for files that cannot be read."""
    return _form(paths).count(paths)


def read_rows(paths: list[Path], codes: tuple[str, str]) -> Iterator[Row]:
    """Yield the rows in their order; `codes` name the sides in JSON and parquet."""
    return _form(paths).rows(paths, codes)


def _form(paths: list[Path]) -> ModuleType:
    """Return the reader of some files. Raises `EmsError` for a name that says no form."""
    path, suffix = paths[0], _suffix(paths[0])
    if suffix == ".parquet":
        return parquet
    if len(paths) > 1:
        return aligned
    if suffix not in FORMS:
        expected = f"expected a name that ends in {', '.join(FORMS)}"
        if path.is_dir():
            raise EmsError(f"{path}: no parquet file in this folder; save the dataset as parquet")
        raise EmsError(
            f"{path}: {expected} (packed or not), or two files of as many lines; rename it"
        )
    return FORMS[suffix]


def _suffix(path: Path) -> str:
    """Return the suffix that says the form: ".tsv" of "mine.tsv.gz"."""
    return Path(path.stem).suffix if path.suffix in PACKED else path.suffix


def check_needs(paths: list[Path]) -> None:
    """Raise `EmsError` for a form that no reader has, and if a package is missing that reads it."""
    if _form(paths) is parquet and find_spec("pyarrow") is None:
        raise EmsError(f"{paths[0]}: reading parquet needs pyarrow: pip install -e '.[files]'")
    for path in paths:
        open_packed(path, OWN).close()  # raises if it is packed as nothing here can read
