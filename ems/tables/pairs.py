"""P@1 against the amount of training data: EMS v2 Table IV over Table I, as a picture.

One panel per system, all with the same axes. A language's pairs are those that decontamination kept
in the training corpora; languages never trained on have no place on their logarithmic axis.
"""

from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, NullFormatter

from ems.base.errors import EmsError
from ems.config.plugins import benchmark, joining
from ems.tables.canvas import colour, dress, make_figure, save, settings, settle
from ems.tables.corpora import TRAIN, read_report
from ems.tables.labels import place_labels
from ems.tables.printed import in_paper_order
from ems.tables.scores import Families, Scores, read_scores

COLUMNS = 2  # panels side by side
WIDTH, HEIGHT = 6.4, 4.6  # inches of a panel
TICKS = [base * 10**power for power in range(10) for base in (1, 2, 5)]
ROOM = 1.3  # factor left free at both ends of the axis, at least


Points = dict[str, tuple[int, float]]  # the experiment's code -> training pairs, P@1 in percent


def plot_pairs(
    scores: list[Path], report: Path, out: Path, families: Families | None = None
) -> None:
    """Draw P@1 (percent, mean of both directions) of each language against its training pairs.

    `scores` are the systems' score files, `report` is decontamination.json, `families` are systems
    that share a panel. Writes .svg and .png beside `out`. Raises `EmsError` as `read_points` does.
    """
    name = joining("pairs")[0]
    systems = read_scores(scores, name, "P@1", families=families, seen=True)
    points = read_points(systems, report)
    if not any(pairs for shown in points.values() for pairs, _ in shown.values()):
        raise EmsError(f"{report}: no training pairs are kept of any language; see its corpora")
    with settings():
        save(_figure(points, f"{benchmark(name).title} {systems[0].version}"), out)


def read_points(systems: list[Scores], report: Path) -> dict[str, Points]:
    """Return system -> what it reached in each of its languages with how much data, in the paper's
    order.

    Raises `EmsError` as `read_report` does, and for a language that is not in the report.
    """
    pairs: dict[str, int] = {}  # language -> training pairs that have it on one side
    for entry in read_report(report).entries:
        for side in entry.sides if entry.role == TRAIN else ():
            pairs[side] = pairs.get(side, 0) + entry.kept
    absent = {s.languages[code] for s in systems for code in s.values} - set(pairs)
    if absent:
        raise EmsError(
            f"{report}: no training corpus of {', '.join(sorted(absent))}, which "
            f"{systems[0].file.path} scores as trained on; take the report and the scores of the "
            "same experiment"
        )
    return {
        system.system: {
            (language := system.languages[code]): (pairs[language], system.values[code])
            for code in in_paper_order(set(system.values))
        }
        for system in systems
    }


def _figure(systems: dict[str, Points], title: str) -> Figure:
    columns = min(COLUMNS, len(systems))
    rows = ceil(len(systems) / columns)
    figure = make_figure(WIDTH * columns, HEIGHT * rows + 0.5)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    # the points that the logarithmic axis can show
    shown = {n: {k: v for k, v in points.items() if v[0]} for n, points in systems.items()}
    places = {name: np.array(list(of.values()), float).reshape(-1, 2) for name, of in shown.items()}
    for number, (axes, name) in enumerate(zip(panels, systems, strict=False)):
        _scatter(axes, name, places[name], number)
    for axes in panels[len(systems) :]:
        axes.set_visible(False)
    panels[0].set_xlim(*_limits(np.concatenate(list(places.values()))[:, 0]))
    figure.suptitle(f"{title}: P@1, mean of both directions, against training data")
    without = dict.fromkeys(k for points in systems.values() for k, v in points.items() if not v[0])
    note = f" (without any, so not shown: {', '.join(without)})" if without else ""
    label = f"training pairs of the language, after decontamination{note}"
    figure.supxlabel(label, fontsize="medium")
    figure.supylabel("P@1 (%)", fontsize="medium")
    settle(figure)
    for axes, name in zip(panels, systems, strict=False):
        place_labels(axes, places[name], list(shown[name]))
    return figure


def _limits(pairs: np.ndarray) -> tuple[float, float]:
    """Return ends of the axis, a decade apart at least: three numbers stand at it then."""
    least, most = pairs.min(), pairs.max()
    room = max(ROOM, (10 * least / most) ** 0.5)
    return least / room, most * room


def _scatter(axes: Axes, name: str, places: np.ndarray, number: int) -> None:
    axes.scatter(*places.T, s=10, color=colour(number), linewidths=0, zorder=4, clip_on=False)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # "5k"; the default is mathematics
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, 100)
    axes.set_title(name)
    axes.tick_params(labelbottom=True, labelleft=True)
    dress(axes)
