"""xsim++: FLORES-200 devtest, where English also holds sentences that are wrong by a little.

`eng_Latn_augmented.devtest` has one made sentence a line; `eng_Latn_errtype.devtest.json` maps each
to `{"errtype": what was changed, "src": the sentence of FLORES}`. Source: Chen et al., "xSIM++: An
Improved Proxy to Bitext Mining Performance for Low-Resource Languages" (ACL 2023),
https://github.com/facebookresearch/LASER/tree/main/tasks/xsimplusplus (its eval.sh names both
files). xsim itself needs no data but FLORES-200's.

Notable choices:
- candidates are the English sentences of FLORES and then these, as in LASER's eval.py;
- a made sentence that the JSON does not know has no kind (''); when it knows none of them, the two
  files do not belong together;
- the set has English only: the other languages are those of `flores200`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.damaged import Damaged
from ems.evalsets.lines import numbered_lines, some
from ems.files import read_json

AUGMENTED = "eng_Latn_augmented.devtest"
KINDS = "eng_Latn_errtype.devtest.json"


@dataclass(frozen=True)
class Negative:
    """A made sentence, what was changed in it ("" if not told), and the sentence it comes from."""

    sentence: str
    kind: str
    source: str


def file_names(code: str) -> tuple[str, ...]:
    """The files of the one language, eng_Latn."""
    return AUGMENTED, KINDS


def units(code: str) -> tuple[str, ...]:
    """The downloads: a file each."""
    return AUGMENTED, KINDS


def read_negatives(folder: Path) -> list[Negative]:
    """The made sentences in order. Raises `EmsError` for files that are not of that form."""
    path = folder / AUGMENTED
    kinds = read_kinds(folder / KINDS)
    found = []
    for number, line in numbered_lines(path):
        if not line.strip():
            raise Damaged(path, f"line {number} is empty; expected one sentence on every line")
        found.append(Negative(line.strip(), *kinds.get(line.strip(), ("", ""))))
    some(len(found), path, "sentences")
    if not any(negative.source for negative in found):
        raise Damaged(path, f"none of its {len(found):,} sentences is in {KINDS}")
    return found


def read_kinds(path: Path) -> dict[str, tuple[str, str]]:
    """made sentence -> (what was changed, the sentence it comes from)."""
    value = read_json(path, {"type": "object"})  # its entries are many: `_kind` looks at them
    return {sentence.strip(): _kind(path, sentence, entry) for sentence, entry in value.items()}


def _kind(path: Path, sentence: str, entry: Any) -> tuple[str, str]:
    try:
        kind, source = entry["errtype"], entry["src"]
    except (KeyError, TypeError):
        kind = source = None
    if not (isinstance(kind, str) and isinstance(source, str)):
        raise Damaged(path, f"{sentence[:40]!r} has no errtype and src of text")
    return kind, source


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """The made sentences: each is a candidate of the search."""
    return [(negative.sentence for negative in read_negatives(folder))]


def read_unit(folder: Path, unit: str) -> int:
    """The number of made sentences of a file that was fetched."""
    if unit == KINDS:
        return len(read_kinds(folder / unit))
    return sum(1 for _ in numbered_lines(folder / unit))
