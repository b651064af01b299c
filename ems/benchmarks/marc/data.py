"""Multilingual Amazon Reviews (MARC, "Amazon Review version 2"): de en es fr ja zh, 1 to 5 stars.

`<split>/dataset_<xx>_<split>.json`, a JSON object a line with stars, review_title, review_body and
language; train 200,000, dev 5,000, test 5,000 of each language, a fifth for each number of stars.
Source: Keung et al., "The Multilingual Amazon Reviews Corpus" (EMNLP 2020); Amazon withdrew it. EMS
v2 section V-F (Table XIII).

Notable choices:
- more than three stars are positive, fewer negative, three have no class (''): of dev and test
  4,000 each are left, which are the sizes that the paper states;
- decontamination takes dev and test; train is what a classifier learns from.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ems.errors import EmsError
from ems.evalsets.documents import Document, parts
from ems.evalsets.lines import numbered_lines, some
from ems.files import parse_json
from ems.settings import Settings

SPLITS = ("train", "dev", "test")
EVALUATED = ("dev", "test")
LABELS = {1: "negative", 2: "negative", 3: "", 4: "positive", 5: "positive"}


def file_name(code: str, split: str) -> str:
    """The file of one language and split."""
    return f"{split}/dataset_{code}_{split}.json"


def file_names(code: str) -> tuple[str, ...]:
    """The files of one language (its iso1 code) that a benchmark evaluates on."""
    return tuple(file_name(code, split) for split in EVALUATED)


def units(code: str) -> tuple[str, ...]:
    """The downloads of one language: a file each."""
    return tuple(f"{code}.{split}" for split in EVALUATED)


def training_units(code: str) -> tuple[str, ...]:
    """The download that only training a classifier needs."""
    return (f"{code}.train",)


def training_files(code: str, settings: Settings | None) -> tuple[str, ...]:
    """The file of one language that only training a classifier needs."""
    return (file_name(code, "train"),)


def read_split(folder: Path, code: str, split: str) -> Iterator[Document]:
    """The reviews of one file, one by one. Raises `EmsError` that names file and line."""
    path, number = folder / file_name(code, split), 0
    for number, line in numbered_lines(path):
        entry = _entry(path, number, line)
        if entry["language"] != code:
            raise EmsError(
                f"{path}: line {number}: a review in {entry['language']!r}, expected {code}"
            )
        yield Document(LABELS[int(entry["stars"])], entry["review_title"], entry["review_body"])
    some(number, path, "reviews")


def _entry(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        entry = parse_json(line)
        texts = {name: entry[name] for name in ("review_title", "review_body", "language")}
        stars = int(entry["stars"])
        if stars in LABELS and all(isinstance(text, str) for text in texts.values()):
            return {**texts, "stars": stars}
    except (ValueError, KeyError, TypeError):
        pass
    raise EmsError(
        f"{path}: line {number}: expected a JSON object with stars (1 to 5), review_title, "
        f"review_body and language, found {line[:40]!r}"
    )


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """What training must not see of the reviews of one language."""
    return [parts(read_split(folder, code, split)) for split in EVALUATED]


def read_unit(folder: Path, unit: str) -> int:
    """The number of reviews of a file that was fetched."""
    code, split = unit.split(".")
    return sum(1 for _ in read_split(folder, code, split))
