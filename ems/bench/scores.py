"""The score file: the results of one system on one benchmark. It is a header and rows, of a number
each; if each sentence is right or wrong, the row also keeps a bit per sentence, so that two
systems can be compared sentence by sentence.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from ems.base.errors import Damaged
from ems.base.files import read_json, write_text
from ems.base.records import NOTHING, Bounds, Count, Json, NonBlank, Record, Some, fitting, shown
from ems.base.schema import Settings, plain
from ems.config.languages import UNSEEN

ENGLISH = "en"
PERCENT = (0.0, 100.0, "a percentage")
RANGES = {"cosine": (-1.001, 1.001, "a cosine")}  # by metric; all others are percentages
CLOSE = 1e-6  # percent
LEVEL = 0.95  # confidence of the interval


@dataclass(frozen=True)
class Score:
    """One row: a value of the file's metric, or of `measure`."""

    source: NonBlank  # a language, or the benchmark's code for it
    target: NonBlank
    value: Annotated[float, "a percentage or cosine"]
    count: Some  # sentences, documents or gold pairs
    split: str = ""
    seed: Annotated[Count | None, "a whole number of at least 0"] = None
    measure: str = ""
    hits: str = ""  # a bit per sentence (`packed`), or ''
    interval: Annotated[list[float] | None, "two numbers"] = None  # 95 %, by bootstrap; or a tuple

    @classmethod
    def from_hits(cls, source: str, target: str, hits: np.ndarray, **others: Any) -> "Score":
        """Return a row whose value is the percentage of hits in bool[N], N >= 1."""
        count, right = len(hits), int(hits.sum())
        others |= {"hits": packed(hits), "interval": interval(right, count)}
        return cls(source, target, 100 * right / count, count, **others)

    @property
    def direction(self) -> str:
        """The direction and its split: "en-de", "en-de books"."""
        return f"{self.source}-{self.target} {self.split}".strip()

    def bits(self) -> np.ndarray:
        """Return the hits as bool[count]; raise `ValueError` if their share is not `value`."""
        bits = unpacked(self.hits, self.count)
        share = 100 * bits.mean()
        if abs(share - self.value) > CLOSE:
            raise ValueError(f"they are {share:.2f} %, the file says {self.value:.2f}")
        return bits


class Mean(NamedTuple):
    """A mean over labels; `over` describes them: "7 trained languages"."""

    over: str
    labels: list[str]
    value: float


@dataclass(frozen=True)
class Result:
    """The scores of one system on one benchmark. `label` says which rows a comparison groups: both
    directions of a "language", the seeds of a "direction", or all targets of a "source". Only
    scores with the same `protocol` share a table; only the benchmark's own tables read `details`.
    """

    metric: str
    rows: list[Score]
    languages: Mapping[str, str]  # name in the rows -> our code, or UNSEEN
    label: str = "language"
    higher_is_better: bool = True
    parallel: bool = False  # True if all languages have the same sentences
    protocol: Mapping[str, Any] | Settings = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)  # header entries of other data

    @cached_property
    def english(self) -> set[str]:
        return {ENGLISH, *(name for name, code in self.languages.items() if code == ENGLISH)}

    def label_of(self, row: Score) -> str:
        if self.label == "direction":
            return row.direction
        return row.source if self.label == "source" or row.target in self.english else row.target

    def labelled(self, measure: str = "") -> dict[str, dict[str, Score]]:
        """Map label -> way -> row, in file order; by default the rows of the file's metric."""
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

    def mean_labels(self) -> tuple[list[str], list[str]]:
        """Return the labels of the mean over trained languages, and of that over unseen ones.
        English with itself, in which classifiers learn, is in neither if there are other labels.
        """
        names = {name for name, code in self.languages.items() if code == UNSEEN}
        trained, unseen, same = [], [], []
        for label, ways in self.labelled().items():
            sides = {name for row in ways.values() for name in (row.source, row.target)}
            is_unseen = label in names if self.label == "source" else bool(sides & names)
            (unseen if is_unseen else trained if len(sides) > 1 else same).append(label)
        return trained if trained or unseen else same, unseen

    def means(self) -> list[Mean]:
        """Return the mean over the trained languages or directions, and that over unseen ones."""
        means, labelled = [], self.labelled()
        for kind, labels in zip(("trained", "unseen"), self.mean_labels(), strict=True):
            ways = [labelled[label].values() for label in labels]
            unit = "direction" if self.label == "direction" else f"{kind} language"
            over = f"{len(labels)} {unit}{'s' if len(labels) > 1 else ''}"
            over = f"directions from {over}" if self.label == "source" else over
            if ways:
                means.append(Mean(over, labels, fmean(fmean(r.value for r in own) for own in ways)))
        return means


@dataclass(frozen=True)
class ScoreFile(Result):
    path: Path = Path()
    benchmark: str = ""
    system: str = ""
    version: str = ""
    data_sha256: str = ""
    data_files: Mapping[str, str] = field(default_factory=dict)

    def same_data(self, other: "ScoreFile") -> bool:
        """Return True if the data files that both have in common are equal, and there is any."""
        if self.data_sha256 == other.data_sha256:
            return True
        both = self.data_files.keys() & other.data_files.keys()
        return bool(both) and all(self.data_files[name] == other.data_files[name] for name in both)

    def setting(self, key: str, expected: Any = Count) -> Any:
        """Return a setting of the protocol; raise `Damaged` unless it has the expected type."""
        try:
            return fitting(expected, self.protocol.get(key, NOTHING), "protocol", key)
        except ValueError as error:
            raise Damaged(self.path, str(error)) from None


class _Content(Record):
    benchmark: NonBlank
    system: NonBlank
    version: NonBlank
    data_sha256: NonBlank
    metric: NonBlank
    higher_is_better: bool
    label: Literal["language", "direction", "source"]
    languages: dict[str, NonBlank]
    protocol: dict[str, Annotated[Any, lambda own: not isinstance(own, dict | list), "a setting"]]
    rows: Annotated[list[Score], Bounds(min_length=1), "at least one score"]
    parallel: bool = False
    details: Json = field(default_factory=dict)
    data_files: dict[str, NonBlank] = field(default_factory=dict)


def write_scores(path: Path, header: Mapping[str, Any], result: Result) -> None:
    """Write a score file: `header` (benchmark, system, checksums) and the result, each row on a
    line without spaces, since Snakemake compares files above a megabyte (FLORES-200) by time only.
    """
    names = [each.name for each in fields(Result) if each.name not in ("rows", "data")]
    values = {name: getattr(result, name) for name in names}
    content = {**header, **result.data, **plain(values)}
    first = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).removesuffix("\n}")
    entries = [{k: v for k, v in vars(row).items() if v not in ("", None)} for row in result.rows]
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in entries)
    write_text(path, f'{first},\n "rows": [\n{rows}\n ]\n}}\n')


def read_score_file(path: Path, benchmark: str = "", metric: str = "") -> ScoreFile:
    """Read a score file; raise `Damaged` if it is malformed or has another benchmark or metric."""
    name = f"{benchmark or '*'}.json"
    data = read_json(path, _Content, name)
    for key, wanted in (("benchmark", benchmark), ("metric", metric)):
        if wanted and (found := getattr(data, key)) != wanted:
            raise Damaged(path, f"expected {wanted} under `{key}`, found {shown(found)}", name)
    rows = {}
    for number, row in enumerate(data.rows):
        low, high, what = PERCENT if row.measure else RANGES.get(data.metric, PERCENT)
        if not low <= row.value <= high:
            found = shown(row.value)
            raise Damaged(path, f"expected {what} under `rows.{number}.value`, found {found}")
        ends = [row.value] * 2 if row.interval is None else list(map(float, row.interval))
        if len(ends) != 2 or not ends[0] - CLOSE <= row.value <= ends[1] + CLOSE:
            what = f"the two ends of an interval around {row.value} under `rows.{number}.interval`"
            raise Damaged(path, f"expected {what}, found {shown(ends)}")
        stored = tuple(ends) if row.interval and not row.hits else None  # hits say it otherwise
        score = replace(row, value=float(row.value), interval=stored)
        key = (row.source, row.target, row.split, row.seed, row.measure)
        if key in rows:
            place = _bare(score.direction)
            raise Damaged(path, f"expected one row of {place}, found two (`rows.{number}`)")
        rows[key] = score
    known = {ENGLISH, *data.languages}
    named = [name for row in rows.values() for name in (row.source, row.target)]
    if unknown := [name for name in named if name not in known]:
        expected = f"expected the language {_bare(unknown[0])} under `languages`"
        raise Damaged(path, f"{expected}, found {shown(data.languages)}")
    file = ScoreFile(path=path, **{**vars(data), "rows": list(rows.values())})
    labels = file.labelled() if file.label == "language" else {}
    all_ways = dict.fromkeys(way for ways in labels.values() for way in ways)
    for label, ways in labels.items():
        if missing := [way for way in all_ways if way not in ways]:
            expected = f"expected {missing[0]} of every language"
            raise Damaged(path, f"{expected}, found none of {_bare(label)}")
    return file


def _bare(name: str) -> str:
    """Escape a name for a one-line message, without quotation marks."""
    return shown(name)[1:-1]


class Example(Record):
    language: str
    query: str
    answer: str
    cosine: float
    translation: str
    expected: float

    @property
    def right(self) -> bool:
        return self.answer == self.translation


class Examples(Record):
    system: str
    benchmarks: dict[str, list[Example]]


# --- right or wrong, sentence by sentence


def interval(right: int, count: int) -> tuple[float, float]:
    """Return the percentile bootstrap interval of 100 * right / count: resamples are Binomial."""
    from scipy.stats import binom  # here: it is slow to import

    tail = (1 - LEVEL) / 2
    low, high = binom.ppf([tail, 1 - tail], count, right / count)
    return 100 * float(low) / count, 100 * float(high) / count


def packed(hits: np.ndarray) -> str:
    """Encode bool[N] as base85 text, 0.16 characters per sentence."""
    return base64.b85encode(np.packbits(hits)).decode()


def unpacked(text: str, count: int) -> np.ndarray:
    """Decode text of `packed` to bool[count]; raise `ValueError` if it does not fit."""
    raw = np.frombuffer(base64.b85decode(text), np.uint8)
    if len(raw) != -(-count // 8):
        raise ValueError(f"expected {-(-count // 8)} bytes for {count} sentences, found {len(raw)}")
    return np.unpackbits(raw, count=count).astype(bool)
