"""Reads what training wrote down: losses.jsonl of a model, and the times at which it did.

Notable choices:
- a malformed line is an error that names the file and the line: a curve with a hole would not show
  that something is missing;
- the rows of times have no part: where a step is there twice, its last time counts, at which its
  validation was done too.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.errors import EmsError

TRAIN, VALIDATION = "train", "validation"
NOT_PARTS = {"part", "step", "pairs", "total", "p1", "lr"}  # all else in a row is part of the loss
P1 = "p1"


@dataclass(frozen=True)
class Entry:
    """One row of losses.jsonl: where it was measured, steps and pairs seen until then, and by name
    the parts of the loss ("xtr", "contrastive") and, in validation, P@1 in percent ("p1")."""

    part: str
    step: int
    pairs: int
    values: dict[str, float]


def read_losses(path: Path) -> list[Entry]:
    """The rows of losses.jsonl in their order. Raises `EmsError` that names a malformed line."""
    return [_entry(where, row) for where, row in _rows(path)]


def read_times(path: Path) -> dict[int, float]:
    """Step -> seconds of training until then. Raises `EmsError` that names a malformed line."""
    return {
        _count(where, row, "step"): _number(where, row, "seconds") for where, row in _rows(path)
    }


def _rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a .jsonl file, each with the words that say where it is."""
    try:
        lines = Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise EmsError(f"{path}: no such file; train this system first") from None
    except UnicodeDecodeError as error:
        raise EmsError(f"{path}: not UTF-8 ({error}); train this system again") from None
    rows = []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise _malformed(where, "JSON", f"{line!r} ({error})") from None
        if not isinstance(row, dict):
            raise _malformed(where, "a JSON object", repr(row))
        rows.append((where, row))
    return rows


def _entry(where: str, row: dict[str, Any]) -> Entry:
    part = row.get("part")
    if part not in (TRAIN, VALIDATION):
        raise _malformed(where, f"{TRAIN} or {VALIDATION} under `part`", repr(part))
    names = [name for name in row if name not in NOT_PARTS]
    if part == VALIDATION:
        names.append(P1)
    return Entry(
        part=part,
        step=_count(where, row, "step"),
        pairs=_count(where, row, "pairs"),
        values={name: _number(where, row, name) for name in names},
    )


def _count(where: str, row: dict[str, Any], key: str) -> int:
    value = row.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _malformed(where, f"a whole number of at least 0 under `{key}`", repr(value))
    return value


def _number(where: str, row: dict[str, Any], key: str) -> float:
    value = row.get(key)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise _malformed(where, f"a number of at least 0 under `{key}`", repr(value))
    return float(value)


def _malformed(where: str, expected: str, found: str) -> EmsError:
    return EmsError(
        f"{where}: expected {expected}, found {found}; delete the file and train this system again"
    )
