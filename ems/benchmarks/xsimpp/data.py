"""xsim++: FLORES-200 devtest, where English also holds sentences that are wrong by a little.

`eng_Latn_augmented.devtest` has one made sentence a line; `eng_Latn_errtype.devtest.json` maps each
to `{"errtype": what was changed, "src": the sentence of FLORES}`, or does not list it: then it has
no kind (''). Source: Chen et al. (ACL 2023),
https://github.com/facebookresearch/LASER/tree/main/tasks/xsimplusplus.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ems.base.errors import Damaged
from ems.base.files import read_json
from ems.base.schema import Record
from ems.corpora.evalsets.formats import check_count, numbered_lines

AUGMENTED = "eng_Latn_augmented.devtest"
KINDS = "eng_Latn_errtype.devtest.json"


class _Made(Record):
    """How a sentence was made: what was changed, and in which sentence."""

    errtype: str
    src: str


@dataclass(frozen=True)
class Negative:
    """A made sentence, what was changed in it ('' if unknown), and the sentence it comes from."""

    sentence: str
    kind: str
    source: str


def file_names(code: str) -> tuple[str, ...]:
    return AUGMENTED, KINDS


units = file_names  # each file is a download


def read_negatives(folder: Path) -> list[Negative]:
    """Return the made sentences in order. Raises `EmsError` for files of another form."""
    path = folder / AUGMENTED
    kinds = read_kinds(folder / KINDS)
    negatives = []
    for number, line in numbered_lines(path):
        if not line.strip():
            raise Damaged(path, f"line {number} is empty; expected one sentence on every line")
        negatives.append(Negative(line.strip(), *kinds.get(line.strip(), ("", ""))))
    check_count(len(negatives), path, "sentences")
    if not any(negative.source for negative in negatives):
        raise Damaged(path, f"none of its {len(negatives):,} sentences is in {KINDS}")
    return negatives


def read_kinds(path: Path) -> dict[str, tuple[str, str]]:
    """Return made sentence -> (what was changed, the sentence it comes from)."""
    entries = read_json(path, dict[str, _Made])
    return {sentence.strip(): (entry.errtype, entry.src) for sentence, entry in entries.items()}


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """Return the made sentences: each is a candidate of the search."""
    return [(negative.sentence for negative in read_negatives(folder))]


def read_unit(folder: Path, unit: str) -> int:
    if unit == KINDS:
        return len(read_kinds(folder / unit))
    return sum(1 for _ in numbered_lines(folder / unit))
