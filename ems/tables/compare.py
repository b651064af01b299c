"""Two systems side by side: both values per language, what changed, and whether that is chance.

    ems compare results/demo/scores/ems results/demo/scores/ems-no-xtr --out compared.tex

Written beside `--out` as .tex, .md and .csv, and as a figure (.svg, .png) of the differences with
their intervals. The tests: `ems/bench/significance.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ems.bench.measured import Measured, measured
from ems.bench.significance import Change, gain, holm, mcnemar, of_mean
from ems.errors import EmsError
from ems.files import read_json
from ems.shapes import TEXT, record
from ems.tables.changes import plot_changes
from ems.tables.table import Block, Table, Value, make_frame, one_decimal
from ems.tables.write import markdown, write_table

# The same sentences in every language, so they are resampled together.
PARALLEL = {"flores200", "ntrex", "sib200", "xnli", "pawsx", "xsim", "xsimpp"}
SIGNIFICANT = 0.05
MEAN = "mean"
MOST_WAYS = 2  # of a language that are tested one by one: more (seeds, FLORES) only as their mean
SAME = ("version", "metric", "data_sha256")
SCORES = record(dict.fromkeys(("benchmark", "system", *SAME), TEXT))  # of any score file


@dataclass(frozen=True)
class Row:
    """A label of a benchmark: both values, the change if every hit is known, p per way."""

    label: str
    first: float
    second: float
    change: Change | None
    p: dict[str, float]


@dataclass(frozen=True)
class Comparison:
    """Two systems on one benchmark; the last row is the mean."""

    benchmark: str
    metric: str
    rows: list[Row]
    skipped: list[str]


def write_comparison(first: Path, second: Path, out: Path | None = None) -> str:
    """Compare two folders of score files (or two files); the table as Markdown.

    With `out` also written beside it, with a figure. Raises `EmsError` when the two have no
    benchmark in common, or one is of other data in each.
    """
    pairs = _paired(first, second)
    names = [_name(pairs, at) for at in range(2)]
    comparisons = [compare(benchmark, *pair) for benchmark, pair in pairs.items()]
    comparisons = [each for each in comparisons if each.rows]
    if not comparisons:
        raise EmsError(f"{first} and {second}: no score per language in the files of both")
    alone = [] if first.is_file() else _alone(first, second)
    table = _table(comparisons, names, alone)
    if out is not None:
        write_table(table, out)
        plot_changes([(c.benchmark, _drawn(c)) for c in comparisons], names, out)
    return markdown(table)


def _paired(first: Path, second: Path) -> dict[str, list[tuple[Path, Any]]]:
    """Benchmark -> (file, content) of both systems."""
    if first.is_file() and second.is_file():
        found = [(path, _read(path)) for path in (first, second)]
        _same(found, ("benchmark",))
        return {found[0][1]["benchmark"]: found}
    for path in (first, second):
        if not path.is_dir():
            raise EmsError(
                f"{path}: expected a folder of score files like results/demo/scores/ems, or two "
                "such files"
            )
    common = [path.name for path in sorted(first.glob("*.json")) if (second / path.name).is_file()]
    if not common:
        raise EmsError(f"{first} and {second}: no benchmark has a score file in both")
    return {Path(n).stem: [(f / n, _read(f / n)) for f in (first, second)] for n in common}


def _alone(first: Path, second: Path) -> list[str]:
    """The benchmarks that only one of the folders has."""
    names = [{path.stem for path in folder.glob("*.json")} for folder in (first, second)]
    return sorted(names[0] ^ names[1])


def _read(path: Path) -> Any:
    return read_json(path, SCORES)


def _same(pair: Sequence[tuple[Path, Any]], keys: Sequence[str] = SAME) -> None:
    (one, first), (other, second) = pair
    for key in keys:
        if first[key] != second[key]:
            raise EmsError(
                f"{one} and {other}: {key} is {first[key]} and {second[key]}; only scores of the "
                "same data can be compared: score one of the systems again"
            )


def _name(pairs: dict[str, list[tuple[Path, Any]]], at: int) -> str:
    """The system of one side; its folder too where both have one name."""
    names = [next(iter(pairs.values()))[side][1]["system"] for side in range(2)]
    if names[0] != names[1]:
        return names[at]
    return f"{names[at]} ({'AB'[at]})"


def compare(benchmark: str, first: tuple[Path, Any], second: tuple[Path, Any]) -> Comparison:
    """One benchmark of two systems, each a file and its content."""
    _same([first, second])
    one, other = (measured(data, path) for path, data in (first, second))
    skipped = [label for label in (*one, *other) if label not in one or label not in other]
    one, other = _in_both(one, other), _in_both(other, one)
    labels = list(one)
    for label in labels:
        _same_count(first[0], second[0], label, one[label], other[label])
    gains = {
        label: gain(one[label].hits, other[label].hits)
        for label in labels
        if one[label].hits and other[label].hits
    }
    changes = {label: of_mean([each], together=True) for label, each in gains.items()}
    tested = _tested(one, other, list(gains))
    many = [label for label in gains if not tested[label]]
    corrected = holm([changes[label].p for label in many])
    tested |= {label: {MEAN: p} for label, p in zip(many, corrected, strict=True)}
    rows = [Row(k, one[k].value, other[k].value, changes.get(k), tested.get(k, {})) for k in labels]
    whole = [_mean(benchmark, rows, gains)] if len(rows) > 1 else []
    return Comparison(benchmark, first[1]["metric"], [*rows, *whole], skipped)


def _in_both(mine: dict[str, Measured], theirs: dict[str, Measured]) -> dict[str, Measured]:
    """What of one system's the other was measured on too: labels, and ways of them."""
    return {
        label: each.only(theirs[label].ways)
        for label, each in mine.items()
        if label in theirs and set(each.ways) & set(theirs[label].ways)
    }


def _same_count(one: Path, other: Path, label: str, first: Measured, second: Measured) -> None:
    for way in set(first.hits) & set(second.hits):
        counts = len(first.hits[way]), len(second.hits[way])
        if counts[0] != counts[1]:
            raise EmsError(
                f"{one} and {other}: {label} has {counts[0]:,} and {counts[1]:,} sentences; score "
                "one of the systems again"
            )


def _tested(
    first: dict[str, Measured], second: dict[str, Measured], labels: list[str]
) -> dict[str, dict[str, float]]:
    """label -> way -> McNemar's p, corrected over the labels that have the way; labels with more
    ways than MOST_WAYS are not tested way by way.
    """
    found: dict[str, dict[str, float]] = {label: {} for label in labels}
    labels = [label for label in labels if len(first[label].hits) <= MOST_WAYS]
    for way in dict.fromkeys(way for label in labels for way in first[label].hits):
        having = [label for label in labels if way in first[label].hits]
        values = [mcnemar(first[k].hits[way], second[k].hits[way]) for k in having]
        for label, value in zip(having, holm(values), strict=True):
            found[label][way] = value
    return found


def _mean(benchmark: str, rows: list[Row], gains: dict[str, np.ndarray]) -> Row:
    """The mean over the labels, judged where all of them can be."""
    first, second = (float(np.mean([getattr(r, n) for r in rows])) for n in ("first", "second"))
    if len(gains) < len(rows):
        return Row(MEAN, first, second, None, {})
    parts = list(gains.values())
    together = benchmark in PARALLEL and len({len(part) for part in parts}) == 1
    change = of_mean(parts, together)
    return Row(MEAN, first, second, change, {MEAN: change.p})


def _drawn(comparison: Comparison) -> list[tuple[str, float, float, float]]:
    """(label, difference, low, high) of each row; without an interval where hits are unknown."""
    drawn = []
    for row in comparison.rows:
        delta = row.second - row.first
        change = row.change or Change(delta, delta, delta, 1.0)
        drawn.append((row.label, delta, change.low, change.high))
    return drawn


# --- the table


def _table(comparisons: list[Comparison], names: list[str], alone: list[str]) -> Table:
    ways = list(dict.fromkeys(way for c in comparisons for row in c.rows for way in row.p))
    heads = [f"p {way.replace('_', ' ')}".strip() for way in ways]
    columns = ["Language", *names, "Delta", "95 %", *heads]
    rows: list[list[Value]] = []
    bold, rules = set(), set()
    for comparison in comparisons:
        rules.add(len(rows))
        for row in comparison.rows:
            if _significant(row):
                bold.add((len(rows), "Delta"))
            rows.append([comparison.benchmark, *_cells(row, ways)])
    frame = make_frame(["Benchmark", *columns], rows)
    notes = _notes(comparisons, names, alone)
    text = {"Language", "95 %"}
    return Table(
        frame, [Block(columns)], bold=bold, rules=rules, text=text, once={"Benchmark"}, notes=notes
    )


def _cells(row: Row, ways: list[str]) -> list[Value]:
    ends = [one_decimal(end) for end in (row.change.low, row.change.high)] if row.change else []
    shown = [_probability(row.p[way]) if way in row.p else None for way in ways]
    delta = row.second - row.first
    return [row.label, row.first, row.second, delta, " to ".join(ends) or None, *shown]


def _probability(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _significant(row: Row) -> bool:
    """Whether one of the tests of a row says that it is no chance."""
    return any(value < SIGNIFICANT for value in row.p.values())


def _notes(comparisons: list[Comparison], names: list[str], alone: list[str]) -> list[str]:
    metrics = ", ".join(f"{c.benchmark} {c.metric}" for c in comparisons)
    notes = [
        f"{metrics}, in percent; Delta: {names[1]} minus {names[0]}, with the 95 % interval of the "
        "paired bootstrap over sentences. p of a language: McNemar's exact test, corrected by "
        "Holm's method over the languages of the benchmark; p of a mean (over languages, seeds, "
        "other languages): the bootstrap's. Bold: a p below "
        f"{SIGNIFICANT}. Of an error rate less is better."
    ]
    for each in comparisons:
        if each.skipped:
            notes.append(f"{each.benchmark}: only one system has {', '.join(each.skipped)}.")
        if any(row.change is None for row in each.rows):
            notes.append(f"{each.benchmark}: no hits per sentence, so nothing is tested there.")
    return notes + ([f"Only one system was scored on {', '.join(alone)}."] if alone else [])
