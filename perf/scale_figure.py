"""Draw what stages cost against the number of pairs, with their lines to a billion pairs."""

from pathlib import Path
from typing import Any

import numpy as np
from scale_lines import BILLION, Line

from ems.tables.canvas import colour, dress, legend_columns, make_figure, save, settings

PANELS = {"cpu_s": "CPU hours", "anon_mb": "memory of a job, GB", "disk_mb": "disk, GB"}
UNITS = {"cpu_s": 3600, "anon_mb": 1000, "disk_mb": 1000}
STAGES = ("fetch", "clean", "segment", "sample", "shards", "train", "snakemake")
LABELS = {"snakemake": "Snakemake itself", "sample": "sample for the vocabulary"}
WIDTH, HEIGHT = 10.0, 3.6  # inches


def plot(runs: list[dict[str, Any]], lines: dict[str, dict[str, Line]], out: Path) -> None:
    """Write .svg and .png beside `out`: a point for each size, a line for each stage."""
    shown = [stage for stage in STAGES if stage in lines]
    with settings():
        figure = make_figure(WIDTH, HEIGHT)
        panels = figure.subplots(1, len(PANELS))
        for axes, (measure, label) in zip(panels, PANELS.items(), strict=True):
            for number, stage in enumerate(shown):
                if measure in lines[stage]:
                    _draw(axes, runs, stage, measure, lines[stage][measure], colour(number))
            dress(axes)
            axes.set(xscale="log", yscale="log", xlabel="sentence pairs", title=label)
            axes.axvline(BILLION, color="#888888", linewidth=0.8, linestyle=":")
        names = [LABELS.get(stage, stage) for stage in shown]
        handles = [panels[0].plot([], [], color=colour(at))[0] for at in range(len(shown))]
        figure.legend(
            handles,
            names,
            loc="outside lower center",
            ncols=legend_columns(names, WIDTH),
            frameon=False,
        )
        save(figure, out)


def _draw(
    axes: Any, runs: list[dict[str, Any]], stage: str, measure: str, line: Line, shade: str
) -> None:
    unit = UNITS[measure]
    sizes = [one["pairs"] for one in runs]
    values = [one["stages"][stage][measure] / unit for one in runs]
    axes.plot(sizes, values, "o", color=shade, markersize=4)
    reach = np.geomspace(min(sizes), BILLION, 60)
    axes.plot(reach, (line.base + line.per_pair * reach) / unit, color=shade, linewidth=1)
    ends = [[line.billion / unit - line.low / unit], [line.high / unit - line.billion / unit]]
    axes.errorbar([BILLION], [line.billion / unit], yerr=ends, color=shade, capsize=3)
