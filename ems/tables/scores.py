"""Reads the score files of the Tatoeba benchmark and makes sure that they may share a table.

Numbers stand beside each other only if they come from the same data: the same benchmark, version
and SHA-256 in each file, each system once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.errors import EmsError
from ems.files import read_json


@dataclass(frozen=True)
class TatoebaScores:
    """One system's P@1 on Tatoeba: Tatoeba code -> percent, the mean of both directions."""

    path: Path
    system: str
    version: str
    data_sha256: str
    values: dict[str, float]


def read_tatoeba(paths: Sequence[Path]) -> list[TatoebaScores]:
    """Read score files in the order given. Raises `EmsError` when they cannot share a table."""
    if not paths:
        raise EmsError(
            "no score files were given; name at least one results/<experiment>/scores/<system>/"
            "tatoeba.json, or leave the table out of the experiment"
        )
    scores = [_read_one(Path(path)) for path in paths]
    _each_system_once(scores)
    for what in ("version", "data_sha256"):
        _same(scores, what)
    return scores


def _read_one(path: Path) -> TatoebaScores:
    data = read_json(path)
    if not isinstance(data, dict):
        raise _malformed(path, "a JSON object", type(data).__name__)
    benchmark, metric = _text(path, data, "benchmark"), _text(path, data, "metric")
    if (benchmark, metric) != ("tatoeba", "P@1"):
        raise _malformed(path, "benchmark tatoeba with metric P@1", f"{benchmark} with {metric}")
    directions = data.get("directions")
    if not isinstance(directions, dict) or not directions:
        raise _malformed(path, "scores of at least one language under `directions`", directions)
    return TatoebaScores(
        path=path,
        system=_text(path, data, "system"),
        version=_text(path, data, "version"),
        data_sha256=_text(path, data, "data_sha256"),
        values={code: _mean(path, code, both) for code, both in directions.items()},
    )


def _text(path: Path, data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _malformed(path, f"text under `{key}`", value)
    return value


def _mean(path: Path, language: str, both: Any) -> float:
    """Mean of `to_english` and `from_english` in percent (EMS v2 Table IV)."""
    values = []
    for key in ("to_english", "from_english"):
        value = both.get(key) if isinstance(both, dict) else None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not 0 <= value <= 100:
            raise _malformed(path, f"a percentage under `directions.{language}.{key}`", value)
        values.append(float(value))
    return sum(values) / 2


def _each_system_once(scores: list[TatoebaScores]) -> None:
    first: dict[str, TatoebaScores] = {}
    for score in scores:
        if score.system in first:
            raise EmsError(
                f"system {score.system} has two score files, {first[score.system].path} and "
                f"{score.path}; a table has one row per system: leave one of them out"
            )
        first[score.system] = score


def _same(scores: list[TatoebaScores], what: str) -> None:
    found = {getattr(score, what) for score in scores}
    if len(found) > 1:
        listed = "\n".join(f"  {getattr(score, what)}  {score.path}" for score in scores)
        raise EmsError(
            f"the Tatoeba scores are of different data, so they cannot share a table; {what}:\n"
            f"{listed}\ndelete the score files of the old data and run the benchmark again"
        )


def _malformed(path: Path, expected: str, found: Any) -> EmsError:
    return EmsError(
        f"{path}: expected {expected}, found {found!r}; delete the file and run the benchmark again"
    )
