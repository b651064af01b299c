"""The parts of Amazon counterfactual, as published; learnt in English, tested in every language."""

from collections.abc import Iterable
from pathlib import Path

from ems.bench.labelled import Kind, Place, Reader
from ems.benchmarks.counterfactual.data import LABELS, file_name, read_file
from ems.evalsets.documents import Document


def _read(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    path = reader.folder / file_name(place.code, place.part)
    return path, read_file(path)


KIND = Kind(LABELS, _read, from_english=True)
