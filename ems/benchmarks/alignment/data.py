"""Bleualign: German and French documents, a sentence per line, and their gold alignments.

A document is `NAME.de`, `NAME.fr` and `NAME.defr`. A line of the last one is an alignment, such as
`[0]:[0, 1]`: the numbers of German and of French lines, from 0. A sentence without a partner has an
empty list on the other side. A third field is ignored. Source: Sennrich and Volk (AMTA 2010), in
https://github.com/thompsonb/vecalign, bleualign_data.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ems.base.errors import mistake
from ems.base.texts import is_visible
from ems.corpora.evalsets.formats import check_count, numbered_lines

SIDES = ("de", "fr")
GOLD = "".join(SIDES)
MAIN = "strict F1"  # the measure that systems are compared by
MEASURES = ("strict P", "strict R", MAIN, "lax P", "lax R", "lax F1")
LENGTHS = "by length alone"  # the baseline
NUMBERS = r"\s*\[\s*((?:[0-9]{1,9}\s*(?:,\s*[0-9]{1,9}\s*)*)?)\]\s*"
ALIGNMENT = re.compile(f"{NUMBERS}:{NUMBERS}(?::.*)?")

Pair = tuple[tuple[int, ...], ...]  # lines of both sides, numbered from 0


def file_names(code: str, documents: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}.{part}" for name in documents for part in (code, GOLD))


units = file_names


def read_document(folder: Path, name: str) -> tuple[list[list[str]], list[Pair]]:
    """Return (both sides, alignments): none has an empty side. Raises `EmsError` for a malformed
    alignment or an unknown sentence.
    """
    sides = [_lines(folder / f"{name}.{code}") for code in SIDES]
    path, gold = folder / f"{name}.{GOLD}", []
    for number, pair in _alignments(path):
        for own, lines, code in zip(pair, sides, SIDES, strict=True):
            if max(own, default=0) >= len(lines):
                words = {"code": code, "sentence": max(own), "last": len(lines) - 1}
                raise mistake("no such sentence", path=path, number=number, **words)
        gold += [pair] if all(pair) else []
    check_count(len(gold), path, "an alignment with two sides")
    return sides, gold


def _alignments(path: Path) -> Iterator[tuple[int, Pair]]:
    for number, line in numbered_lines(path):
        if not (match := ALIGNMENT.fullmatch(line)):
            raise mistake("malformed alignment", path=path, number=number, line=line[:40])
        sides = [re.findall("[0-9]+", side) for side in match.groups()]
        yield number, tuple(tuple(sorted(map(int, side))) for side in sides)


def _lines(path: Path) -> list[str]:
    lines = [line for _, line in numbered_lines(path)]
    check_count(sum(map(is_visible, lines)), path, "a sentence per line")
    return lines


def read_sides(folder: Path, code: str, documents: Sequence[str]) -> list[list[str]]:
    return [[*filter(is_visible, _lines(folder / f"{name}.{code}"))] for name in documents]


def read_unit(folder: Path, unit: str) -> int:
    read = _alignments if unit.endswith(f".{GOLD}") else _lines
    return len(list(read(folder / unit)))
