"""The parquet files of a Hugging Face dataset: a column `translation` with the codes of both
languages, or a column for each code. They are read a thousand rows at a time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.corpora.own.json_lines import of_object
from ems.corpora.own.rows import Row, bad
from ems.corpora.packed import reading

TRANSLATION = "translation"
ROWS = 1000  # read at once


def count(paths: list[Path]) -> int:
    """Return the number of rows of all files."""
    return sum(_open(path).metadata.num_rows for path in paths)


def rows(paths: list[Path], codes: tuple[str, str]) -> Iterator[Row]:
    """Yield the rows of the files, in their order. Raises `EmsError` for other columns."""
    for path in paths:
        file = _open(path)
        columns, batches = _columns(path, file, codes), None
        with reading(path):
            batches = file.iter_batches(ROWS, columns=columns)
        while (batch := _next(path, batches)) is not None:
            for value in _values(batch):
                yield value if not isinstance(value, dict) else of_object(value, codes, str(value))


def _open(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    if not path.is_file():
        raise EmsError(f"{path}: no such file; expected a parquet file")
    with reading(path):
        return ParquetFile(path, pre_buffer=False)


def _columns(path: Path, file: Any, codes: tuple[str, str]) -> list[str]:
    """Return the columns to read."""
    names = set(file.schema_arrow.names)
    if TRANSLATION in names:
        fields = {field.name for field in file.schema_arrow.field(TRANSLATION).flatten()}
        wanted = [f"{TRANSLATION}.{code}" for code in codes]
        if set(wanted) <= fields:
            return wanted
        names = fields
    elif set(codes) <= names:
        return list(codes)
    raise EmsError(
        f"{path}: expected the column {TRANSLATION} with {' and '.join(codes)}, found "
        f"{', '.join(sorted(names))}; `codes` of the corpus may name other codes"
    )


def _next(path: Path, batches: Any) -> Any:
    with reading(path):
        return next(batches, None)


def _values(batch: Any) -> list[Any]:
    """Return the rows as objects; a row that is not UTF-8 as a bad one."""
    try:
        return batch.to_pylist()
    except UnicodeDecodeError:
        return [_value(batch, at) for at in range(batch.num_rows)]


def _value(batch: Any, at: int) -> Any:
    try:
        return batch.slice(at, 1).to_pylist()[0]
    except UnicodeDecodeError:
        return bad("undecodable", f"row {at:,} of a thousand")
