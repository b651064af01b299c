"""xsim++: slightly altered sentences of the English FLORES-200 devtest.

`eng_Latn_augmented.devtest` has one altered sentence per line; `eng_Latn_errtype.devtest.json` maps
it to `{"errtype": the alteration, "src": the FLORES sentence}`. A sentence missing there has the
kind ''. Source: Chen et al. (ACL 2023),
https://github.com/facebookresearch/LASER/tree/main/tasks/xsimplusplus.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ems.base.errors import Damaged
from ems.base.files import read_json
from ems.base.records import Record
from ems.corpora.evalsets.formats import check_count, numbered_lines

AUGMENTED = "eng_Latn_augmented.devtest"
KINDS = "eng_Latn_errtype.devtest.json"
file_names = units = AUGMENTED, KINDS  # each file is a download


class _Alteration(Record):
    errtype: str
    src: str


@dataclass(frozen=True)
class Negative:
    """An altered sentence, the kind of alteration ('' if unknown), and the original sentence."""

    sentence: str
    kind: str
    source: str


def read_negatives(folder: Path) -> list[Negative]:
    """Return the altered sentences in file order; raise `EmsError` for malformed files."""
    path = folder / AUGMENTED
    kinds = read_kinds(folder / KINDS)
    negatives = []
    for number, line in numbered_lines(path):
        if not line.strip():
            raise Damaged(path, f"line {number} is empty; expected a sentence on every line")
        negatives.append(Negative(line.strip(), *kinds.get(line.strip(), ("", ""))))
    check_count(len(negatives), path, "sentences")
    if not any(negative.source for negative in negatives):
        raise Damaged(path, f"none of its {len(negatives):,} sentences is in {KINDS}")
    return negatives


def read_kinds(path: Path) -> dict[str, tuple[str, str]]:
    """Map each altered sentence to (kind of alteration, original sentence)."""
    entries = read_json(path, dict[str, _Alteration])
    return {sentence.strip(): (entry.errtype, entry.src) for sentence, entry in entries.items()}


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    return [(negative.sentence for negative in read_negatives(folder))]


def read_unit(folder: Path, unit: str) -> int:
    if unit == KINDS:
        return len(read_kinds(folder / unit))
    return sum(1 for _ in numbered_lines(folder / unit))
