"""RCV2's parts (monolingual paper, section 4.3): how many headlines is not said. Drawn here as many
as MLDoc has, in the classes' own proportion.
"""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from ems.bench.labelled import PARTS, Kind, Place, Reader, drawn
from ems.benchmarks.mldoc.reuters import LABELS, corpus_folder
from ems.benchmarks.rcv2.data import read_titles
from ems.evalsets.documents import Document


def _read(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    path = reader.folder / corpus_folder(place.code)
    if place.code not in reader.drawn:
        sizes = [getattr(reader.settings, part) for part in PARTS]
        titles = read_titles(reader.folder, place.code)
        every = iter(drawn(titles, sum(sizes), f"{reader.seed} rcv2 {place.code}", path))
        parts = {part: list(islice(every, size)) for part, size in zip(PARTS, sizes, strict=True)}
        reader.drawn[place.code] = parts
    return path, reader.drawn[place.code][place.part]


KIND = Kind(LABELS, _read)
