"""SIB-200's parts, as published; learnt in English, tested in every language."""

from collections.abc import Iterable
from pathlib import Path

from ems.bench.labelled import Kind, Place, Reader
from ems.benchmarks.sib200.data import LABELS, read_split
from ems.evalsets.documents import Document


def _read(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    split = {"valid": "dev"}.get(place.part, place.part)
    path = reader.folder / f"{place.code}/{split}.tsv"
    return path, (Document(label, "", text) for label, text in read_split(path))


KIND = Kind(LABELS, _read, from_english=True)
