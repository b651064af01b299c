"""The downloads of a benchmark: units, listed in units.tsv of its folder or one for each language.

A unit is fetched as a whole: an archive, or one or more files. In units.tsv, `members` is a pattern
for the names inside an archive; its first group is the file's place in the set's folder, which
drops a folder that the archive puts around everything. Documented checksums are those of TensorFlow
Datasets, Hugging Face Datasets or another public repository. Only the fetcher and the check of
sources read this: a new address must not make results stale.
"""

import re
from dataclasses import dataclass
from functools import cache

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.config.plugins import benchmark, folder, module


@dataclass(frozen=True)
class Unit:
    """One unit: `files` of the address `base` ('': none is published), with the documented sha256
    of the only file ('': none is documented).
    """

    set: str
    unit: str
    base: str
    files: tuple[str, ...]
    sha256: str = ""
    members: str = ""

    @property
    def is_archive(self) -> bool:
        """True if the file is unpacked; False if the readers read it as it is."""
        return bool(self.members)

    def place(self, member: str) -> str | None:
        """Return the place of an archive's member in the set's folder; None if it is not needed."""
        match = re.fullmatch(self.members, member)
        return match[1] if match else None


@cache
def units(name: str) -> dict[str, Unit]:
    """Return the units in a benchmark's units.tsv by name; none if it has no such file."""
    path = folder(name) / "units.tsv"
    if not path.is_file():
        return {}
    rows = read_table(path)
    return {row["unit"]: Unit(set=name, files=(row.pop("file"),), **row) for row in rows}


def unit(name: str, code: str) -> Unit:
    """Return a unit of a set: one of units.tsv, or a language's. Raises `EmsError` for another."""
    if code in units(name):
        return units(name)[code]
    if benchmark(name).by_language:
        return Unit(name, code, "", tuple(module(name, "data").file_names(code)))
    known = ", ".join(units(name)) or "none"
    raise EmsError(f"{name} has no download {code!r}; allowed values: {known}")
