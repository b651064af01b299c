"""Compare two systems by language, with the tests of ems/bench/significance.py."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes

from ems.base.errors import Damaged, EmsError, mistake
from ems.bench.scores import RANGES, Score, ScoreFile, read_score_file
from ems.bench.significance import SIGNIFICANT, Change, holm, mean_change, sentences_of, sign_test
from ems.config.languages import short_code
from ems.config.plugins import benchmark, joining
from ems.tables.canvas import LINE, drawing, name_languages
from ems.tables.engine import own_codes
from ems.tables.scores import Families, read_scores
from ems.tables.table import Table, Value, markdown, note, rounded, write_table

DIFFERENCE = "Difference"
MEAN = "mean"
MOST_NAMED = 5  # largest differences of each sign in the summary
MOST_WAYS = 2  # tested one by one per language; more (seeds, FLORES) are tested as their mean

MOST_ACROSS = 4  # benchmarks side by side
PANEL_WIDTH, LABELS_WIDTH = 3.8, 1.0  # inches of a benchmark, and of the languages in it
LANGUAGE_HEIGHT, TITLE_HEIGHT = 0.19, 0.8  # inches of a language, and of title and numbers
DELTAS_WIDTH, SYSTEM_HEIGHT = 7.0, 0.3  # inches of the figure and of a system in it
INTERVALS = "lines: 95 % intervals; blue: better; red: worse; grey: the interval includes 0"

Gains = dict[str, np.ndarray]  # way -> second minus first hits of each sentence, float64[N]


@dataclass(frozen=True)
class Difference:
    """One label of a benchmark: both values, the change if all hits are known, and p per way."""

    label: str
    first: float
    second: float
    change: Change | None
    p: Mapping[str, float]

    @property
    def delta(self) -> float:
        return self.second - self.first

    @property
    def significant(self) -> bool:
        return any(p < SIGNIFICANT for p in self.p.values())

    @property
    def values(self) -> list[Value]:
        """Both values, their difference and its interval."""
        ends = (self.change.low, self.change.high) if self.change else ()
        return [self.first, self.second, self.delta, " to ".join(map(rounded, ends)) or None]


@dataclass(frozen=True)
class Comparison:
    """Two systems on one benchmark."""

    benchmark: str
    metric: str
    sign: int  # -1 if lower is better
    rows: list[Difference]  # the last one is the mean over `counted`, as in the tables
    skipped: list[str]
    counted: list[Difference]  # rows of trained languages
    unseen: list[Difference]  # the mean over the other languages, if any


def write_comparison(
    first: Path, second: Path, out: Path | None = None, every_row: bool = False
) -> str:
    """Compare two folders of score files, or two files; return a summary, or `every_row`, in
    Markdown. With `out` also write the whole table and the figure. Raises `EmsError` if they have
    no benchmark in common, or scored a benchmark on different data.
    """
    pairs, alone = _paired(first, second)
    names = [pairs[0][side].system for side in range(2)]
    if names[0] == names[1]:
        names = [f"{names[0]} ({letter})" for letter in "AB"]
    # a cosine is not a percentage
    comparisons = [compare(*pair) for pair in pairs if pair[0].metric not in RANGES]
    comparisons = [each for each in comparisons if each.rows]
    if not comparisons:
        raise EmsError(f"{first} and {second}: no score per language in the files of both")
    table = _table(comparisons, names, alone)
    if out is not None:
        write_table(table, out)
        plot_changes(comparisons, names, out)
    return markdown(table) if every_row else _summary(comparisons, names, table.notes[1:])


def _paired(first: Path, second: Path) -> tuple[list[list[ScoreFile]], list[str]]:
    """Return the score files of both systems per benchmark, and the benchmarks of only one."""
    if first.is_file() and second.is_file():
        files = [read_score_file(path) for path in (first, second)]
        _same(files, "benchmark")
        return [files], []
    folders = first, second
    for path in folders:
        if not path.is_dir():
            raise mistake("no scores to compare", path=path)
    names = [{path.stem for path in folder.glob("*.json")} for folder in folders]
    common = sorted(names[0] & names[1])
    if not common:
        raise EmsError(f"{first} and {second}: no benchmark has a score file in both")
    pairs = [[read_score_file(folder / f"{name}.json") for folder in folders] for name in common]
    return pairs, sorted(names[0] ^ names[1])


def _same(pair: Sequence[ScoreFile], *keys: str) -> None:
    for key in keys:
        one, other = (getattr(file, key) for file in pair)
        if one != other:
            paths = " and ".join(str(file.path) for file in pair)
            raise mistake("scores of other data", paths=paths, key=key, both=f"{one} and {other}")


def compare(first: ScoreFile, second: ScoreFile) -> Comparison:
    pair = first, second
    _same(pair, "version", "metric", *(() if first.same_data(second) else ("data_sha256",)))
    one, other = (file.labelled() for file in pair)
    skipped = [label for label in (*one, *other) if label not in one or label not in other]
    both = {  # label -> way -> the rows of both systems
        label: {way: (row, other[label][way]) for way, row in ways.items() if way in other[label]}
        for label, ways in one.items()
        if label in other
    }
    both = {label: ways for label, ways in both.items() if ways}
    every = {label: _gains(pair, label, ways) for label, ways in both.items()}
    tested = {label: ways for label, ways in every.items() if ways}
    gains = {label: np.mean([*ways.values()], axis=0) for label, ways in tested.items()}
    changes = {label: mean_change([each], [label]) for label, each in gains.items()}
    p = _probabilities(tested, changes)
    codes, rows = own_codes(first.languages), {}
    for label, ways in both.items():
        means = [fmean(row[side].value for row in ways.values()) for side in range(2)]
        name = codes.get(label, label)
        rows[label] = Difference(name, *means, changes.get(label), p.get(label, {}))

    def mean(labels: Collection[str], name: str) -> Difference:
        """Return the mean over the labels, tested if all of them can be."""
        own, change = [rows[label] for label in labels], None
        if gains.keys() >= {*labels}:
            texts = [[*one[label].values()] for label in labels]
            keys = ["" if first.parallel else sentences_of(own) for own in texts]
            change = mean_change([gains[label] for label in labels], keys)
        means = fmean(row.first for row in own), fmean(row.second for row in own)
        return Difference(name, *means, change, {MEAN: change.p} if change else {})

    groups = [file.mean_labels() for file in pair]
    unseen = [label for label in rows if any(label in others for _, others in groups)]
    counted = [label for label in rows if label not in unseen and label in groups[0][0]]
    counted, unseen = (counted, unseen) if counted else (list(rows), [])
    shown = [*rows.values(), *([mean(counted, MEAN)] if len(rows) > 1 else [])]
    others = [mean(unseen, f"{MEAN} of {len(unseen)} unseen")] if unseen else []
    header = (first.benchmark, first.metric, 1 if first.higher_is_better else -1)
    return Comparison(*header, shown, skipped, [rows[label] for label in counted], others)


def _gains(pair: Sequence[ScoreFile], label: str, ways: Mapping[str, tuple[Score, Score]]) -> Gains:
    """Return the gain of each sentence by way; {} if a way lacks the hits of a system."""
    for one, other in ways.values():
        if one.hits and other.hits and one.count != other.count:
            first, second = (file.path for file in pair)
            words = {"label": label, "one": one, "other": other}
            raise mistake("other sentences", first=first, second=second, **words)
    hits = []
    for file, rows in zip(pair, zip(*ways.values(), strict=True), strict=True):
        try:
            hits.append([row.bits() for row in rows if row.hits])
        except ValueError as error:
            raise Damaged(file.path, f"the hits of {label} are damaged ({error})") from None
    if {*map(len, hits)} != {len(ways)}:
        return {}
    return {way: np.subtract(b, a, dtype=float) for way, a, b in zip(ways, *hits, strict=True)}


def _probabilities(
    gains: Mapping[str, Gains], changes: Mapping[str, Change]
) -> dict[str, dict[str, float]]:
    """Return label -> way -> McNemar's p, corrected over the labels that have the way; for a label
    with more ways than MOST_WAYS, the corrected p of its mean.
    """
    many = [label for label, ways in gains.items() if len(ways) > MOST_WAYS]
    few = {label: ways for label, ways in gains.items() if label not in many}
    p: dict[str, dict[str, float]] = {label: {} for label in gains}
    for way in dict.fromkeys(way for ways in few.values() for way in ways):
        raw = {label: sign_test([ways[way]]) for label, ways in few.items() if way in ways}
        for label, value in zip(raw, holm([*raw.values()]), strict=True):
            p[label][way] = value
    corrected = holm([changes[label].p for label in many])
    return p | {label: {MEAN: value} for label, value in zip(many, corrected, strict=True)}


def _summary(comparisons: list[Comparison], names: list[str], more: list[str]) -> str:
    """Return a row per benchmark and the largest differences of all, as Markdown."""
    cells: list[list[Value]] = []
    gains: list[tuple[float, str]] = []
    for each in comparisons:
        signed = [(each.sign * row.delta, row) for row in each.counted]
        groups = [[row for points, row in signed if sign * points > 0] for sign in (1, -1)]
        tallies = [f"{len(group)} ({sum(row.significant for row in group)})" for group in groups]
        title = f"{each.benchmark} {each.metric}"
        cells.append([title, str(len(signed)), *each.rows[-1].values, *tallies])
        cells += [[title, row.label, *row.values, None, None] for row in each.unseen]
        for points, row in signed:
            delta = f"{float(rounded(row.delta)):+.1f}"
            gains.append((points, f"{each.benchmark} {row.label} {delta}"))
    means = [row for each in comparisons for row in (each.rows[-1], *each.unseen)]
    gains.sort()
    best = ", ".join(text for points, text in gains[: -MOST_NAMED - 1 : -1] if points > 0)
    worst = ", ".join(text for points, text in gains[:MOST_NAMED] if points < 0)
    notes = [
        note("comparison", names=names, p=SIGNIFICANT),
        f"{names[1]} is better: {best or 'nowhere'}.",
        f"{names[1]} is worse: {worst or 'nowhere'}.",
        *more,
    ]
    columns = ["Benchmark", "Mean of", *names, DIFFERENCE, "95 %", "Better", "Worse"]
    bold = {(at, DIFFERENCE) for at, row in enumerate(means) if row.significant}
    return markdown(Table(columns, cells, bold=bold, text={"Mean of"}, notes=notes))


def _table(comparisons: list[Comparison], names: list[str], alone: list[str]) -> Table:
    listed = [(each.benchmark, row) for each in comparisons for row in [*each.rows, *each.unseen]]
    ways = list(dict.fromkeys(way for _, row in listed for way in row.p))
    cells: list[list[Value]] = []
    for name, row in listed:
        p = {w: "<0.001" if p < 0.001 else f"{p:.3f}" for w, p in row.p.items()}
        cells.append([name, row.label, *row.values, *map(p.get, ways)])
    metrics = ", ".join(f"{each.benchmark} {each.metric}" for each in comparisons)
    notes = [note("comparison_rows", metrics=metrics, names=names, p=SIGNIFICANT)]
    for each in comparisons:
        if each.skipped:
            notes.append(f"{each.benchmark}: only one system has {', '.join(each.skipped)}.")
        if any(row.change is None for row in each.rows):
            notes.append(f"{each.benchmark}: no hits per sentence, so no test.")
    if alone:
        notes.append(f"Only one system was scored on {', '.join(alone)}.")
    heads = [f"p {way.replace('_', ' ')}".strip() for way in ways]
    lengths = [len(each.rows) + len(each.unseen) for each in comparisons]
    return Table(
        ["Benchmark", "Language", *names, DIFFERENCE, "95 %", *heads],
        cells,
        bold={(at, DIFFERENCE) for at, (_, row) in enumerate(listed) if row.significant},
        rules={sum(lengths[:at]) for at in range(len(lengths))},
        text={"Language", "95 %"},
        once={"Benchmark"},
        notes=notes,
    )


def plot_changes(panels: list[Comparison], names: list[str], out: Path) -> None:
    """Draw `names[1]` minus `names[0]` with intervals, a panel per benchmark; the mean is last."""
    panels = sorted(panels, key=lambda panel: -len(panel.rows))
    heights = [0.0] * min(MOST_ACROSS, len(panels))  # inches of each column so far
    boxes = []  # of each panel, in the shortest column: left, top, height
    for panel in panels:
        column, height = heights.index(min(heights)), LANGUAGE_HEIGHT * len(panel.rows)
        boxes.append((PANEL_WIDTH * column, heights[column], height))
        heights[column] += height + TITLE_HEIGHT
    width, whole = max(5.0, PANEL_WIDTH * len(heights)), max(heights) + 1.2
    with drawing(out, width, whole) as figure:
        figure.set_layout_engine("none")
        for (left, top, height), panel in zip(boxes, panels, strict=True):
            place = (left + LABELS_WIDTH, whole - 0.8 - top - height, PANEL_WIDTH - 1.2, height)
            axes = figure.add_axes(np.divide(place, (width, whole, width, whole)))
            *languages, last = (replace(r, label=short_code(r.label)) for r in panel.rows)
            rows = [*sorted(languages, key=lambda row: (-row.delta, row.label)), last]
            _draw_rows(axes, rows, lower=panel.sign < 0)
            if languages:
                axes.axhline(len(languages) - 0.5, color=LINE, linewidth=0.8, linestyle=":")
            axes.set_title(panel.benchmark + (" (less is better)" if panel.sign < 0 else ""))
        figure.suptitle(f"{names[1]} minus {names[0]}, in percentage points", y=1 - 0.15 / whole)
        figure.supxlabel(INTERVALS, y=0.1 / whole)


def _draw_rows(axes: Axes, rows: Sequence[Difference], lower: bool = False) -> None:
    """Draw differences with intervals, the first on top; `lower`: less is better."""
    for place, row in enumerate(rows):
        low, high = (row.change.low, row.change.high) if row.change else (row.delta, row.delta)
        better = "C0" if (row.delta > 0) != lower else "C1"
        sides = [[max(0.0, row.delta - low)], [max(0.0, high - row.delta)]]
        look = {"fmt": "o", "linewidth": 1, "color": LINE if low <= 0 <= high else better}
        axes.errorbar([row.delta], [place], xerr=sides, **look)
    axes.axvline(0, color=LINE, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(False, axis="y")
    name_languages(axes.get_yticklabels())


def plot_deltas(
    scores: list[Path], order: list[str], out: Path, families: Families | None = None
) -> None:
    """Draw the change in mean P@1 versus the first system of `order`, on the first ablation
    benchmark: over the languages trained on, as in EMS v2 Tables IV and XIV. Intervals do not
    include the variance between seeds. Raises `EmsError` for scores of different data, or without a
    common language.
    """
    name = joining("ablation")[0]
    systems = read_scores(scores, name, "P@1", order=order, families=families, seen=True)
    base, *others = (each.as_file for each in systems if each.values)
    alike = [other for other in others if other.labelled().keys() & base.labelled().keys()]
    if not alike:
        raise mistake("no common language", base=base)
    rows = []
    for other in alike:
        mean = compare(base, other).rows[-1]
        if mean.change is None:
            raise Damaged(other.path, "no hits per sentence in it")
        rows.append(replace(mean, label=other.system))
    with drawing(out, DELTAS_WIDTH, 1.4 + SYSTEM_HEIGHT * len(rows)) as figure:
        axes = figure.subplots()
        _draw_rows(axes, rows)
        for place, row in enumerate(rows):
            value = f"{row.delta:+.1f}".replace("-", "\N{MINUS SIGN}")
            axes.annotate(value, (1.02, place), xycoords=axes.get_yaxis_transform(), va="center")
        points = f"mean P@1 compared with {base.system}, in percentage points"
        axes.set_xlabel(f"{points}\n{INTERVALS}")
        title = f"{benchmark(name).title} {base.version}: what each change to {base.system} does"
        figure.suptitle(title)
