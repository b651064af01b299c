"""The evaluation sets that the demo's mirror holds, each in its publisher's files and layout.

Sets are drawn one after the other (`PLACE` of a benchmark's `demo` module): a new one goes to the end,
so that the bytes of the others stay.
"""

from collections.abc import Iterator

from ems.benchmarks import benchmarks, has, module
from ems.corpora.demo.build import Demo
from ems.corpora.demo.material import Files, Material


def demo_sets() -> dict[str, str]:
    """Return folder of the mirror -> the benchmark that writes it, in the order of drawing."""
    demos = {name: module(name, "demo") for name in benchmarks() if has(name, "demo")}
    places = {name: getattr(demo, "PLACE", len(demos)) for name, demo in demos.items()}
    folders: dict[str, str] = {}
    for name in sorted(places, key=places.__getitem__):
        folders.setdefault(benchmarks()[name].demo or name, name)
    return folders


def made_sets(demo: Demo) -> Iterator[tuple[str, Files]]:
    """Yield (folder, files) of each set."""
    material = Material(demo)
    for folder, name in demo_sets().items():
        yield folder, module(name, "demo").made(material)
