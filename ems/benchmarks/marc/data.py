"""Multilingual Amazon Reviews (MARC, "Amazon Review version 2"): de en es fr ja zh, 1 to 5 stars.

`<split>/dataset_<xx>_<split>.json` has a JSON object per line. More than three stars are positive,
fewer are negative, and three have no class. This leaves 4,000 reviews in dev and in test, as EMS v2
states (section V-F). Source: Keung et al. (EMNLP 2020),
https://registry.opendata.aws/amazon-reviews-ml; Amazon withdrew it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.base.files import parse_json
from ems.base.schema import Settings
from ems.corpora.evalsets.formats import Document, Subset, check_count, numbered_lines, parts

EVALUATED = ("dev", "test")
CLASSES = ("negative", "positive")
LABELS = {1: "negative", 2: "negative", 3: "", 4: "positive", 5: "positive"}
TEXTS = ("review_title", "review_body", "language")
DRAWN = "train"


def file_name(code: str, split: str) -> str:
    return f"{split}/dataset_{code}_{split}.json"


def file_names(code: str) -> tuple[str, ...]:
    return tuple(file_name(code, split) for split in EVALUATED)


def units(code: str) -> tuple[str, ...]:
    return tuple(f"{code}.{split}" for split in EVALUATED)


def training_units(code: str) -> tuple[str, ...]:
    return (f"{code}.train",)


def training_files(code: str, settings: Settings | None) -> tuple[str, ...]:
    return (file_name(code, "train"),)


def read_split(folder: Path, code: str, split: str) -> Iterator[Document]:
    """Yield the reviews of a file; raise `EmsError` with file and line for bad input."""
    path, number = folder / file_name(code, split), 0
    for number, line in numbered_lines(path):
        try:
            entry = parse_json(line)
            label = LABELS[int(entry["stars"])]
            title, body, language = (_text(entry[name]) for name in TEXTS)
        except (ValueError, KeyError, TypeError):
            raise EmsError(
                f"{path}: line {number}: expected a JSON object with stars (1 to 5), review_title, "
                f"review_body and language, found {line[:40]!r}"
            ) from None
        if language != code:
            raise EmsError(f"{path}: line {number}: a review in {language!r}, expected {code}")
        yield Document(label, title, body)
    check_count(number, path, "reviews")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def read_part(folder: Path, place: Subset, size: int | None) -> tuple[Path, Iterator[Document]]:
    """Return the file of a part and its reviews; the class of three stars is ''."""
    split = {"valid": "dev"}.get(place.part, place.part)
    return folder / file_name(place.code, split), read_split(folder, place.code, split)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    return [parts(read_split(folder, code, split)) for split in EVALUATED]


def read_unit(folder: Path, unit: str) -> int:
    return sum(1 for _ in read_split(folder, *unit.split(".")))
