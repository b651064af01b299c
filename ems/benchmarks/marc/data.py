"""Multilingual Amazon Reviews (MARC, "Amazon Review version 2"): de en es fr ja zh, 1 to 5 stars.

`<split>/dataset_<xx>_<split>.json` has a JSON object per line. More than three stars are positive,
fewer are negative, and three have no class. This leaves 4,000 reviews in dev and in test, as EMS v2
states (section V-F). Source: Keung et al. (EMNLP 2020),
https://registry.opendata.aws/amazon-reviews-ml; Amazon withdrew it.
"""

from collections.abc import Iterator
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.records import Json
from ems.base.schema import Settings
from ems.corpora.evalsets.formats import Document, Subset, check_count, json_rows, parts

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
    expected = "stars (1 to 5), review_title, review_body and language"
    for number, (label, title, body, language) in json_rows(path, _review, expected):
        if language != code:
            raise EmsError(f"{path}: line {number}: a review in {language!r}, expected {code}")
        yield Document(label, title, body)
    check_count(number, path, "reviews")


def _review(entry: Json) -> list[str]:
    texts = [entry[name] for name in TEXTS]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError
    return [LABELS[int(entry["stars"])], *texts]


def read_part(folder: Path, place: Subset, size: int | None) -> tuple[Path, Iterator[Document]]:
    """Return the file of a part and its reviews; the class of three stars is ''."""
    split = {"valid": "dev"}.get(place.part, place.part)
    return folder / file_name(place.code, split), read_split(folder, place.code, split)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    return [parts(read_split(folder, code, split)) for split in EVALUATED]


def read_unit(folder: Path, unit: str) -> int:
    return sum(1 for _ in read_split(folder, *unit.split(".")))
