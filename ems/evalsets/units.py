"""Where the files of a benchmark come from: units.tsv in its folder.

A unit is what is downloaded at a time: an archive, or a file of one language. `members` is a
pattern for the names inside an archive; its first group is the file's place in the set's folder, so
that a folder which the archive puts around everything goes. Documented checksums are those of
TensorFlow Datasets, Hugging Face Datasets or another public repository.

No stage but the fetcher reads this: another address must not make anything stale.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache

from ems.benchmarks import folder
from ems.errors import EmsError


@dataclass(frozen=True)
class Unit:
    """One download of a set: `base`/`file`, its sha256 ('' where none is documented)."""

    set: str
    unit: str
    base: str
    file: str
    sha256: str
    members: str

    @property
    def is_archive(self) -> bool:
        """Whether it is unpacked, or is itself the file that the readers read."""
        return bool(self.members)

    def place(self, member: str) -> str | None:
        """Where a member of the archive lies in the set's folder; None for one of no use."""
        found = re.fullmatch(self.members, member)
        return found[1] if found else None


@cache
def units(name: str) -> dict[str, Unit]:
    """The units of a set by their names; none of one that is not downloaded in units."""
    path = folder(name) / "units.tsv"
    if not path.is_file():
        return {}
    with open(path, encoding="utf-8", newline="") as reader:
        rows = csv.DictReader(reader, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["unit"]: Unit(set=name, **row) for row in rows}


def unit(name: str, code: str) -> Unit:
    """A unit of a set. Raises `EmsError` with those that there are."""
    if code not in units(name):
        known = ", ".join(units(name)) or "none"
        raise EmsError(f"{name} has no download {code!r}; allowed values: {known}")
    return units(name)[code]
