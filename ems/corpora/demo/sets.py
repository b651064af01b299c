"""The evaluation sets that the demo's mirror holds, each in its publisher's files and layout.

A set is drawn after the corpus and after the sets before it (`demo_place` of its record): a new one
goes to the end, so that the bytes of the others stay.
"""

from collections.abc import Iterator

from ems.benchmarks import benchmarks, has, module
from ems.corpora.demo.build import Demo
from ems.corpora.demo.material import Files, Material


def demo_sets() -> dict[str, str]:
    """Folder below the mirror's -> the benchmark that writes it, in the order of drawing."""
    places = {name: record for name, record in benchmarks().items() if has(name, "demo")}
    ordered = sorted(places, key=lambda name: (places[name].demo_place, name))
    folders: dict[str, str] = {}
    for name in ordered:
        folders.setdefault(places[name].demo or name, name)
    return folders


def made_sets(demo: Demo) -> Iterator[tuple[str, Files]]:
    """Return (folder, files) of each set, drawn one after the other."""
    material = Material(demo)
    for folder, name in demo_sets().items():
        yield folder, module(name, "demo").made(material)
