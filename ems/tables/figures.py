"""Figures of scores: bars, a map of directions, points against training data and minutes, lines."""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, FixedLocator, NullFormatter

from ems.base.errors import EmsError
from ems.config.plugins import Benchmark, benchmark, joining
from ems.tables.canvas import (
    COLOURS,
    colour,
    drawing,
    dress,
    legend_columns,
    number_logarithms,
    place_labels,
    settle,
)
from ems.tables.corpora import TRAIN, read_report
from ems.tables.logs import last_time
from ems.tables.printed import in_paper_order, in_table_one_order
from ems.tables.scores import Families, Scores, read_scores

# inches
BAR_WIDTH = 0.11
GROUP_GAP = 0.18  # between two languages
MOST_WIDTH = 16.0  # of bars in one row of axes
LEAST_WIDTH = 4.2  # the least width; few bars stand in the middle
AXIS_WIDTH = 0.8
ROW_HEIGHT = 2.6
FIELD = 0.16  # of a language in a map
LEAST_MAP = 3.0
MAP_MARGIN = 1.8  # for codes, titles and the scale
PANEL = (6.4, 4.6)  # of one system's points
PANELS = 2  # side by side
TRADEOFF = (6.0, 4.2)
LINES = (6.0, 4.0)

TICKS = [base * 10**power for power in range(10) for base in (1, 2, 5)]
ROOM = 1.3  # factor left free at both ends of the axis, at least
MARKS, STYLES = "osD^vPX", ["-", "--", ":", "-."]

Points = dict[str, tuple[int, float]]  # the experiment's code -> training pairs, P@1 in percent


def plot_bars(
    systems: Sequence[Scores], languages: Sequence[str], benchmark: Benchmark, out: Path
) -> None:
    """Draw P@1 (percent, mean of both directions) of each system in each of the `languages`.

    The figure grows with the number of bars, up to `MOST_WIDTH`, then goes on in a row below.
    """
    group = len(systems) * BAR_WIDTH + GROUP_GAP  # inches of one language
    most = max(1, int(MOST_WIDTH / group))
    count = -(-len(languages) // most)
    size = -(-len(languages) // count)  # rows of equal length
    rows = [languages[start : start + size] for start in range(0, len(languages), size)]
    names = [system.system for system in systems]
    looks = [
        {
            "facecolor": colour(at),
            "edgecolor": "white",
            "hatch": "//" if at >= len(COLOURS) else None,
        }
        for at in range(len(systems))
    ]
    width = AXIS_WIDTH + max(LEAST_WIDTH, size * group)
    columns = legend_columns(names, width)
    legend = -(-len(names) // columns) * 0.2  # inches
    # a language keeps its width: few stand in the middle, a short last row to the left
    middle, half = (size - 1) / 2, max(size, LEAST_WIDTH / group) / 2
    bar = BAR_WIDTH / group  # in units of one language
    with drawing(out, width, ROW_HEIGHT * len(rows) + 0.8 + legend) as figure:
        for axes, row in zip(figure.subplots(len(rows), squeeze=False)[:, 0], rows, strict=True):
            for number, system in enumerate(systems):
                offset = (number - (len(systems) - 1) / 2) * bar
                values = system.values
                bars = {at + offset: values[c] for at, c in enumerate(row) if c in values}
                axes.bar(list(bars), list(bars.values()), width=bar, linewidth=0, **looks[number])
            axes.set_xlim(middle - half, middle + half)
            axes.set_ylim(0, 100)
            axes.set_ylabel("P@1 (%)")
            axes.set_xticks(range(len(row)), row)
            axes.tick_params(axis="x", length=0)
            dress(axes, grid="y")
        figure.suptitle(f"{benchmark.title} {systems[0].version}: P@1, mean of both directions")
        # an explicit list: a row of axes has no handle of a system without a bar in it
        keys = [Patch(**look, label=name) for look, name in zip(looks, names, strict=True)]
        figure.legend(handles=keys, loc="outside lower center", ncols=columns, frameon=False)


def plot_directions(system: Scores, benchmark: Benchmark, out: Path) -> None:
    """Draw P@1 (percent) of each direction of a system, queries from top to bottom.

    A direction without a score is white. The scale is always 0 to 100, to compare two maps.
    """
    codes = in_table_one_order({code for name in system.values for code in name.split("-")})
    grid = np.array([[system.values.get(f"{q}-{c}", np.nan) for c in codes] for q in codes])
    size = max(LEAST_MAP, FIELD * len(codes)) + MAP_MARGIN
    with drawing(out, size, size - MAP_MARGIN / 3) as figure:
        axes = figure.subplots()
        drawn = axes.imshow(grid, vmin=0, vmax=100, cmap="viridis")  # [L, L]
        figure.colorbar(drawn, ax=axes, label="P@1 (%)", shrink=0.6)
        figure.suptitle(f"{benchmark.title} {system.version}: P@1 of {system.system}")
        axes.set_xticks(range(len(codes)), codes, rotation=90)
        axes.set_yticks(range(len(codes)), codes)
        axes.tick_params(length=0, labelsize=7)
        axes.set_xlabel("candidates")
        axes.set_ylabel("queries")


def plot_pairs(
    scores: list[Path], report: Path, out: Path, families: Families | None = None
) -> None:
    """Draw P@1 (percent, mean of both directions) against training pairs, a panel per system.

    A point is a language (EMS v2 Table IV over Table I). `report`: decontamination.json;
    `families`: systems that share a panel. Raises `EmsError` like `read_points`.
    """
    name = joining("pairs")[0]
    systems = read_scores(scores, name, "P@1", families=families, seen=True)
    points = read_points(systems, report)
    # the points that the logarithmic axis can show
    shown = {n: {k: v for k, v in each.items() if v[0]} for n, each in points.items()}
    if not any(shown.values()):
        raise EmsError(f"{report}: no training pairs are kept of any language; see its corpora")
    without = dict.fromkeys(k for each in points.values() for k, v in each.items() if not v[0])
    note = f" (without any, so not shown: {', '.join(without)})" if without else ""
    places = {n: np.array(list(each.values()), float).reshape(-1, 2) for n, each in shown.items()}
    every = np.concatenate(list(places.values()))[:, 0]
    # the axis spans at least a decade, so it has three numbers
    room = max(ROOM, (10 * every.min() / every.max()) ** 0.5)
    columns = min(PANELS, len(points))
    rows = ceil(len(points) / columns)
    with drawing(out, PANEL[0] * columns, PANEL[1] * rows + 0.5) as figure:
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
        title = f"{benchmark(name).title} {systems[0].version}"
        figure.suptitle(f"{title}: P@1, mean of both directions, against training data")
        for number, (axes, system) in enumerate(zip(panels, points, strict=False)):
            look = {"s": 10, "color": colour(number), "linewidths": 0, "zorder": 4}
            axes.scatter(*places[system].T, clip_on=False, **look)
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(FixedLocator(TICKS))
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # "5k"; the default is "10^3"
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_ylim(0, 100)
            axes.set_title(system)
            axes.tick_params(labelbottom=True, labelleft=True)
            dress(axes)
        for axes in panels[len(points) :]:
            axes.set_visible(False)
        panels[0].set_xlim(every.min() / room, every.max() * room)
        label = f"training pairs of the language, after decontamination{note}"
        figure.supxlabel(label, fontsize="medium")
        figure.supylabel("P@1 (%)", fontsize="medium")
        settle(figure)
        for axes, system in zip(panels, points, strict=False):
            place_labels(axes, places[system], list(shown[system]))


def read_points(systems: list[Scores], report: Path) -> dict[str, Points]:
    """Return system -> language -> (training pairs, P@1), in the paper's order.

    Raises `EmsError` for a malformed report and for a language that it lacks.
    """
    pairs: dict[str, int] = {}  # language -> training pairs that have it on one side
    for entry in read_report(report).entries:
        for side in entry.sides if entry.role == TRAIN else ():
            pairs[side] = pairs.get(side, 0) + entry.kept
    absent = {s.languages[code] for s in systems for code in s.values} - set(pairs)
    if absent:
        raise EmsError(
            f"{report}: no training corpus of {', '.join(sorted(absent))}, which "
            f"{systems[0].file.path} scores as trained on; take the report and the scores of the "
            "same experiment"
        )
    return {
        system.system: {
            (language := system.languages[code]): (pairs[language], system.values[code])
            for code in in_paper_order(set(system.values))
        }
        for system in systems
    }


def plot_tradeoff(scores: list[Path], times: Mapping[str, Path], out: Path) -> None:
    """Draw mean P@1 over the languages trained on, with its 95 % interval, against minutes.

    `times`: system -> its costs/train/*.times.jsonl. Raises `EmsError` if no system has both.
    """
    name = joining("tradeoff")[0]
    systems = [s for s in read_scores(scores, name, "P@1", seen=True) if s.system in times]
    seconds = {s.system: last_time(times[s.system])[1] for s in systems}
    systems = [system for system in systems if seconds[system.system]]
    if not systems:
        listed = ", ".join(map(str, scores))
        raise EmsError(f"no system of {listed} was trained, so none has a cost; train one")
    points, halves = [], []
    for system in systems:
        values = list(system.values.values())
        points.append([seconds[system.system] / 60, float(np.mean(values))])
        # languages are independent samples; two directions, which agree on most sentences, are one
        shares = {code: value / 100 for code, value in system.values.items()}
        variances = [share * (1 - share) / system.counts[code] for code, share in shares.items()]
        halves.append(100 * 1.96 * float(np.sqrt(sum(variances))) / len(variances))
    minutes = np.array(points)[:, 0]
    with drawing(out, *TRADEOFF) as figure:
        axes = figure.subplots()
        for at, (point, half) in enumerate(zip(points, halves, strict=True)):
            look = {"fmt": "o", "markersize": 4, "color": colour(at), "linewidth": 1}
            axes.errorbar(*point, yerr=half, **look)
        axes.set_xscale("log")  # twice the minutes are the same distance everywhere
        number_logarithms(axes.xaxis)
        axes.set_xlim(minutes.min() / 1.5, minutes.max() * 1.5)
        axes.set_xlabel("minutes of training")
        axes.set_ylabel("P@1 (%)")
        dress(axes)
        title = f"{benchmark(name).title} {systems[0].version}"
        figure.suptitle(f"{title}: mean P@1 against the cost of training")
        settle(figure)
        place_labels(axes, np.array(points), [system.system for system in systems])


def plot_lines(
    labels: Sequence[str],
    lines: Mapping[str, Sequence[float | None]],
    heading: str,
    title: str,
    out: Path,
) -> None:
    """Draw a line for each entry of `lines`: "Tatoeba en->fr" -> a percentage for each label.

    Lines of one benchmark (the words before the last) share a style. A missing value is a gap.
    """
    names = list(lines)
    benchmarks = list(dict.fromkeys(name.rpartition(" ")[0] for name in names))
    with drawing(out, *LINES) as figure:
        axes = figure.subplots()
        for at, (name, values) in enumerate(lines.items()):
            kind = benchmarks.index(name.rpartition(" ")[0])
            shown = [float("nan") if value is None else value for value in values]
            look = {"linestyle": STYLES[kind % len(STYLES)], "marker": MARKS[at % len(MARKS)]}
            axes.plot(range(len(labels)), shown, color=colour(at), markersize=4, label=name, **look)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlabel(heading)
        axes.set_ylabel("percent")
        dress(axes)
        figure.suptitle(title)
        columns = legend_columns(names, LINES[0])
        figure.legend(loc="outside lower center", ncols=columns, frameon=False)
