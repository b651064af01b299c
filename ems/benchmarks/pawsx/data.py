"""PAWS-X: are two sentences that share their words paraphrases? dev and test, 2,000 pairs each.

As published, `<xx>/{dev,test}_2k.tsv` with the columns id, sentence1, sentence2, label; as XTREME
lays it out, `{dev,test}-<xx>.tsv` with sentence1, sentence2 and, not in all test files, the label.
Source: Yang et al., "PAWS-X" (EMNLP 2019), https://github.com/google-research-datasets/paws.

Notable choices:
- a pair of which a side is `NS` or empty was not translated and is left out (339 of the 28,000 of
  the seven languages): it could not be judged;
- the translated training parts are not read: a classifier learns from English or from dev.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ems.errors import EmsError
from ems.evalsets.lines import named_rows, numbered_lines, some

CODES = ("de", "en", "es", "fr", "ja", "ko", "zh")
SPLITS = ("dev", "test")
LABELS = ("0", "1")
COLUMNS = ("sentence1", "sentence2", "label")
ABSENT = ("", "NS")  # in the place of a sentence


@dataclass(frozen=True)
class Paraphrase:
    """Two sentences; `label` is "1" when they say the same, "0" when not, '' when not told."""

    first: str
    second: str
    label: str


def file_names(code: str) -> tuple[str, ...]:
    """The files of one language (its iso1 code), as published."""
    return tuple(f"{code}/{split}_2k.tsv" for split in SPLITS)


def other_names(code: str) -> tuple[str, ...]:
    """The files of one language as XTREME lays them out."""
    return tuple(f"{split}-{code}.tsv" for split in SPLITS)


def units(code: str) -> tuple[str, ...]:
    """The archive, which holds all languages."""
    return ("x-final",)


def read_split(folder: Path, code: str, split: str) -> list[Paraphrase]:
    """The pairs of one language of dev or test. Raises `EmsError` that names file and line."""
    return [pair for _, pair in read_numbered(folder, code, split)]


def read_numbered(folder: Path, code: str, split: str) -> list[tuple[int, Paraphrase]]:
    """As `read_split`, each with the number of its row, which is the same in all languages."""
    place = SPLITS.index(split)
    path, flat = folder / file_names(code)[place], folder / other_names(code)[place]
    if flat.is_file() and not path.is_file():
        path, lines = flat, _flat_rows(flat)
    else:
        lines = named_rows(path, COLUMNS)
    found = [_pair(path, number, *columns) for number, columns in lines]
    some(len(found), path, "pairs of sentences")
    return [
        (row, pair)
        for row, pair in enumerate(found)
        if pair.first not in ABSENT and pair.second not in ABSENT
    ]


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """The sentences of one language of dev and test."""

    def side(split: str) -> Iterator[str]:
        for pair in read_split(folder, code, split):
            yield from (pair.first, pair.second)

    return [side(split) for split in SPLITS]


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


def read_unit(folder: Path, unit: str) -> int:
    """The number of pairs of the archive, of all languages."""
    return sum(len(read_split(folder, code, split)) for code in CODES for split in SPLITS)
