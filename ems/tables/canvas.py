"""Shared parts of the figures: colours, settings, files, labels of points.

pyplot is not used, so no global state changes. The same numbers give the same bytes: no dates, no
versions, and a fixed salt for the ids of the SVG.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from ems.base.files import atomic_path

# Paul Tol's "bright" scheme, readable for colour-blind eyes; further systems start over.
COLOURS = ["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB"]
GRID, LINE = "#DDDDDD", "#888888"

# Labels of points; all in points (1/72 inch) of the drawn figure.
CENTRED = {"fontsize": 6.5, "ha": "center", "va": "center"}
# behind a label, so that a line to another label ends at its edge
WHITE = {"boxstyle": "square,pad=0", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
MARK = 2.0  # radius of a mark
AIR = 0.6  # around a label
REACH = np.array([1.0, 4.0, 8.0, 13.0, 19.0, 26.0, 34.0, 43.0])  # from the mark to the label
ANGLES = np.linspace(0, 2 * np.pi, 16, endpoint=False)  # places around the mark at each reach
LEADER = 4.0  # a label this far or farther gets a line
CROWD = 30.0  # a point nearer than this is a neighbour

_SETTINGS = {
    "svg.hashsalt": "ems",
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "text.parse_math": False,  # a system's name is text, dollars and all
}


@contextmanager
def drawing(out: Path, width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure of a size in inches, then write it to `out` as .svg and .png.

    The defaults of matplotlib and of this module apply, not the user's matplotlibrc.
    """
    with style.context("default"):
        mpl.rcParams.update(_SETTINGS)
        layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
        figure = Figure(figsize=(width, height), layout=layout)
        FigureCanvasAgg(figure)
        yield figure
        with atomic_path(out.with_suffix(".svg")) as path:
            figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        with atomic_path(out.with_suffix(".png")) as path:
            figure.savefig(path, format="png", dpi=150, metadata={"Software": None})


def settle(figure: Figure) -> None:
    """Give the axes their final size, so that labels can be placed in them."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def legend_columns(names: list[str], width: float) -> int:
    """Return the number of names that fit side by side in `width` inches."""
    widest = 0.6 + 0.08 * max(map(len, names))  # inches of a key and of a letter
    return max(1, min(len(names), int(width / widest)))


def dress(axes: Axes, grid: str = "both") -> None:
    """Draw a light grid behind the data and remove the box; `grid`: "x", "y" or "both"."""
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def number_logarithms(axis: Axis) -> None:
    """Label 1, 2 and 5 of each decade with plain numbers, not with powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def place_labels(axes: Axes, points: np.ndarray, labels: list[str]) -> None:
    """Write N `labels` next to `points` [N, 2] (in data units) with little overlap.

    The most crowded points are labelled first, and near places are preferred. A thin line leads
    from a far label to its point. Call `settle` before.
    """
    pixels = axes.get_figure(root=True).dpi / 72  # of a point
    centres = axes.transData.transform(points) / pixels  # [N, 2]
    frame = axes.get_window_extent().extents / pixels  # left, bottom, right, top
    taken = np.concatenate([centres - MARK, centres + MARK], axis=1)  # [N, 4]
    to_data = axes.transData.inverted()
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=-1)  # [N, N]
    crowded_first = np.argsort(-(distances < CROWD).sum(axis=1), kind="stable")
    far = np.repeat(REACH, len(ANGLES))  # [P] from the mark to each place
    around = np.tile(np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1), (len(REACH), 1))  # [P, 2]
    for number in map(int, crowded_first):
        text = axes.text(*points[number], labels[number], bbox=WHITE, **CENTRED)
        half = np.array(text.get_window_extent().size) / pixels / 2 + AIR  # [2]
        # an ellipse: a label is wider than high, and keeps the same distance on all sides
        middles = centres[number] + around * (half + MARK + far[:, None])  # [P, 2]
        boxes = np.concatenate([middles - half, middles + half], axis=1)  # [P, 4]
        best = int(np.argmin(_cost(boxes, taken, frame) + 0.3 * far))
        text.set_position(to_data.transform(middles[best] * pixels))
        if far[best] >= LEADER:
            end = np.clip(centres[number], *np.split(boxes[best], 2))  # the box's nearest
            line = np.array([points[number], to_data.transform(end * pixels)])
            axes.plot(*line.T, color=LINE, linewidth=0.4, zorder=1)
        taken = np.concatenate([taken, boxes[best : best + 1]])


def _cost(boxes: np.ndarray, taken: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Return [P]: the overlap of boxes [P, 4] with `taken` [M, 4] in square points, plus 20 times
    their length outside the frame [4].
    """
    each = boxes[:, None]  # [P, 1, 4]
    width = np.minimum(each[..., 2], taken[:, 2]) - np.maximum(each[..., 0], taken[:, 0])
    height = np.minimum(each[..., 3], taken[:, 3]) - np.maximum(each[..., 1], taken[:, 1])
    covered = (width.clip(0) * height.clip(0)).sum(axis=1)  # [P, M] -> [P]
    below, above = frame[:2] - boxes[:, :2], boxes[:, 2:] - frame[2:]
    return covered + 20 * np.concatenate([below, above], axis=1).clip(0).sum(axis=1)
