"""Draw what stages cost against the number of pairs, with their lines to a billion pairs."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator
from scale_lines import BILLION, PER_FILE, Line, point_of

from ems.tables.canvas import LINE, colour, dress, legend_columns, drawing

PANELS = {"cpu_s": ("CPU hours", 3600), "disk_mb": ("disk, GB", 1000)}
STAGES = (*PER_FILE, "sample")
WIDTH, HEIGHT = 8.0, 3.8  # inches


def plot(runs: list[dict[str, Any]], lines: dict[str, dict[str, Line]], out: Path) -> None:
    """Write .svg and .png beside `out`: a point for each run, a line for each stage.

    The start of jobs is taken off each point, so that runs with many files lie on the same line as
    those with few: it is a thousandth of a billion pairs.
    """
    shown = [stage for stage in STAGES if stage in lines]
    with drawing(out, WIDTH, HEIGHT) as figure:
        panels = figure.subplots(1, len(PANELS))
        for axes, (measure, (label, unit)) in zip(panels, PANELS.items(), strict=True):
            for number, stage in enumerate(shown):
                line = lines[stage].get(measure)
                if line and (stage in PER_FILE or measure == "cpu_s"):
                    _draw(axes, runs, (stage, measure), line, colour(number), unit)
            dress(axes)
            axes.set(xscale="log", yscale="log", xlabel="sentence pairs", ylabel=label)
            axes.xaxis.set_major_locator(LogLocator(numticks=9))
            axes.xaxis.set_major_formatter(FuncFormatter(_short))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.minorticks_off()
            axes.axvline(BILLION, color=LINE, linewidth=0.8, linestyle=":")
        handles = [panels[0].plot([], [], "o-", color=colour(at))[0] for at in range(len(shown))]
        columns = legend_columns(shown, WIDTH)
        figure.legend(handles, shown, loc="outside lower center", ncols=columns, frameon=False)


def _draw(
    axes: Axes,
    runs: list[dict[str, Any]],
    place: tuple[str, str],
    line: Line,
    shade: str,
    unit: float,
) -> None:
    stage, measure = place
    points = [point_of(one, stage, measure) for one in runs]
    values = [one["stages"][stage][measure] for one in runs]
    rest = [value - line.base * jobs for value, (jobs, _) in zip(values, points, strict=True)]
    pairs = [point[1] for point in points]
    kept = [(x, y / unit) for x, y in zip(pairs, rest, strict=True) if y > 0]
    axes.plot(*zip(*kept, strict=True), "o", color=shade, markersize=4)
    reach = np.geomspace(min(pairs), BILLION, 60)
    axes.plot(reach, line.slope * reach / unit, color=shade, linewidth=1)
    ends = [[(line.billion - line.low) / unit], [(line.high - line.billion) / unit]]
    axes.errorbar([BILLION], [line.billion / unit], yerr=ends, color=shade, capsize=3)


def _short(value: float, _: int) -> str:
    """Return a power of ten as 100k, 1M, 1B."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
