"""The score file: what one system reached on one benchmark.

All benchmarks write this one shape; every table, every figure and `ems compare` read it.

A file is a header and rows. A row is one measured number: of which source and target (a language,
or the code that the benchmark has for it), on which split, by the classifier of which seed. Where
each sentence is right or wrong, the row keeps all of them, so that two systems can be compared
sentence by sentence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.errors import Damaged
from ems.base.files import read_json, write_text
from ems.base.schema import Settings, plain
from ems.base.shapes import COUNT, TEXT, Shape, mapping, misfit, named, record, shown
from ems.bench.hits import interval, packed, unpacked
from ems.config.languages import UNSEEN

ENGLISH = "en"
PERCENT = (0.0, 100.0, "a percentage")
RANGES = {"cosine": (-1.001, 1.001, "a cosine")}  # of a metric; the others are percentages
CLOSE = 1e-6  # percent
LABELS = ("language", "direction", "source")


@dataclass(frozen=True)
class Score:
    """One row: a value of the file's metric, or of another `measure`.

    `count` is the number of sentences (documents, gold pairs) that it is the value of; `hits` is
    a bit for each of them as text (`ems.bench.hits`), '' where they are not kept, and `interval`
    the 95 % bootstrap interval that follows from them.
    """

    source: str
    target: str
    value: float
    count: int
    split: str = ""
    seed: int | None = None
    measure: str = ""
    hits: str = ""
    interval: tuple[float, float] | None = None

    @classmethod
    def of_hits(cls, source: str, target: str, hits: np.ndarray, **others: Any) -> "Score":
        """Return the row of bool[N], N at least 1: their share in percent."""
        count, right = len(hits), int(hits.sum())
        others |= {"hits": packed(hits), "interval": interval(right, count)}
        return cls(source, target, 100 * right / count, count, **others)

    @property
    def direction(self) -> str:
        """Return the name of a direction and its split: "en-de", "en-de books"."""
        return f"{self.source}-{self.target} {self.split}".strip()

    @property
    def key(self) -> tuple:
        """Return what only one row of a file may have."""
        return self.source, self.target, self.split, self.seed, self.measure

    def bits(self) -> np.ndarray:
        """Return the hits as bool[count]. Raises `ValueError` for hits whose share is not the
        value.
        """
        bits = unpacked(self.hits, self.count)
        share = 100 * bits.mean()
        if abs(share - self.value) > CLOSE:
            raise ValueError(f"they are {share:.2f} %, the file says {self.value:.2f}")
        return bits


@dataclass(frozen=True)
class Result:
    """What a benchmark measured.

    `languages`: name in the rows -> the experiment's code, or UNSEEN. `label` says what stands
    together in a comparison: both directions of a "language", the seeds of a "direction", or all
    targets of a "source". `parallel`: all languages have the same sentences. `protocol`: settings
    of the scoring; only scores with the same ones share a table. `details`: what only tables of
    this benchmark read. `data`: version and checksum of data that are no evaluation set.
    """

    metric: str
    rows: list[Score]
    languages: Mapping[str, str]
    label: str = "language"
    higher_is_better: bool = True
    parallel: bool = False
    protocol: Mapping[str, Any] | Settings = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)

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

    def way_of(self, row: Score) -> str:
        """Return how a row differs from the others of its label."""
        if self.label == "source":
            return row.target
        if self.label == "direction":
            return "" if row.seed is None else str(row.seed)
        return "to_english" if row.target in self.english else "from_english"

    def labelled(self, measure: str = "") -> dict[str, dict[str, Score]]:
        """Label -> way -> row, of the file's metric or of another measure, in the file's order."""
        labels: dict[str, dict[str, Score]] = {}
        for row in self.rows:
            if row.measure == measure:
                labels.setdefault(self.label_of(row), {})[self.way_of(row)] = row
        return labels

    def means(self) -> list[tuple[str, float]]:
        """Return (languages, mean over labels) as the tables have them: ("58 trained languages",
        48.2), ("54 unseen languages", 21.9); one pair without words where no language is unseen.
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
        """Return True if the files of data that both were scored on have the same content; an
        experiment of fewer languages reads fewer files.
        """
        if self.data_sha256 == other.data_sha256:
            return True
        both = self.data_files.keys() & other.data_files.keys()
        return bool(both) and all(self.data_files[of] == other.data_files[of] for of in both)

    def setting(self, key: str, shape: Shape = COUNT) -> Any:
        """Return a setting of the protocol. Raises `Damaged` when the file does not have such a
        one.
        """
        protocol = {"protocol": dict(self.protocol)}
        if problem := misfit(protocol, record({"protocol": record({key: shape})})):
            raise Damaged(self.path, problem)
        return self.protocol[key]


_SETTING: Shape = {"type": ["string", "number", "boolean", "null"], "description": "a setting"}
_TRUTH: Shape = {"type": "boolean", "description": "true or false"}
_ROWS = {"type": "array", "minItems": 1, "description": "at least one score"}
_HEADER = {
    **dict.fromkeys(("benchmark", "system", "version", "data_sha256", "metric"), TEXT),
    "higher_is_better": _TRUTH,
    "label": {"enum": list(LABELS)},
    "languages": mapping(TEXT),
    "protocol": mapping(_SETTING),
    "rows": _ROWS,  # there may be thousands: `_score` checks them faster
}
_OPTIONAL = {"parallel": _TRUTH, "details": {"type": "object"}, "data_files": mapping(TEXT)}
_NAMES = ("source", "target")
_NOTHING = {
    **dict.fromkeys((*_NAMES, "value", "count", "seed")),
    **dict.fromkeys(("split", "measure", "hits"), ""),
}
_MEASURED = ("metric", "higher_is_better", "label", "parallel", "languages", "protocol", "details")


def write_scores(path: Path, header: Mapping[str, Any], result: Result) -> None:
    """Write a score file: `header` (benchmark, system, checksums) and what was measured.

    Each row is a line without spaces, so that the thousands of FLORES-200 are less than a megabyte:
    of a larger file Snakemake compares the time only, not the content.
    """
    content = {
        **header,
        **result.data,
        **plain({name: getattr(result, name) for name in _MEASURED}),
    }
    first = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False).removesuffix("\n}")
    fields = [{k: v for k, v in vars(row).items() if v not in ("", None)} for row in result.rows]
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in fields)
    write_text(path, f'{first},\n "rows": [\n{rows}\n ]\n}}\n')


def read_score_file(path: Path, benchmark: str = "", metric: str = "") -> ScoreFile:
    """Read a score file, of a `benchmark` and a `metric` where they are given.

    Raises `Damaged` for another file and for a malformed one.
    """
    wanted = {"benchmark": benchmark, "metric": metric}
    header = {**_HEADER, **{name: {"enum": [value]} for name, value in wanted.items() if value}}
    data = read_json(path, named(f"{benchmark or '*'}.json", record(header, _OPTIONAL)))
    rows = {}
    for at, row in enumerate(data["rows"]):
        score = _score(path, f"rows.{at}", row, data["metric"])
        if score.key in rows:
            place = _bare(score.direction)
            raise Damaged(path, f"expected one row of {place}, found two (`rows.{at}`)")
        rows[score.key] = score
    known = {ENGLISH, *data["languages"]}
    for name in (name for row in rows.values() for name in (row.source, row.target)):
        if name not in known:
            expected = f"expected the language {_bare(name)} under `languages`"
            raise Damaged(path, f"{expected}, found {shown(data['languages'])}")
    fields = {key: data[key] for key in (*_HEADER, *_OPTIONAL) if key in data}
    file = ScoreFile(path=path, **{**fields, "rows": list(rows.values())})
    labels = file.labelled() if file.label == "language" else {}
    ways = dict.fromkeys(way for of in labels.values() for way in of)
    for label, way in (
        (label, way) for label, of in labels.items() for way in ways if way not in of
    ):
        raise Damaged(path, f"expected {way} of every language, found none of {_bare(label)}")
    return file


def _score(path: Path, place: str, row: Any, metric: str) -> Score:
    """Check and return a row. Raises `Damaged` that names the row and the key."""
    if not isinstance(row, dict):
        raise Damaged(path, f"expected a JSON object under `{place}`, found {shown(row)}")
    score = {**_NOTHING, **row}
    low, high, what = PERCENT if score["measure"] else RANGES.get(metric, PERCENT)
    count, seed, value = score["count"], score["seed"], score["value"]
    checks = {
        "value": (what, type(value) in (int, float) and low <= value <= high),  # NaN is not
        **{key: ("text", _is_text(score[key]) and score[key].strip()) for key in _NAMES},
        **{key: ("text", _is_text(score[key])) for key in ("split", "measure", "hits")},
        "count": ("a count above 0", type(count) is int and count >= 1),
        "seed": (COUNT["description"], seed is None or (type(seed) is int and seed >= 0)),
    }
    for key, (expected, fits) in checks.items():
        if not fits:
            printed = shown(score[key])
            raise Damaged(path, f"expected {expected} under `{place}.{key}`, found {printed}")
    return Score(**{**{key: score[key] for key in checks}, "value": float(value)})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _bare(name: str) -> str:
    """Return a name of a file as a message of one line shows it, without quotation marks."""
    return shown(name)[1:-1]
