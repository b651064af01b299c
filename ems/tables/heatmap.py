"""P@1 between every two languages as a map of colours; the scale is always 0 to 100, so that two
maps can be compared.
"""

from pathlib import Path

import numpy as np

from ems.config.record import Benchmark
from ems.tables.canvas import make_figure, save, settings
from ems.tables.printed import in_table_one_order
from ems.tables.scores import Scores

FIELD = 0.16  # inches of one language
LEAST = 3.0  # inches of the map
MARGIN = 1.8  # inches for codes, titles and the scale


def plot_directions(system: Scores, benchmark: Benchmark, out: Path) -> None:
    """Draw P@1 (percent) of each direction of a system, queries from top to bottom.

    Writes .svg and .png beside `out`. A direction that was not scored stays white.
    """
    codes = in_table_one_order({code for name in system.values for code in name.split("-")})
    grid = np.array([[system.values.get(f"{q}-{c}", np.nan) for c in codes] for q in codes])
    size = max(LEAST, FIELD * len(codes)) + MARGIN
    with settings():
        figure = make_figure(size, size - MARGIN / 3)
        axes = figure.subplots()
        drawn = axes.imshow(grid, vmin=0, vmax=100, cmap="viridis")  # [L, L]
        figure.colorbar(drawn, ax=axes, label="P@1 (%)", shrink=0.6)
        figure.suptitle(f"{benchmark.title} {system.version}: P@1 of {system.system}")
        axes.set_xticks(range(len(codes)), codes, rotation=90)
        axes.set_yticks(range(len(codes)), codes)
        axes.tick_params(length=0, labelsize=7)
        axes.set_xlabel("candidates")
        axes.set_ylabel("queries")
        save(figure, out)
