"""Amazon counterfactual sentences (en de ja): does a review describe what did not happen?

`{EN,DE,JP}_{train,valid,test}.tsv`; fields with a tab or a quotation mark are quoted as in CSV.
English uses `EN`, not the larger `EN-ext`. HTML entities (`&uuml;`) are kept. Source: O'Neill et
al. (EMNLP 2021), https://github.com/amazon-science/amazon-multilingual-counterfactual-dataset.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.schema import Settings
from ems.corpora.evalsets.formats import Document, Subset, check_count, numbered_lines

SPLITS = ("train", "valid", "test")
EVALUATED = ("valid", "test")
CLASSES = ("0", "1")
HEADER = ["sentence", "is_counterfactual"]
FROM_ENGLISH = True  # classifiers are trained on English only


def file_name(code: str, split: str) -> str:
    return f"{code}_{split}.tsv"


def file_names(code: str) -> tuple[str, ...]:
    return tuple(file_name(code, split) for split in EVALUATED)


units = file_names  # each file is a download


def training_units(code: str) -> tuple[str, ...]:
    return (file_name(code, "train"),) if code == "EN" else ()


def training_files(code: str, settings: Settings | None) -> tuple[str, ...]:
    return training_units(code)


def read_split(folder: Path, code: str, split: str) -> list[Document]:
    """Return the sentences of a file; raise `EmsError` with file and line for bad input."""
    path, documents = folder / file_name(code, split), []
    lines = _rows(path)
    _, header = next(lines, (0, []))
    if header != HEADER:
        raise EmsError(f"{path}: expected the columns {', '.join(HEADER)}, found {header}")
    for number, row in lines:
        if len(row) != len(HEADER):
            raise EmsError(f"{path}: line {number} has {len(row)} columns, expected {len(HEADER)}")
        text, label = row
        if label not in CLASSES:
            raise EmsError(f"{path}: line {number}: found the label {label!r}; expected 0 or 1")
        if not text.strip():
            raise EmsError(f"{path}: line {number} has an empty sentence")
        documents.append(Document(label, "", text))
    check_count(len(documents), path, "sentences")
    return documents


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in numbered_lines(path):
        try:
            yield number, next(csv.reader([line], delimiter="\t", strict=True), [])
        except csv.Error as error:
            raise EmsError(f"{path}: line {number}: {error}") from None


def read_part(folder: Path, place: Subset, size: int | None) -> tuple[Path, list[Document]]:
    file = folder / file_name(place.code, place.part)
    return file, read_split(folder, place.code, place.part)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    splits = (read_split(folder, code, split) for split in EVALUATED)
    return [(document.text for document in documents) for documents in splits]


def read_unit(folder: Path, unit: str) -> int:
    return len(read_split(folder, *unit.removesuffix(".tsv").split("_")))
