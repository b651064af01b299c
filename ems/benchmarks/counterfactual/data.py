"""Amazon counterfactual sentences: does a sentence of a review say what was not the case? en de ja.

`{EN,DE,JP}_{train,valid,test}.tsv` with sentence and is_counterfactual (0 or 1); fields with a tab
or a quotation mark are quoted as in CSV. Source: O'Neill et al., "I Wish I Would Have Loved This
One, But I Didn't" (EMNLP 2021),
https://github.com/amazon-science/amazon-multilingual-counterfactual-dataset.

Notable choices:
- English is the part `EN`, not the larger `EN-ext`;
- a classifier learns from English alone, so that of the training parts only English is read, and
  decontamination leaves it out;
- HTML entities (`&uuml;`) stay as published.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from ems.errors import EmsError
from ems.evalsets.documents import Document
from ems.evalsets.lines import numbered_lines, some
from ems.settings import Settings

SPLITS = ("train", "valid", "test")
EVALUATED = ("valid", "test")
LABELS = ("0", "1")
HEADER = ["sentence", "is_counterfactual"]
SOURCE = "EN"  # what a classifier learns from


def file_name(code: str, split: str) -> str:
    """The file of one language ("EN", "DE", "JP") and split."""
    return f"{code}_{split}.tsv"


def file_names(code: str) -> tuple[str, ...]:
    """The files of one language that a benchmark evaluates on."""
    return tuple(file_name(code, split) for split in EVALUATED)


def units(code: str) -> tuple[str, ...]:
    """The downloads of one language: a file each."""
    return file_names(code)


def training_units(code: str) -> tuple[str, ...]:
    """The download that only training a classifier needs."""
    return (file_name(code, "train"),) if code == SOURCE else ()


def training_files(code: str, settings: Settings | None) -> tuple[str, ...]:
    """The same as a file."""
    return training_units(code)


def read_split(folder: Path, code: str, split: str) -> list[Document]:
    """The sentences of one file with their classes. Raises `EmsError` that names file and line."""
    return read_file(folder / file_name(code, split))


def read_file(path: Path) -> list[Document]:
    """As `read_split`, of a path."""
    lines = _rows(path)
    _, header = next(lines, (0, []))
    if header != HEADER:
        raise EmsError(f"{path}: expected the columns {', '.join(HEADER)}, found {header}")
    found = [_document(path, number, row) for number, row in lines]
    some(len(found), path, "sentences")
    return found


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in numbered_lines(path):
        try:
            yield number, next(csv.reader([line], delimiter="\t", strict=True), [])
        except csv.Error as error:
            raise EmsError(f"{path}: line {number}: {error}") from None


def _document(path: Path, number: int, row: list[str]) -> Document:
    if len(row) != len(HEADER):
        raise EmsError(f"{path}: line {number} has {len(row)} columns, expected {len(HEADER)}")
    text, label = row
    if label not in LABELS:
        raise EmsError(f"{path}: line {number}: found the label {label!r}; expected 0 or 1")
    if not text.strip():
        raise EmsError(f"{path}: line {number} has an empty sentence")
    return Document(label, "", text)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """What training must not see of one language."""

    def side(split: str) -> Iterator[str]:
        for document in read_split(folder, code, split):
            yield document.text

    return [side(split) for split in EVALUATED]


def read_unit(folder: Path, unit: str) -> int:
    """The number of sentences of a file that was fetched."""
    return len(read_file(folder / unit))
