"""Two systems side by side: both values per language, what changed, and whether that is chance.

    ems compare results/demo/scores/ems results/demo/scores/ems-no-xtr --out compared.tex

Written beside `--out` as .tex, .md and .csv, and as a figure (.svg, .png) of the differences with
their intervals. The tests: `ems/bench/significance.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ems.bench.significance import Change, gain, holm, mcnemar, of_mean
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.scores import RANGES, Score, ScoreFile, read_score_file
from ems.tables.changes import plot_changes
from ems.tables.table import Block, Table, Value, make_frame, rounded
from ems.tables.write import markdown, write_table

SIGNIFICANT = 0.05
MEAN = "mean"
MOST_WAYS = 2  # of a language that are tested one by one: more (seeds, FLORES) only as their mean
SAME = ("version", "metric", "data_sha256")

Ways = dict[str, Score]  # a label's rows, by what sets them apart
Hits = dict[str, dict[str, np.ndarray]]  # label -> way -> bool[N]


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
    # a cosine is no percentage, and the lower it is the better
    comparisons = [compare(*pair) for pair in pairs.values() if pair[0].metric not in RANGES]
    comparisons = [each for each in comparisons if each.rows]
    if not comparisons:
        raise EmsError(f"{first} and {second}: no score per language in the files of both")
    alone = [] if first.is_file() else _alone(first, second)
    table = _table(comparisons, names, alone)
    if out is not None:
        write_table(table, out)
        plot_changes([(c.benchmark, _drawn(c)) for c in comparisons], names, out)
    return markdown(table)


def _paired(first: Path, second: Path) -> dict[str, list[ScoreFile]]:
    """Return the score files of both systems by benchmark."""
    if first.is_file() and second.is_file():
        files = [read_score_file(path) for path in (first, second)]
        _same(files, ("benchmark",))
        return {files[0].benchmark: files}
    for path in (first, second):
        if not path.is_dir():
            raise EmsError(
                f"{path}: expected a folder of score files like results/demo/scores/ems, or two "
                "such files"
            )
    common = [path.name for path in sorted(first.glob("*.json")) if (second / path.name).is_file()]
    if not common:
        raise EmsError(f"{first} and {second}: no benchmark has a score file in both")
    return {Path(n).stem: [read_score_file(f / n) for f in (first, second)] for n in common}


def _alone(first: Path, second: Path) -> list[str]:
    """The benchmarks that only one of the folders has."""
    names = [{path.stem for path in folder.glob("*.json")} for folder in (first, second)]
    return sorted(names[0] ^ names[1])


def _same(pair: Sequence[ScoreFile], keys: Sequence[str] = SAME) -> None:
    for key in keys:
        one, other = (getattr(file, key) for file in pair)
        if one != other:
            raise EmsError(
                f"{pair[0].path} and {pair[1].path}: {key} is {one} and {other}; only scores of "
                "the same data can be compared: score one of the systems again"
            )


def _name(pairs: dict[str, list[ScoreFile]], at: int) -> str:
    """The system of one side; its folder too where both have one name."""
    names = [next(iter(pairs.values()))[side].system for side in range(2)]
    if names[0] != names[1]:
        return names[at]
    return f"{names[at]} ({'AB'[at]})"


def compare(first: ScoreFile, second: ScoreFile) -> Comparison:
    """Compare two systems on one benchmark."""
    _same([first, second])
    one, other = (file.labelled() for file in (first, second))
    skipped = [label for label in (*one, *other) if label not in one or label not in other]
    one, other = _in_both(one, other), _in_both(other, one)
    labels = list(one)
    for label in labels:
        _same_count([first, second], label, one[label], other[label])
    hits = [_hits(first, one), _hits(second, other)]
    gains = {k: gain(*(file[k] for file in hits)) for k in labels if all(k in of for of in hits)}
    changes = {label: of_mean([each], together=True) for label, each in gains.items()}
    tested = _tested(*hits, list(gains))
    many = [label for label in gains if not tested[label]]
    corrected = holm([changes[label].p for label in many])
    tested |= {label: {MEAN: p} for label, p in zip(many, corrected, strict=True)}
    means = [{label: _mean_of(ways) for label, ways in file.items()} for file in (one, other)]
    rows = [Row(k, *(of[k] for of in means), changes.get(k), tested.get(k, {})) for k in labels]
    whole = [_mean(rows, gains, first.parallel)] if len(rows) > 1 else []
    return Comparison(first.benchmark, first.metric, [*rows, *whole], skipped)


def _mean_of(ways: Ways) -> float:
    return sum(row.value for row in ways.values()) / len(ways)


def _in_both(mine: dict[str, Ways], theirs: dict[str, Ways]) -> dict[str, Ways]:
    """Return what the other system was measured on too: labels, and ways of them."""
    common = {
        label: {way: row for way, row in ways.items() if way in theirs.get(label, {})}
        for label, ways in mine.items()
    }
    return {label: ways for label, ways in common.items() if ways}


def _hits(file: ScoreFile, labels: dict[str, Ways]) -> Hits:
    """Return label -> way -> bool[N], of the labels of which every way has its hits.

    Raises `Damaged` for hits that do not give their value.
    """
    whole = {k: ways for k, ways in labels.items() if all(row.hits for row in ways.values())}
    hits: Hits = {}
    for label, ways in whole.items():
        try:
            hits[label] = {way: row.bits() for way, row in ways.items()}
        except ValueError as error:
            raise Damaged(file.path, f"the hits of {label} are damaged ({error})") from None
    return hits


def _same_count(pair: Sequence[ScoreFile], label: str, first: Ways, second: Ways) -> None:
    for way in (way for way in first if first[way].hits and second[way].hits):
        counts = first[way].count, second[way].count
        if counts[0] != counts[1]:
            raise EmsError(
                f"{pair[0].path} and {pair[1].path}: {label} has {counts[0]:,} and {counts[1]:,} "
                "sentences; score one of the systems again"
            )


def _tested(first: Hits, second: Hits, labels: list[str]) -> dict[str, dict[str, float]]:
    """label -> way -> McNemar's p, corrected over the labels that have the way; labels with more
    ways than MOST_WAYS are not tested way by way.
    """
    found: dict[str, dict[str, float]] = {label: {} for label in labels}
    labels = [label for label in labels if len(first[label]) <= MOST_WAYS]
    for way in dict.fromkeys(way for label in labels for way in first[label]):
        having = [label for label in labels if way in first[label]]
        values = [mcnemar(first[k][way], second[k][way]) for k in having]
        for label, value in zip(having, holm(values), strict=True):
            found[label][way] = value
    return found


def _mean(rows: list[Row], gains: dict[str, np.ndarray], parallel: bool) -> Row:
    """The mean over the labels, judged where all of them can be."""
    first, second = (float(np.mean([getattr(r, n) for r in rows])) for n in ("first", "second"))
    if len(gains) < len(rows):
        return Row(MEAN, first, second, None, {})
    parts = list(gains.values())
    together = parallel and len({len(part) for part in parts}) == 1
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
    ends = [rounded(end) for end in (row.change.low, row.change.high)] if row.change else []
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
