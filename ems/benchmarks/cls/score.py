"""CLS's parts: train; the *source* language's test part is its validation (2,000), since nothing
else of it has labels, and the target's test part is the test (EMS v2 section V-F).
"""

from collections.abc import Iterable
from pathlib import Path

from ems.bench.labelled import Kind, Place, Reader
from ems.benchmarks.cls.data import DOMAINS, LABELS, file_name, read_split
from ems.evalsets.documents import Document


def _read(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    split = "train" if place.part == "train" else "test"
    path = reader.folder / file_name(place.code, place.domain, split)
    return path, read_split(reader.folder, place.code, place.domain, split)


KIND = Kind(LABELS, _read, domains=DOMAINS)
