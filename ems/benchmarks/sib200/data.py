"""SIB-200 topic classification: `<code>/{train,dev,test}.tsv` with index_id, category, text.

The sentences are from FLORES-200 (dev and devtest) and have one of seven topics. Source: Adelani et
al., "SIB-200" (EACL 2024), https://github.com/dadelani/sib-200.
"""

from collections.abc import Iterator
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.corpora.evalsets.formats import Document, Subset, read_sentences

HEADER = ["index_id", "category", "text"]
SPLITS = ("train", "dev", "test")
CLASSES = ("entertainment", "geography", "health", "politics", "science/technology", "sports")
CLASSES += ("travel",)
FROM_ENGLISH = True  # classifiers are trained on English only


def file_names(code: str) -> tuple[str, ...]:
    return tuple(f"{code}/{split}.tsv" for split in SPLITS)


def read_split(path: Path) -> list[tuple[str, str]]:
    """Return (category, sentence) of each example; raise `EmsError` for a malformed file."""
    header, *lines = (line.split("\t") for line in read_sentences(path))
    if header != HEADER:
        raise EmsError(f"{path}: expected the columns {', '.join(HEADER)}, found {header}")
    for number, line in enumerate(lines, start=2):
        if len(line) != len(HEADER):
            raise EmsError(f"{path}: line {number} has {len(line)} columns, expected {len(HEADER)}")
        if not line[-1].strip():
            raise EmsError(f"{path}: line {number} has an empty text")
        if line[1] not in CLASSES:
            words = {"category": line[1], "classes": CLASSES}
            raise mistake("unknown category", path=path, number=number, **words)
    return [(category, text) for _, category, text in lines]


def read_part(folder: Path, place: Subset, size: int | None) -> tuple[Path, Iterator[Document]]:
    split = {"valid": "dev"}.get(place.part, place.part)
    path = folder / f"{place.code}/{split}.tsv"
    return path, (Document(category, "", text) for category, text in read_split(path))


def read_sides(folder: Path, code: str) -> list[list[str]]:
    return [[text for name in file_names(code) for _, text in read_split(folder / name)]]


def read_unit(folder: Path, unit: str) -> int:
    return sum(len(read_split(folder / name)) for name in file_names(unit))
