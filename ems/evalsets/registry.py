"""What each evaluation set is and where it comes from: sets.tsv and units.tsv beside this file.

A unit is what is downloaded at a time: an archive, or a file of one language. `members` is a
pattern for the names inside an archive; its first group is the file's place in the set's folder, so
that a folder which the archive puts around everything goes. Checksums: TensorFlow Datasets and
Hugging Face Datasets (BUCC, XNLI, MARC); FLORES-200's is stated in one public repository.

No stage but the fetcher reads this: another address must not make anything stale.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ems.errors import EmsError

PER_LANGUAGE = ("tatoeba", "flores200", "sib200")  # a file or two for each; the others: units


@dataclass(frozen=True)
class SetInfo:
    """A set's `status` (open, closed, withdrawn), its licence, and how to obtain a closed one."""

    name: str
    status: str
    licence: str
    home: str
    obtain: str


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


def _table(name: str) -> list[dict[str, str]]:
    text = files("ems.evalsets").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def sets() -> dict[str, SetInfo]:
    """Every evaluation set by name."""
    return {row["name"]: SetInfo(**row) for row in _table("sets.tsv")}


@cache
def units() -> dict[tuple[str, str], Unit]:
    """Every unit by (set, unit)."""
    return {(row["set"], row["unit"]): Unit(**row) for row in _table("units.tsv")}


def unit(name: str, code: str) -> Unit:
    """A unit of a set. Raises `EmsError` with those that there are."""
    if (name, code) not in units():
        known = ", ".join(code for set_, code in units() if set_ == name) or "none"
        raise EmsError(f"{name} has no download {code!r}; allowed values: {known}")
    return units()[name, code]
