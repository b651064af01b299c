"""P@1 per language as bars, one colour per system.

The figure grows with the number of bars, up to `MOST_WIDTH`, then goes on in a row below.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from ems.config.record import Benchmark
from ems.tables.canvas import COLOURS, colour, dress, legend_columns, make_figure, save, settings
from ems.tables.scores import Scores

BAR_WIDTH = 0.11  # inches
GROUP_GAP = 0.18  # inches between two languages
MOST_WIDTH = 16.0  # inches of bars in one row of axes
LEAST_WIDTH = 4.2  # the same, at least; few bars stand in the middle
MARGIN = 0.8  # inches for the vertical axis
ROW_HEIGHT = 2.6  # inches


def plot_bars(
    systems: Sequence[Scores], languages: Sequence[str], benchmark: Benchmark, out: Path
) -> None:
    """Draw P@1 (percent, mean of both directions) of each system in each of the `languages`.

    Writes .svg and .png beside `out`. A language that a system lacks has no bar.
    """
    group = len(systems) * BAR_WIDTH + GROUP_GAP  # inches of one language
    most = max(1, int(MOST_WIDTH / group))
    count = -(-len(languages) // most)
    size = -(-len(languages) // count)  # rows of like length
    rows = [languages[start : start + size] for start in range(0, len(languages), size)]
    names = [system.system for system in systems]
    width = MARGIN + max(LEAST_WIDTH, size * group)
    columns = legend_columns(names, width)
    with settings():
        legend = -(-len(names) // columns) * 0.2  # inches
        figure = make_figure(width, ROW_HEIGHT * len(rows) + 0.8 + legend)
        for axes, row in zip(figure.subplots(len(rows), squeeze=False)[:, 0], rows, strict=True):
            _bars(axes, systems, row, size, group)
        figure.suptitle(f"{benchmark.title} {systems[0].version}: P@1, mean of both directions")
        # an explicit list: axes of a row in which a system has no bar know nothing of it
        keys = [Patch(**_style(number), label=name) for number, name in enumerate(names)]
        figure.legend(handles=keys, loc="outside lower center", ncols=columns, frameon=False)
        save(figure, out)


def _style(number: int) -> dict[str, Any]:
    """Return colour of the system of this number, hatched where the colours start over."""
    hatch = "//" if number >= len(COLOURS) else None
    return {"facecolor": colour(number), "edgecolor": "white", "hatch": hatch}


def _bars(
    axes: Axes, systems: Sequence[Scores], languages: Sequence[str], places: int, group: float
) -> None:
    """Draw one row of languages, `places` wide and `group` inches each."""
    bar = BAR_WIDTH / group  # in units of one language
    for number, system in enumerate(systems):
        offset = (number - (len(systems) - 1) / 2) * bar
        bars = {
            at + offset: system.values[c] for at, c in enumerate(languages) if c in system.values
        }
        axes.bar(list(bars), list(bars.values()), width=bar, linewidth=0, **_style(number))
    # a language keeps its width: few stand in the middle, a short last row to the left
    middle = (places - 1) / 2
    half = max(places, LEAST_WIDTH / group) / 2
    axes.set_xlim(middle - half, middle + half)
    axes.set_ylim(0, 100)
    axes.set_ylabel("P@1 (%)")
    axes.set_xticks(range(len(languages)), languages)
    axes.tick_params(axis="x", length=0)
    dress(axes, grid="y")
