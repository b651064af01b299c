"""Shared parts of the figures: files, legends, labels of points, names of languages on hover. The
look is in ems.mplstyle. The same numbers give the same bytes: no pyplot, whose state is global, no
dates, no versions, and a fixed salt for the ids of the SVG.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import Formatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from ems.base.files import atomic_path
from ems.config.languages import language_names

COLOURS = 7  # C0 to C6 of the style; further systems start over, with another mark or dash
MARKS, DASHES = "osD^v<", ["-", "--", ":", "-."]
LINE = "#888888"  # of lines that are no data
WITHOUT_DATES = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
HOVER = "hover: "  # an artist with this id and a text shows the text on hover in the SVG
MARK = 3.0  # points (1/72 inch) from the middle of a mark to a label
SIDES = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)]
ALIGNED = {"ha": {1: "left", 0: "center", -1: "right"}, "va": {1: "bottom", 0: "center", -1: "top"}}


@contextmanager
def drawing(out: Path, width: float, height: float) -> Iterator[Figure]:
    """Yield a figure (size in inches), then write it as .svg, .png and .pdf. It has the defaults of
    matplotlib and ems.mplstyle, not the user's matplotlibrc.
    """
    with style.context(["default", "ems.tables.ems"]):
        layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
        figure = Figure(figsize=(width, height), layout=layout)
        FigureCanvasAgg(figure)
        yield figure
        for kind, metadata in WITHOUT_DATES.items():
            with atomic_path(out.with_suffix(f".{kind}")) as path:
                figure.savefig(path, format=kind, metadata=metadata)
                if kind == "svg":
                    svg = path.read_text(encoding="utf-8")
                    svg = re.sub(f'<g id="{HOVER}([^"]*)">', r"<g><title>\1</title>", svg)
                    path.write_text(svg, encoding="utf-8")


def show_on_hover(artist: Artist, text: str) -> None:
    artist.set_gid(HOVER + text)


def name_languages(texts: Iterable[Text]) -> None:
    """Show the English name of each text that is a language code on hover."""
    for text in texts:
        if name := language_names().get(text.get_text()):
            show_on_hover(text, name)


def add_legend(figure: Figure, keys: Sequence[Artist], title: str = "") -> None:
    """List the keys below all panels, side by side as far as they fit."""
    width = 0.6 + 0.075 * max(len(str(key.get_label())) for key in keys)  # inches
    columns = max(1, min(len(keys), int(figure.get_figwidth() / width)))
    figure.legend(handles=keys, loc="outside lower center", ncols=columns, title=title or None)


def number_logarithms(axis: Axis, form: Formatter | str = "{x:g}") -> None:
    """Label 1, 2 and 5 of each decade with plain numbers, not with powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(form)
    axis.set_minor_formatter(NullFormatter())


def place_labels(
    axes: Axes, labels: Sequence[str], points: np.ndarray, others: np.ndarray
) -> list[str]:
    """Write `labels` next to `points` [N, 2] (data units) unless one would cover a point, one of
    `others` [M, 2] or an earlier label; return the labels written. The layout is final then.
    """
    figure = axes.get_figure(root=True)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    marks = axes.transData.transform(np.concatenate([points, others]))  # pixels
    reach = MARK * figure.dpi / 72
    taken = [Bbox([mark - reach, mark + reach]) for mark in marks]
    frame, written = axes.get_window_extent(), []
    for label, point in zip(labels, points, strict=True):
        for right, up in SIDES:
            place = {"ha": ALIGNED["ha"][right], "va": ALIGNED["va"][up], "fontsize": 7}
            offset = {"xytext": (MARK * right, MARK * up), "textcoords": "offset points"}
            text = axes.annotate(label, point, **offset, **place)
            box = text.get_window_extent()
            inside = frame.contains(*box.min) and frame.contains(*box.max)
            if inside and not any(map(box.shrunk(0.9, 0.8).overlaps, taken)):
                written.append(label)
                taken.append(box)
                break
            text.remove()
    name_languages(axes.texts)
    return written
