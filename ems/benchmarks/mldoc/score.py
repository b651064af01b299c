"""MLDoc's parts: train.1000, dev and test as published; the paragraphs without the headline, as
MLDoc's script takes them (EMS v2 section V-E).
"""

from collections.abc import Iterable
from pathlib import Path

from ems.bench.labelled import Kind, Place, Reader
from ems.benchmarks.mldoc.data import file_name, read_split
from ems.benchmarks.mldoc.reuters import LABELS
from ems.evalsets.documents import Document


def _read(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    names = {"train": f"train.{reader.settings.train}", "valid": "dev", "test": "test"}
    split = names[place.part]
    path = reader.folder / file_name(place.code, split)
    return path, read_split(reader.folder, place.code, split)


KIND = Kind(LABELS, _read)
