"""PAWS-X: are two sentences with nearly the same words paraphrases? dev and test, 2,000 pairs each.

As published: `<xx>/{dev,test}_2k.tsv` with a header. In XTREME's layout: `{dev,test}-<xx>.tsv`
without a header and, in some test files, without labels. A pair with an untranslated side (`NS` or
empty) is skipped. Source: Yang et al. (EMNLP 2019),
https://github.com/google-research-datasets/paws.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.evalsets.formats import check_count, named_rows, numbered_lines

CODES = ("de", "en", "es", "fr", "ja", "ko", "zh")
SPLITS = ("dev", "test")
units = ("x-final",)
LABELS = ("0", "1")
COLUMNS = ("sentence1", "sentence2", "label")
ABSENT = {"", "NS"}  # stands for an untranslated sentence


@dataclass(frozen=True)
class Paraphrase:
    """Two sentences; `label` is "1" for a paraphrase, "0" for none, '' if unlabelled."""

    first: str
    second: str
    label: str


def file_names(code: str) -> tuple[str, ...]:
    return tuple(f"{code}/{split}_2k.tsv" for split in SPLITS)


def other_names(code: str) -> tuple[str, ...]:
    return tuple(f"{split}-{code}.tsv" for split in SPLITS)


def read_split(folder: Path, code: str, split: str) -> list[Paraphrase]:
    """Return the pairs of one language; raise `EmsError` with file and line for bad input."""
    return [pair for _, pair in read_numbered(folder, code, split)]


def read_numbered(folder: Path, code: str, split: str) -> list[tuple[int, Paraphrase]]:
    """Return the pairs of `read_split` with their row numbers, which all languages share."""
    place = SPLITS.index(split)
    path, flat = folder / file_names(code)[place], folder / other_names(code)[place]
    lines = named_rows(path, COLUMNS)
    if flat.is_file() and not path.is_file():
        path, lines = flat, _flat_rows(flat)
    pairs = [_pair(path, number, *columns) for number, columns in lines]
    check_count(len(pairs), path, "pairs of sentences")
    return [(row, pair) for row, pair in enumerate(pairs) if not {pair.first, pair.second} & ABSENT]


def _pair(path: Path, number: int, first: str, second: str, label: str | None) -> Paraphrase:
    if label is not None and label not in LABELS:
        raise EmsError(f"{path}: line {number}: found the label {label!r}; expected 0 or 1")
    return Paraphrase(first.strip(), second.strip(), label or "")


def _flat_rows(path: Path) -> Iterator[tuple[int, list[str | None]]]:
    for number, line in numbered_lines(path):
        columns: list[str | None] = [*line.split("\t")]
        if len(columns) not in (2, 3):
            raise EmsError(f"{path}: line {number} has {len(columns)} columns, expected 2 or 3")
        yield number, columns if len(columns) == 3 else [*columns, None]


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    splits = (read_split(folder, code, split) for split in SPLITS)
    return [(text for pair in pairs for text in (pair.first, pair.second)) for pairs in splits]


def read_unit(folder: Path, unit: str) -> int:
    return sum(len(read_split(folder, *which)) for which in product(CODES, SPLITS))
