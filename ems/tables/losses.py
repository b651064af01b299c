"""Reads what training wrote down: losses.jsonl of a model, and the times at which it did.

Notable choices:
- a malformed line is an error that names the file and the line: a curve with a hole would not show
  that something is missing;
- the rows of times have no part: where a step is there twice, its last time counts, at which its
  validation was done too.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.damaged import Damaged
from ems.files import parse_json, read_lines
from ems.shapes import shown

TRAIN, VALIDATION = "train", "validation"
P1, BY_LANGUAGE = "p1", "p1_by_language"
NOT_PARTS = {"part", "step", "pairs", "total", P1, BY_LANGUAGE, "lr"}  # all else: parts of the loss

MOST = 1e300  # beyond it there is no number to draw

PARTS = {  # as the log names them -> as people read them; others stand as they are
    "xtr": "XTR",
    "ugt": "UGT",
    "mlm": "MLM",
    "smlm": "SMLM",
    "contrastive": "contrastive",
}


@dataclass(frozen=True)
class Entry:
    """One row of losses.jsonl: where it was measured, steps and pairs seen until then, the total
    loss, and by name its parts ("xtr", "contrastive") and, in validation, P@1 in percent ("p1").

    `languages`: P@1 in percent by language, the mean of both directions; empty in training, and in
    the logs of models that were trained before it was written down.
    """

    part: str
    step: int
    pairs: int
    total: float
    values: dict[str, float]
    languages: dict[str, float]


def read_losses(path: Path) -> list[Entry]:
    """The rows of losses.jsonl in their order. Raises `EmsError` that names a malformed line."""
    return [_entry(where, row) for where, row in _rows(path)]


def read_times(path: Path) -> dict[int, float]:
    """Step -> seconds of training until then. Raises `EmsError` that names a malformed line."""
    return {
        _count(where, row, "step"): _number(where, row, "seconds") for where, row in _rows(path)
    }


@dataclass(frozen=True)
class Where:
    """A file and the words that say where in it."""

    path: Path
    place: str

    def malformed(self, expected: str, found: str) -> Damaged:
        """The error for something else than what was expected there."""
        return Damaged(self.path, f"{self.place}: expected {expected}, found {found}", "*.jsonl")


def _rows(path: Path) -> list[tuple[Where, dict[str, Any]]]:
    """The objects of a .jsonl file, each with where it is."""
    rows, lines = [], read_lines(path)
    if not lines:
        raise Damaged(path, "expected a line for each row, found an empty file", "*.jsonl")
    for number, line in enumerate(lines, 1):
        where = Where(path, f"line {number}")
        try:
            row = parse_json(line)
        except ValueError as error:
            raise where.malformed("JSON", f"{shown(line)} ({error})") from None
        if not isinstance(row, dict):
            raise where.malformed("a JSON object", shown(row))
        rows.append((where, row))
    return rows


def _entry(where: Where, row: dict[str, Any]) -> Entry:
    part = row.get("part")
    if part not in (TRAIN, VALIDATION):
        raise where.malformed(f"{TRAIN} or {VALIDATION} under `part`", shown(part))
    names = [name for name in row if name not in NOT_PARTS]
    if part == VALIDATION:
        names.append(P1)
    return Entry(
        part=part,
        step=_count(where, row, "step"),
        pairs=_count(where, row, "pairs"),
        total=_number(where, row, "total"),
        values={name: _number(where, row, name) for name in names},
        languages=_languages(where, row),
    )


def _languages(where: Where, row: dict[str, Any]) -> dict[str, float]:
    found = row.get(BY_LANGUAGE, {})
    if not isinstance(found, dict):
        raise where.malformed(f"P@1 of each language under `{BY_LANGUAGE}`", shown(found))
    within = Where(where.path, f"{where.place}, `{BY_LANGUAGE}`")
    return {code: _number(within, found, code) for code in found}


def _count(where: Where, row: dict[str, Any], key: str) -> int:
    value = row.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise where.malformed(f"a whole number of at least 0 under `{key}`", shown(value))
    return value


def _number(where: Where, row: dict[str, Any], key: str) -> float:
    """A number of at least 0; in training a sampled loss may be below it by chance."""
    value, least = row.get(key), -math.inf if row.get("part") == TRAIN else 0
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not abs(value) <= MOST or value < least:
        expected = "a number" if least else "a number of at least 0"
        raise where.malformed(f"{expected} under `{key}`", shown(value))
    return float(value)
