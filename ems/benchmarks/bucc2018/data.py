"""BUCC 2018: find the translations in two comparable corpora, de fr ru zh with en.

`<xx>-en/<xx>-en.<part>.<xx>` and `.en` hold `id<TAB>sentence` lines, `.gold` the pairs
`id<TAB>id`. Source: Zweigenbaum, Sharoff and Rapp (2018), https://comparable.limsi.fr/bucc2018. EMS
v2 section V-C (Table IX).

Notable choices:
- the parts are `sample` and `training`; the gold of `test` was never published, so that benchmarks
  evaluate on `training` (XTREME, LASER) and choose on `sample`, as dev;
- a sentence may hold a tab: only the first one of a line separates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ems.errors import EmsError
from ems.evalsets.lines import numbered_lines, rows, some

PARTS = ("sample", "training")


@dataclass(frozen=True)
class Mining:
    """One part of one language: sentences by id, of it and of English, and the pairs of ids."""

    sentences: dict[str, str]
    english: dict[str, str]
    gold: list[tuple[str, str]]


def part_files(code: str, part: str) -> tuple[str, str, str]:
    """The files of one part: sentences, English sentences, gold."""
    stem = f"{code}-en/{code}-en.{part}"
    return f"{stem}.{code}", f"{stem}.en", f"{stem}.gold"


def file_names(code: str) -> tuple[str, ...]:
    """The files of one language (its iso1 code, like "de")."""
    return tuple(name for part in PARTS for name in part_files(code, part))


def units(code: str) -> tuple[str, ...]:
    """The archives of one language."""
    return tuple(f"{code}-en.{part}" for part in PARTS)


def read_sentences(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, id, sentence) of each line. Raises `EmsError` for a line that is not of that form."""
    for number, line in numbered_lines(path):
        name, tab, sentence = line.partition("\t")
        if not name.strip() or not tab:
            raise EmsError(f"{path}: line {number}: expected id<TAB>sentence, found {line[:40]!r}")
        yield number, name, sentence


def read_part(folder: Path, code: str, part: str) -> Mining:
    """One part of one language. Raises `EmsError` for a bad line, a double or an unknown id."""
    first, second, gold = (folder / name for name in part_files(code, part))
    sides = (_by_id(first), _by_id(second))
    return Mining(*sides, _read_gold(gold, sides))


def _by_id(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, name, sentence in read_sentences(path):
        if name in found:
            raise EmsError(f"{path}: line {number}: the id {name} is there twice")
        found[name] = sentence
    some(len(found), path, "sentences")
    return found


def _read_gold(path: Path, sides: tuple[dict[str, str], dict[str, str]]) -> list[tuple[str, str]]:
    pairs: dict[tuple[str, str], None] = {}  # a set in order
    for number, (first, second) in rows(path, 2):
        for name, known in zip((first, second), sides, strict=True):
            if name not in known:
                raise EmsError(f"{path}: line {number}: no sentence has the id {name!r}")
        if (first, second) in pairs:
            raise EmsError(f"{path}: line {number}: {first} {second} is there twice")
        pairs[first, second] = None
    some(len(pairs), path, "pairs of ids")
    return list(pairs)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """The sentences of both sides of both parts: all are candidates that a benchmark searches."""
    files = [name for part in PARTS for name in part_files(code, part)[:2]]
    return [(sentence for _, _, sentence in read_sentences(folder / name)) for name in files]


def read_unit(folder: Path, unit: str) -> int:
    """The number of sentences of one part of a language that was fetched."""
    code, _, part = unit.partition("-en.")
    return len(read_part(folder, code, part).sentences)
