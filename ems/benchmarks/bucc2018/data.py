"""BUCC 2018: find the translations in two comparable corpora, de fr ru zh with en.

`<xx>-en/<xx>-en.<part>.<xx>` and `.en` hold `id<TAB>sentence` lines (a sentence may hold tabs),
`.gold` the pairs `id<TAB>id`. Source: Zweigenbaum, Sharoff and Rapp (2018),
https://comparable.limsi.fr/bucc2018.
"""

from collections.abc import Iterator
from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.evalsets.formats import check_count, numbered_lines, rows

PARTS = ("sample", "training")
Mining = tuple[dict[str, str], dict[str, str], list[tuple[str, str]]]


def part_files(code: str, part: str) -> tuple[str, str, str]:
    """Return (sentences, English sentences, gold): the files of one part."""
    stem = f"{code}-en/{code}-en.{part}"
    return f"{stem}.{code}", f"{stem}.en", f"{stem}.gold"


def file_names(code: str) -> tuple[str, ...]:
    return tuple(name for part in PARTS for name in part_files(code, part))


def units(code: str) -> tuple[str, ...]:
    return tuple(f"{code}-en.{part}" for part in PARTS)


def read_sentences(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, id, sentence); raise `EmsError` for a malformed line."""
    for number, line in numbered_lines(path):
        name, tab, sentence = line.partition("\t")
        if not name.strip() or not tab:
            raise EmsError(f"{path}: line {number}: expected id<TAB>sentence, found {line[:40]!r}")
        yield number, name, sentence


def read_part(folder: Path, code: str, part: str) -> Mining:
    """Return the sentences and English sentences of a part, by id, and the gold pairs. Raises
    `EmsError` for a malformed line, a duplicate or an unknown id.
    """
    first, second, gold = (folder / name for name in part_files(code, part))
    sides = (_by_id(first), _by_id(second))
    pairs: dict[tuple[str, str], None] = {}  # an ordered set
    for number, (one, other) in rows(gold, 2):
        for name, known in ((one, sides[0]), (other, sides[1])):
            if name not in known:
                raise EmsError(f"{gold}: line {number}: no sentence has the id {name!r}")
        if (one, other) in pairs:
            raise EmsError(f"{gold}: line {number}: {one} {other} occurs twice")
        pairs[one, other] = None
    check_count(len(pairs), gold, "pairs of ids")
    return *sides, list(pairs)


def _by_id(path: Path) -> dict[str, str]:
    sentences: dict[str, str] = {}
    for number, name, sentence in read_sentences(path):
        if name in sentences:
            raise EmsError(f"{path}: line {number}: the id {name} occurs twice")
        sentences[name] = sentence
    check_count(len(sentences), path, "sentences")
    return sentences


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """Return the sentences of both sides of both parts: all are searched."""
    files = [name for part in PARTS for name in part_files(code, part)[:2]]
    return [(sentence for _, _, sentence in read_sentences(folder / name)) for name in files]


def read_unit(folder: Path, unit: str) -> int:
    code, _, part = unit.partition("-en.")
    return len(read_part(folder, code, part)[0])
