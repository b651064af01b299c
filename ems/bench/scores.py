"""The score file: what one system reached on one benchmark.

A file is a header and rows. A row is one measured number; where each sentence is right or wrong, it
keeps all of them, so that two systems can be compared sentence by sentence.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, create_model

from ems.base.errors import Damaged
from ems.base.files import read_json, write_text
from ems.base.schema import Count, Json, NonBlank, Record, Settings, Some, fitting, plain, shown
from ems.config.languages import UNSEEN

ENGLISH = "en"
PERCENT = (0.0, 100.0, "a percentage")
RANGES = {"cosine": (-1.001, 1.001, "a cosine")}  # of a metric; the others are percentages
CLOSE = 1e-6  # percent
LEVEL = 0.95  # of the interval


@dataclass(frozen=True)
class Score:
    """One row: a value of the file's metric, or of another `measure`."""

    source: str  # a language, or the code that the benchmark has for it
    target: str
    value: float
    count: int  # of sentences, documents or gold pairs
    split: str = ""
    seed: int | None = None
    measure: str = ""
    hits: str = ""  # a bit for each sentence (`packed`), or ''
    interval: tuple[float, float] | None = None  # 95 %, by bootstrap; it follows from the hits

    @classmethod
    def of_hits(cls, source: str, target: str, hits: np.ndarray, **others: Any) -> "Score":
        """Return the row of bool[N], N at least 1: their share in percent."""
        count, right = len(hits), int(hits.sum())
        others |= {"hits": packed(hits), "interval": interval(right, count)}
        return cls(source, target, 100 * right / count, count, **others)

    @property
    def direction(self) -> str:
        """Return the direction and its split: "en-de", "en-de books"."""
        return f"{self.source}-{self.target} {self.split}".strip()

    def bits(self) -> np.ndarray:
        """Return the hits as bool[count]. Raises `ValueError` if their share is not the value."""
        bits = unpacked(self.hits, self.count)
        share = 100 * bits.mean()
        if abs(share - self.value) > CLOSE:
            raise ValueError(f"they are {share:.2f} %, the file says {self.value:.2f}")
        return bits


@dataclass(frozen=True)
class Result:
    """What a benchmark measured.

    `label` says what stands together in a comparison: both directions of a "language", the seeds
    of a "direction", or all targets of a "source". Only scores with the same `protocol` share a
    table. `details` are read by tables of this benchmark alone.
    """

    metric: str
    rows: list[Score]
    languages: Mapping[str, str]  # name in the rows -> the experiment's code, or UNSEEN
    label: str = "language"
    higher_is_better: bool = True
    parallel: bool = False  # all languages have the same sentences
    protocol: Mapping[str, Any] | Settings = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)  # of data that are no evaluation set

    @cached_property
    def english(self) -> set[str]:
        """Return the names that English has in the rows."""
        return {ENGLISH, *(name for name, code in self.languages.items() if code == ENGLISH)}

    def label_of(self, row: Score) -> str:
        """Return what a row is a part of in a comparison."""
        if self.label == "direction":
            return row.direction
        if self.label == "source" or row.target in self.english:
            return row.source
        return row.target

    def labelled(self, measure: str = "") -> dict[str, dict[str, Score]]:
        """Label -> way -> row, of the file's metric or of another measure, in the file's order."""
        labels: dict[str, dict[str, Score]] = {}
        for row in self.rows:
            way = "to_english" if row.target in self.english else "from_english"
            if self.label == "source":
                way = row.target
            elif self.label == "direction":
                way = "" if row.seed is None else str(row.seed)
            if row.measure == measure:
                labels.setdefault(self.label_of(row), {})[way] = row
        return labels

    def means(self) -> list[tuple[str, float]]:
        """Return (languages, mean over labels): [("58 trained languages", 48.2), ("54 unseen
        languages", 21.9)], or one pair without words where no language is unseen.
        """
        unseen = {name for name, code in self.languages.items() if code == UNSEEN}
        groups: dict[str, list[float]] = {"trained": [], "unseen": []}
        for ways in self.labelled().values():
            names = {name for row in ways.values() for name in (row.source, row.target)}
            value = sum(row.value for row in ways.values()) / len(ways)
            groups["unseen" if names & unseen else "trained"].append(value)
        return [
            (f"{len(values)} {name} languages" if unseen else "", sum(values) / len(values))
            for name, values in groups.items()
            if values
        ]


@dataclass(frozen=True)
class ScoreFile(Result):
    """A score file that was read: what was measured, of which system, on which data."""

    path: Path = Path()
    benchmark: str = ""
    system: str = ""
    version: str = ""
    data_sha256: str = ""
    data_files: Mapping[str, str] = field(default_factory=dict)

    def same_data(self, other: "ScoreFile") -> bool:
        """True if the files of data that both were scored on have the same content."""
        if self.data_sha256 == other.data_sha256:
            return True
        both = self.data_files.keys() & other.data_files.keys()
        return bool(both) and all(self.data_files[name] == other.data_files[name] for name in both)

    def setting(self, key: str, of: Any = Count) -> Any:
        """Return a setting of the protocol. Raises `Damaged` unless it is of the type."""
        protocol = create_model("Protocol", __base__=Record, **{key: (of, ...)})
        file = create_model("File", __base__=Record, protocol=(protocol, ...))
        try:
            fitting(file, {"protocol": dict(self.protocol)})
        except ValueError as error:
            raise Damaged(self.path, str(error)) from None
        return self.protocol[key]


def _scalar(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise ValueError("no scalar")
    return value


class _Row(Record):
    source: NonBlank
    target: NonBlank
    value: Any = None  # its range depends on the metric
    count: Some
    split: str = ""
    seed: Annotated[Count | None, "a whole number of at least 0"] = None
    measure: str = ""
    hits: str = ""


class _Content(Record):
    benchmark: NonBlank
    system: NonBlank
    version: NonBlank
    data_sha256: NonBlank
    metric: NonBlank
    higher_is_better: bool
    label: Literal["language", "direction", "source"]
    languages: dict[str, NonBlank]
    protocol: dict[str, Annotated[Any, AfterValidator(_scalar), "a setting"]]
    rows: Annotated[list[_Row], Field(min_length=1), "at least one score"]
    parallel: bool = False
    details: Json = Field({})
    data_files: dict[str, NonBlank] = Field({})


def write_scores(path: Path, header: Mapping[str, Any], result: Result) -> None:
    """Write a score file: `header` (benchmark, system, checksums) and what was measured.

    Each row is a line without spaces, so that the thousands of FLORES-200 are less than a megabyte:
    of a larger file Snakemake compares the time only, not the content.
    """
    names = [each.name for each in fields(Result) if each.name not in ("rows", "data")]
    measured = {name: getattr(result, name) for name in names}
    content = {**header, **result.data, **plain(measured)}
    first = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).removesuffix("\n}")
    entries = [{k: v for k, v in vars(row).items() if v not in ("", None)} for row in result.rows]
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in entries)
    write_text(path, f'{first},\n "rows": [\n{rows}\n ]\n}}\n')


def read_score_file(path: Path, benchmark: str = "", metric: str = "") -> ScoreFile:
    """Read a score file, of a `benchmark` and a `metric` where they are given.

    Raises `Damaged` for another file and for a malformed one.
    """
    name = f"{benchmark or '*'}.json"
    data = read_json(path, _Content, name)
    for key, wanted in (("benchmark", benchmark), ("metric", metric)):
        if wanted and (found := getattr(data, key)) != wanted:
            raise Damaged(path, f"expected {wanted} under `{key}`, found {shown(found)}", name)
    rows = {}
    for at, row in enumerate(data.rows):
        low, high, what = PERCENT if row.measure else RANGES.get(data.metric, PERCENT)
        if not (type(row.value) in (int, float) and low <= row.value <= high):  # NaN is not
            found = shown(row.value)
            raise Damaged(path, f"expected {what} under `rows.{at}.value`, found {found}")
        score = Score(**{**vars(row), "value": float(row.value)})
        key = (row.source, row.target, row.split, row.seed, row.measure)
        if key in rows:
            place = _bare(score.direction)
            raise Damaged(path, f"expected one row of {place}, found two (`rows.{at}`)")
        rows[key] = score
    known = {ENGLISH, *data.languages}
    named = [name for row in rows.values() for name in (row.source, row.target)]
    if unknown := [name for name in named if name not in known]:
        expected = f"expected the language {_bare(unknown[0])} under `languages`"
        raise Damaged(path, f"{expected}, found {shown(data.languages)}")
    file = ScoreFile(path=path, **{**vars(data), "rows": list(rows.values())})
    labels = file.labelled() if file.label == "language" else {}
    every = dict.fromkeys(way for ways in labels.values() for way in ways)
    for label, ways in labels.items():
        if missing := [way for way in every if way not in ways]:
            expected = f"expected {missing[0]} of every language"
            raise Damaged(path, f"{expected}, found none of {_bare(label)}")
    return file


def _bare(name: str) -> str:
    """Return a name as a message of one line shows it, without quotation marks."""
    return shown(name)[1:-1]


# --- right or wrong, sentence by sentence


def interval(right: int, count: int) -> tuple[float, float]:
    """Return (low, high), the percentile bootstrap interval of 100 * right / count: quantiles of
    Binomial(count, share of hits), as a bootstrap draws N of N sentences with replacement.
    """
    if right in (0, count):
        return 100 * right / count, 100 * right / count
    hits, share = np.arange(count + 1), right / count
    factorials = np.cumsum(np.log(np.maximum(hits, 1)))  # their logarithms
    chances = hits * np.log(share) + hits[::-1] * np.log1p(-share) - factorials - factorials[::-1]
    up_to = np.cumsum(np.exp(chances - chances.max()))
    tail = (1 - LEVEL) / 2
    low, high = np.searchsorted(up_to, [tail * up_to[-1], (1 - tail) * up_to[-1]])
    return 100 * float(low) / count, 100 * float(high) / count


def packed(hits: np.ndarray) -> str:
    """Return bool[N] as text: base85, 0.16 of a character a sentence."""
    return base64.b85encode(np.packbits(hits)).decode()


def unpacked(text: str, count: int) -> np.ndarray:
    """Return the bool[count] that `packed` made text of. Raises `ValueError` for other text."""
    raw = np.frombuffer(base64.b85decode(text), np.uint8)
    if len(raw) != -(-count // 8):
        raise ValueError(f"expected {-(-count // 8)} bytes for {count} sentences, found {len(raw)}")
    return np.unpackbits(raw, count=count).astype(bool)
