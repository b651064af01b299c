"""Short labels beside the points of a scatter plot, placed so that they do not cover each other.

The points with the most neighbours choose first, each the place that covers least, near places
before far ones; a thin line leads from a label that stands far to its point. Places are in points
(1/72 inch) of the drawn figure, so its axes must have their final size and limits before.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text

from ems.tables.canvas import LINE

FONT = 6.5  # points
MARK = 2.0  # radius of a mark
AIR = 0.6  # around a label
REACH = np.array([1.0, 4.0, 8.0, 13.0, 19.0, 26.0, 34.0, 43.0])  # from the mark to the label
ANGLES = np.linspace(0, 2 * np.pi, 16, endpoint=False)  # places around the mark at each of these
LEADER = 4.0  # a label this far or farther gets a line
CROWD = 30.0  # a point nearer than this is a neighbour


@dataclass(frozen=True)
class _Places:
    """Where one label might stand: centres [P, 2], boxes [P, 4] (left, bottom, right, top), and
    how far from the mark [P]."""

    centres: np.ndarray
    boxes: np.ndarray
    far: np.ndarray


def place_labels(axes: Axes, points: np.ndarray, labels: list[str]) -> None:
    """Write `labels` beside `points` [N, 2] (in data units), N of each.

    The figure's layout must be settled (`canvas.settle`).
    """
    pixels = axes.get_figure(root=True).dpi / 72  # of a point
    centres = axes.transData.transform(points) / pixels  # [N, 2]
    frame = axes.get_window_extent().extents / pixels  # left, bottom, right, top
    taken = np.concatenate([centres - MARK, centres + MARK], axis=1)  # [N, 4]
    to_data = axes.transData.inverted()
    for number in _crowded_first(centres):
        text = _text(axes, points[number], labels[number])
        places = _places(centres[number], _size(text) / pixels)
        best = int(np.argmin(_cost(places, taken, frame)))
        text.set_position(to_data.transform(places.centres[best] * pixels))
        if places.far[best] >= LEADER:
            end = np.clip(centres[number], *np.split(places.boxes[best], 2))  # the box's nearest
            line = np.array([points[number], to_data.transform(end * pixels)])
            axes.plot(*line.T, color=LINE, linewidth=0.4, zorder=1)
        taken = np.concatenate([taken, places.boxes[best : best + 1]])


def _text(axes: Axes, at: np.ndarray, label: str) -> Text:
    """A label centred at a point [2], on white, so that a line to another ends at its edge."""
    white = {"boxstyle": "square,pad=0", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    return axes.text(*at, label, fontsize=FONT, ha="center", va="center", bbox=white)


def _size(text: Text) -> np.ndarray:
    """Width and height in pixels [2]."""
    return np.array(text.get_window_extent().size)


def _crowded_first(centres: np.ndarray) -> list[int]:
    """Numbers of the points, those with the most neighbours first, ties as given."""
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=-1)  # [N, N]
    neighbours = (distances < CROWD).sum(axis=1)
    return [int(number) for number in np.argsort(-neighbours, kind="stable")]


def _places(mark: np.ndarray, size: np.ndarray) -> _Places:
    """The places for a label of `size` [2] around the mark at `mark` [2], near ones first."""
    half = size / 2 + AIR
    far = np.repeat(REACH, len(ANGLES))  # [P]
    around = np.tile(np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1), (len(REACH), 1))  # [P, 2]
    # an ellipse around the mark: a label is wider than high, but may come as near from all sides
    centres = mark + around * (half + MARK + far[:, None])
    return _Places(centres, np.concatenate([centres - half, centres + half], axis=1), far)


def _cost(places: _Places, taken: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Of each place [P]: what it covers of `taken` [M, 4], in square points, what of it is outside
    of the frame, and a little for the distance."""
    boxes = places.boxes[:, None]  # [P, 1, 4]
    width = np.minimum(boxes[..., 2], taken[:, 2]) - np.maximum(boxes[..., 0], taken[:, 0])
    height = np.minimum(boxes[..., 3], taken[:, 3]) - np.maximum(boxes[..., 1], taken[:, 1])
    covered = (width.clip(0) * height.clip(0)).sum(axis=1)  # [P, M] -> [P]
    below, above = frame[:2] - places.boxes[:, :2], places.boxes[:, 2:] - frame[2:]
    outside = np.concatenate([below, above], axis=1).clip(0).sum(axis=1)  # [P, 4] -> [P]
    return covered + 20 * outside + 0.3 * places.far
