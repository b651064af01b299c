"""Validation P@1 of each language against the pairs seen: which languages learn, and which lag.

A panel per language, all with the same axes, and in it a line per system in the colours of the
learning curves. The number above a panel is the last value of the best system, in its colour.
"""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator

from ems.base.errors import EmsError
from ems.tables.canvas import dress, make_figure, save, settings
from ems.tables.curves import legend, line_style
from ems.tables.losses import Entry, read_losses
from ems.tables.printed import in_table_one_order
from ems.tables.table import rounded

MOST_COLUMNS = 9
PANEL_WIDTH, PANEL_HEIGHT = 1.45, 1.2  # inches
LEAST_WIDTH = 5.0  # inches; few panels are wider instead

Curves = dict[str, list[Entry]]  # system -> its rows of validation


def plot_languages(losses: Mapping[str, Path], out: Path) -> None:
    """Draw P@1 per language (percent, mean of both directions) of the systems (name ->
    losses.jsonl) against the sentence pairs seen.

    Writes .svg and .png beside `out`. Raises `EmsError` for a malformed row, and for a system
    without P@1 per language.
    """
    curves = {}
    for system, path in losses.items():
        curves[system] = [entry for entry in read_losses(path) if entry.languages]
        if not curves[system]:
            raise EmsError(
                f"{path}: no row has P@1 per language (`p1_by_language`); train this system again, "
                "with `validation`"
            )
    with settings():
        save(_figure(curves), out)


def _figure(curves: Curves) -> Figure:
    codes = in_table_one_order(
        {c for rows in curves.values() for row in rows for c in row.languages}
    )
    columns = min(MOST_COLUMNS, len(codes))
    lines = -(-len(codes) // columns)
    width = max(LEAST_WIDTH, columns * PANEL_WIDTH)
    figure = make_figure(width, lines * PANEL_HEIGHT + 1.1)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for axes, code in zip(panels, codes, strict=False):
        _panel(axes, code, curves)
    for axes in panels[len(codes) :]:
        axes.set_visible(False)
    for axes in panels[len(codes) - columns : len(codes)]:
        axes.tick_params(labelbottom=True)  # the lowest of its column
    panels[0].set_ylim(0, 100)  # all panels share its axes
    panels[0].yaxis.set_major_locator(FixedLocator((0, 50, 100)))
    panels[0].set_xlim(left=0)
    panels[0].xaxis.set_major_locator(MaxNLocator(2, steps=(1, 2, 5, 10)))
    panels[0].xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.suptitle("Validation P@1 (%) per language against sentence pairs seen")
    legend(figure, {name: number for number, name in enumerate(curves)}, width)
    return figure


def _panel(axes: Axes, code: str, curves: Curves) -> None:
    """Draw one language: a line per system, and the last value of the best in its colour."""
    last: dict[int, float] = {}
    for number, rows in enumerate(curves.values()):
        points = [(row.pairs, row.languages[code]) for row in rows if code in row.languages]
        if points:
            axes.plot(*zip(*points, strict=True), **line_style(number), linewidth=1.2)
            last[number] = points[-1][1]
    best = max(last, key=lambda number: last[number])
    axes.set_title(code, loc="left", fontsize=8, pad=2)
    shown = {"color": line_style(best)["color"], "fontsize": 8, "pad": 2}
    axes.set_title(rounded(last[best]), loc="right", **shown)
    axes.tick_params(labelsize=7)
    dress(axes)
