"""MARC's parts: 2,000 reviews drawn of the source's 160,000, half of each class as dev and test
are; dev and test as published without three stars, 4,000 each (EMS v2 section V-F).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ems.bench.labelled import Kind, Place, Reader, drawn
from ems.benchmarks.marc.data import file_name, read_split
from ems.evalsets.documents import Document

CLASSES = ("negative", "positive")


def _read(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    split = {"valid": "dev"}.get(place.part, place.part)
    path = reader.folder / file_name(place.code, split)
    if split != "train":
        return path, _of(read_split(reader.folder, place.code, split), CLASSES)
    count, documents = reader.settings.train, []
    for number, name in enumerate(CLASSES):
        share = count * (number + 1) // len(CLASSES) - count * number // len(CLASSES)
        some = _of(read_split(reader.folder, place.code, split), (name,))
        documents += drawn(some, share, f"{reader.seed} marc {place.code} {name}", path)
    return path, documents


def _of(documents: Iterable[Document], classes: tuple[str, ...]) -> Iterator[Document]:
    return (document for document in documents if document.label in classes)


KIND = Kind(CLASSES, _read)
