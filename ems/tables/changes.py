"""Differences between two systems as points with intervals, a panel per benchmark.

Languages stand in the order of their difference, so that what gains and what loses is seen at once;
the mean is last, below a line.
"""

from pathlib import Path

from matplotlib.axes import Axes

from ems.tables.canvas import COLOURS, LINE, dress, make_figure, save, settings

Drawn = tuple[str, float, float, float]  # label, difference, low, high
WIDTH = 4.6  # inches of a panel
ROW = 0.19  # inches of a language


def plot_changes(panels: list[tuple[str, list[Drawn]]], names: list[str], out: Path) -> None:
    """Draw `names[1]` minus `names[0]`; each panel is a benchmark with its rows, the mean last.

    Writes .svg and .png beside `out`.
    """
    most = max(len(rows) for _, rows in panels)
    with settings():
        figure = make_figure(WIDTH * len(panels), 1.3 + ROW * most)
        row = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (benchmark, rows) in zip(row, panels, strict=True):
            _panel(axes, benchmark, rows)
        figure.suptitle(f"{names[1]} minus {names[0]}, in points, with 95 % intervals")
        save(figure, out)


def _panel(axes: Axes, benchmark: str, rows: list[Drawn]) -> None:
    *languages, last = rows
    ordered = [*sorted(languages, key=lambda row: (-row[1], row[0])), last]
    labels, deltas, lows, highs = zip(*ordered, strict=True)
    sides = [
        [max(0.0, delta - low) for delta, low in zip(deltas, lows, strict=True)],
        [max(0.0, high - delta) for delta, high in zip(deltas, highs, strict=True)],
    ]
    places = range(len(ordered))
    axes.errorbar(deltas, places, xerr=sides, fmt="o", markersize=3, color=COLOURS[0], linewidth=1)
    axes.axvline(0, color=LINE, linewidth=0.8)
    if languages:
        axes.axhline(len(languages) - 0.5, color=LINE, linewidth=0.8, linestyle=":")
    axes.set_yticks(places, labels)
    axes.set_ylim(len(ordered) - 0.5, -0.5)
    axes.set_title(benchmark)
    dress(axes, grid="x")
