"""Reads losses.jsonl of a model and the times of its training.

A malformed line is an error that names the file and the line: a curve with a hole would not show
that something is missing.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.base.errors import Damaged
from ems.base.files import parse_json, read_lines
from ems.base.schema import shown

TRAIN, VALIDATION = "train", "validation"
P1, BY_LANGUAGE, BY_CORPUS = "p1", "p1_by_language", "p1_by_corpus"
ACCURACY = "_accuracy"  # the end of the name of what objectives of documents log
KEPT = "kept"  # the validation of which the model has the weights, where that is not the last
NOT_PARTS = {"part", "step", "pairs", "total", P1, BY_LANGUAGE, BY_CORPUS, KEPT}
NOT_PARTS |= {"lr", "scale", "skipped"}
MOST = 1e300  # beyond it there is no number to draw
PARTS = {  # as the log names them -> as people read them; others stand as they are
    "xtr": "XTR",
    "ugt": "UGT",
    "mlm": "MLM",
    "smlm": "SMLM",
    "contrastive": "contrastive",
    "context": "context",
}


@dataclass(frozen=True)
class Entry:
    """One row of losses.jsonl: where it was measured, steps and pairs seen until then, the total
    loss, and by name its parts ("xtr", "contrastive") and, in validation, P@1 in percent ("p1").

    The `values` are all that is not in NOT_PARTS. `kept`: the model has the weights of this step.
    A system that learns from documents has no P@1 of documents, and no losses of pairs: if it is
    validated on pairs alone, `total` is not a number. `languages`: P@1 in percent by language, the
    mean of both directions; empty in training, and in the logs of models that were trained before
    it was written down. `corpora`: P@1 by corpus, where there are several.
    """

    part: str
    step: int
    pairs: int
    total: float
    values: dict[str, float]
    languages: dict[str, float]
    corpora: dict[str, float]
    kept: bool = False


@dataclass(frozen=True)
class _Row:
    """A JSON object of a file, and the words that say where in it."""

    path: Path
    place: str
    values: dict[str, Any]

    def take(self, key: str, expected: str, fits: Callable[[Any], bool]) -> Any:
        """Return a value that fits. Raises `Damaged` for any other."""
        value = self.values.get(key)
        if not fits(value):
            problem = f"{self.place}: expected {expected} under `{key}`, found {shown(value)}"
            raise Damaged(self.path, problem, "*.jsonl")
        return value

    def count(self, key: str) -> int:
        return self.take(key, "a whole number of at least 0", lambda v: type(v) is int and v >= 0)

    def number(self, key: str, least: float = 0) -> float:
        expected = "a number of at least 0" if least == 0 else "a number"
        return float(
            self.take(
                key, expected, lambda v: type(v) in (int, float) and max(least, -MOST) <= v <= MOST
            )
        )


def read_losses(path: Path) -> list[Entry]:
    """Return the rows of losses.jsonl in their order. Raises `EmsError` that names a malformed
    line.
    """
    return [_entry(row) for row in _rows(path)]


def read_numbers(path: Path) -> Iterator[tuple[Entry, dict[str, float]]]:
    """Yield each row of losses.jsonl with all its numbers by name, the learning rate among them;
    P@1 by language and by corpus is in the entry alone. Raises `EmsError` as `read_losses` does.
    """
    for row in _rows(path):
        numbers = {name: value for name, value in row.values.items() if type(value) in (int, float)}
        yield _entry(row), {k: v for k, v in numbers.items() if k not in ("step", "pairs")}


def read_times(path: Path) -> dict[int, float]:
    """Return step -> seconds of training until then; the last time of a step that is there twice,
    at which its validation was done too. Raises `EmsError` that names a malformed line.
    """
    return {row.count("step"): row.number("seconds") for row in _rows(path)}


def last_time(path: Path) -> tuple[int, float]:
    """Return the steps of a training and its seconds, validation included."""
    return max(read_times(path).items())


def _rows(path: Path) -> Iterator[_Row]:
    lines = read_lines(path)
    if not lines:
        raise Damaged(path, "expected a line for each row, found an empty file", "*.jsonl")
    for number, line in enumerate(lines, 1):
        problem = f"line {number}: expected"
        try:
            row = parse_json(line)
        except ValueError as error:
            problem = f"{problem} JSON, found {shown(line)} ({error})"
            raise Damaged(path, problem, "*.jsonl") from None
        if not isinstance(row, dict):
            raise Damaged(path, f"{problem} a JSON object, found {shown(row)}", "*.jsonl")
        yield _Row(path, f"line {number}", row)


def _entry(row: _Row) -> Entry:
    part = row.take("part", f"{TRAIN} or {VALIDATION}", lambda v: v in (TRAIN, VALIDATION))
    least = -math.inf if part == TRAIN else 0  # a sampled loss may be below 0 by chance
    names = [name for name in row.values if name not in NOT_PARTS]
    only_pairs = part == VALIDATION and not names and "total" not in row.values
    of_documents = any(name.endswith(ACCURACY) for name in names)
    if part == VALIDATION and (P1 in row.values or not of_documents):
        names.append(P1)
    return Entry(
        part,
        row.count("step"),
        row.count("pairs"),
        math.nan if only_pairs else row.number("total", least),
        {name: row.number(name, least) for name in names},
        _scores(row, BY_LANGUAGE, "language"),
        _scores(row, BY_CORPUS, "corpus"),
        row.values.get(KEPT) is True,
    )


def _scores(row: _Row, key: str, of: str) -> dict[str, float]:
    """Return P@1 by language or by corpus; nothing where the row has none."""
    if key not in row.values:
        return {}
    scores = row.take(key, f"P@1 of each {of}", lambda v: isinstance(v, dict))
    by_name = _Row(row.path, f"{row.place}, `{key}`", scores)
    return {name: by_name.number(name) for name in scores}
