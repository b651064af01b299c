"""Repair rows of text: what a repair is, the order of all, and the pass that applies them.

Most lines are right. Two tables of all code points say, at the speed of memory, which lines have
the `suspects` of a repair, and only these are read by its function. A line that changes is repaired
again until it does not, so repairing twice is the same as once; if it never comes to rest, it stays
unchanged.
"""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.errors import mistake
from ems.base.files import read_table
from ems.text.tsv import Pair

# Mojibake needs the characters as they were read, and entities may hide any other damage.
# Repairs that are not named here come last.
ORDER = ("mojibake", "entities", "escapes", "invisible", "presentation", "widths", "quotes")
ORDER += ("detokenise", "turkic", "lookalikes", "bullets", "legacy")
PASSES, SAMPLES = 6, 10
COUNT = "@count"  # only count what the pattern finds
FUNCTIONS: dict[str, Callable[[re.Match[str]], str]] = {  # other values of `replacement`
    "@nfkc": lambda found: unicodedata.normalize("NFKC", found[0]).strip(),
    "@html": lambda found: " ".join(unescape("".join(found[0].split())).splitlines()) or " ",
    "@unspaced": lambda found: "".join(found[0].split()),
    "@escapes": lambda found: re.sub(r"\\(?=[\"'/])", "", re.sub(r"(?:\\[nrt])+", " ", found[0])),
}


@dataclass(frozen=True)
class Repair:
    """One repair in one language: `mend(text, other side)` returns the text without the damage.

    `suspects` are pairs of regular expressions of one character ("" is any): a line is read only
    if a character of the first is followed by one of the second; a line feed precedes each line.
    `counts`: the text stays unchanged, since the damage cannot be undone.
    """

    suspects: Sequence[tuple[str, str]]
    mend: Callable[[str, str], str]
    counts: bool = False


@dataclass
class RepairReport:
    """Number of texts changed by each repair; up to SAMPLES drawn evenly: (line, before, after)."""

    changed: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[tuple[int, str, str]]] = field(default_factory=dict)
    draw: random.Random = field(default_factory=lambda: random.Random(0))

    def add(self, name: str, line: int, before: str, after: str) -> None:
        samples, place = self.samples.setdefault(name, []), self.changed[name]
        self.changed[name] += 1
        place = place if place < SAMPLES else self.draw.randrange(place + 1)
        if place < SAMPLES:
            samples[place : place + 1] = [(line, before, after)]


def rules(path: Path, language: str) -> list[Repair]:
    """Return the repairs of a table: each `pattern` gets its `replacement` in its `languages` ("fr
    it"; "-fr it": all others; "": all), if the line has `first` followed by `second`
    (`Repair.suspects`). `before` and `after` are an example, which a test checks.
    """

    made = []
    for row in read_table(path):
        languages, action = row["languages"], row["replacement"]
        listed = language in languages.lstrip("-").split()
        if not languages or listed != languages.startswith("-"):
            new = FUNCTIONS.get(action, action.replace(COUNT, ""))
            mend = partial(re.compile(row["pattern"]).sub, new)
            suspects, counts = [(row["first"], row["second"])], action == COUNT
            made.append(Repair(suspects, lambda text, _, mend=mend: mend(text), counts))
    return made


@cache
def repairs() -> dict[str, Callable[[str], list[Repair]]]:
    """Return {name: function from a language to its repairs}, in the order of application."""
    folders = [Path(folder) for folder in import_module(__package__).__path__]
    files = {path.stem: path for each in folders for path in sorted(each.glob("[a-z]*.[pt][ys]*"))}
    del files["base"]
    made = {
        name: partial(rules, path)
        if path.suffix == ".tsv" and not path.with_suffix(".py").exists()
        else import_module(f"{__package__}.{name}").repair
        for name, path in files.items()
    }
    names = [*filter(made.__contains__, ORDER), *sorted(made.keys() - {*ORDER})]
    return {name: made[name] for name in names}


def chosen(setting: str | Iterable[str]) -> list[str]:
    """Return the names of `clean.repairs` in order. Raises `EmsError` for an unknown one."""
    names = {"none": (), "default": repairs()}[setting] if isinstance(setting, str) else setting
    if unknown := sorted({*names} - {*repairs()}):
        raise mistake("no repair", unknown=unknown, known=repairs())
    return [name for name in repairs() if name in names]


class Repairer:
    """Repairs rows of one text per language; call it with rows and the report that counts."""

    def __init__(self, setting: str | Iterable[str], languages: Sequence[str]) -> None:
        self.steps: list[tuple[str, int, Repair]] = []
        self.tables = np.zeros((len(languages), 2, 0x110000), np.uint64)
        self.bits: list[list[int]] = [[] for _ in languages]  # of each side: the bit's step
        self.steps_of = cache(self._steps_of)
        for name in chosen(setting):
            for side, language in enumerate(languages):
                for repair in repairs()[name](language):
                    self.steps.append((name, side, repair))
                    for classes in repair.suspects:
                        for table, characters in zip(self.tables[side], classes, strict=True):
                            table[_codes(characters)] |= np.uint64(1 << len(self.bits[side]))
                        self.bits[side].append(len(self.steps) - 1)

    def _steps_of(self, masks: tuple[int, ...]) -> list[tuple[str, int, Repair]]:
        own = zip(self.bits, masks, strict=True)
        wanted = {step for bits, mask in own for at, step in enumerate(bits) if mask >> at & 1}
        return [self.steps[step] for step in sorted(wanted)]

    def _masks(self, texts: Sequence[str], tables: np.ndarray) -> list[int]:
        """Return the bits of the suspects that each text has."""
        block = "\n".join(["", *texts, ""]).encode("utf-32-le", "surrogatepass")
        codes = np.frombuffer(block, np.uint32)
        starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
        hits = tables[0][codes[:-1]] & tables[1][codes[1:]]
        return np.bitwise_or.reduceat(hits, starts).tolist()

    def __call__(self, rows: list[Pair], report: RepairReport) -> list[Pair]:
        """Return the rows, repaired; one that is right is the same object."""
        result = list(rows)
        sides = [*zip(*rows, strict=True)][:-1] if self.steps else []
        for at, mask in enumerate(zip(*map(self._masks, sides, self.tables), strict=True)):
            if any(mask):
                *texts, origin = rows[at]
                after, changes = self._mended(texts, self.steps_of(mask))
                result[at] = (*after, origin) if after != texts else rows[at]
                line = origin[-1] if isinstance(origin, tuple) else origin
                for (name, _), change in changes.items():
                    report.add(name, line, *change)
        return result

    def _mended(
        self, texts: list[str], steps: list[tuple[str, int, Repair]]
    ) -> tuple[list[str], dict[tuple[str, int], tuple[str, str]]]:
        """Return the texts of a row at rest; {(repair, side): text before, text after}."""
        current, changes = [*texts], {}
        for _ in range(PASSES):
            before = [*current]
            for name, side, repair in steps:
                new = repair.mend(old := current[side], current[-1 - side])
                if new != old:
                    current[side] = old if repair.counts else new
                    changes[name, side] = changes.get((name, side), [old])[0], current[side]
            if current == before:
                return current, changes
            steps = self.steps
        return texts, {}


@cache
def _codes(characters: str) -> Any:
    """Return the code points of a class, of the first plane; "" is all of every plane."""
    every = "".join(map(chr, range(0x10000)))
    found = "".join(re.findall(characters, every)).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(found, np.uint32) if characters else slice(None)


repairer = cache(Repairer)  # of hashable settings
