"""What the figures share: colours, matplotlib's settings, a figure without pyplot, its two files.

Nothing global changes (no pyplot), and the same numbers give the same bytes: no dates, no versions,
a fixed salt for the ids of the SVG.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ems.base.files import atomic_path

# Paul Tol's "bright" scheme, readable for colour-blind eyes; further systems start over.
COLOURS = ["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB"]
GRID, LINE = "#DDDDDD", "#888888"

_SETTINGS = {
    "svg.hashsalt": "ems",
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "text.parse_math": False,  # a system's name is text, dollars and all
}


@contextmanager
def settings() -> Iterator[None]:
    """Use matplotlib's own defaults and ours, whatever the user's matplotlibrc says."""
    with style.context("default"):
        mpl.rcParams.update(_SETTINGS)
        yield


def make_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches that makes room for titles and legends."""
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, out: Path) -> None:
    """Write .svg and .png beside `out`, each atomically."""
    with atomic_path(out.with_suffix(".svg")) as path:
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    with atomic_path(out.with_suffix(".png")) as path:
        figure.savefig(path, format="png", dpi=150, metadata={"Software": None})


def settle(figure: Figure) -> None:
    """Give the axes their final size, so that labels can be placed in them."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def colour(number: int) -> str:
    """Return the colour of the system of this number."""
    return COLOURS[number % len(COLOURS)]


def legend_columns(names: list[str], width: float) -> int:
    """Return how many names stand side by side in `width` inches."""
    widest = 0.6 + 0.08 * max(map(len, names))  # inches of a key and of a letter
    return max(1, min(len(names), int(width / widest)))


def dress(axes: Axes, grid: str = "both") -> None:
    """Put a light grid behind the data and no box around it; `grid`: "x", "y" or "both"."""
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
