"""Tatoeba P@1 against the amount of training data: EMS v2 Table IV over Table I, as a picture.

Notable choices:
- one panel per system, all with the same axes: four systems' labels in one panel cover each other;
- a language's pairs are those that decontamination kept in the training corpora; their number is on
  a logarithmic axis, since it spans several orders of magnitude;
- languages never trained on have no place on that axis and are left out.
"""

from math import ceil
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, NullFormatter

from ems.errors import EmsError
from ems.tables.canvas import colour, dress, make_figure, save, settings
from ems.tables.corpora import TRAIN, Report, read_report
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

    `scores` are the systems' tatoeba.json, `report` is decontamination.json, `families` are systems
    that share a panel. Writes .svg and .png beside `out`. Raises `EmsError` as `read_points` does.
    """
    systems = read_scores(scores, "tatoeba", "P@1", families=families, seen=True)
    points = read_points(systems, report)
    if not any(pairs for shown in points.values() for pairs, _ in shown.values()):
        raise EmsError(f"{report}: no training pairs are kept of any language; see its corpora")
    with settings():
        save(_figure(points, f"Tatoeba {systems[0].version}"), out)


def read_points(systems: list[Scores], report: Path) -> dict[str, Points]:
    """System -> what it reached in each of its languages with how much data, in the paper's order.

    Raises `EmsError` as `read_report` does, and for a language that is not in the report.
    """
    pairs = _kept(read_report(report))
    absent = {code for system in systems for code in _languages(system).values()} - set(pairs)
    if absent:
        raise EmsError(
            f"{report}: no training corpus of {', '.join(sorted(absent))}, which "
            f"{systems[0].file.path} scores as trained on; take the report and the scores of the "
            "same experiment"
        )
    return {
        system.system: {
            language: (pairs[language], system.values[code])
            for code, language in _languages(system).items()
        }
        for system in systems
    }


def _languages(system: Scores) -> dict[str, str]:
    """Tatoeba code -> the experiment's code, of the languages that have a value."""
    return {code: system.languages[code] for code in in_paper_order(set(system.values))}


def _kept(report: Report) -> dict[str, int]:
    """Training pairs of each language: those that have it on one side."""
    pairs: dict[str, int] = {}
    for entry in report.entries:
        if entry.role == TRAIN:
            for side in entry.sides:
                pairs[side] = pairs.get(side, 0) + entry.kept
    return pairs


def _figure(systems: dict[str, Points], benchmark: str) -> Figure:
    columns = min(COLUMNS, len(systems))
    rows = ceil(len(systems) / columns)
    figure = make_figure(WIDTH * columns, HEIGHT * rows + 0.5)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for number, (axes, (name, points)) in enumerate(zip(panels, systems.items(), strict=False)):
        _scatter(axes, name, points, number)
    for axes in panels[len(systems) :]:
        axes.set_visible(False)
    panels[0].set_xlim(*_limits(systems))
    figure.suptitle(f"{benchmark}: P@1, mean of both directions, against training data")
    figure.supxlabel(_axis_label(systems), fontsize="medium")
    figure.supylabel("P@1 (%)", fontsize="medium")
    figure.draw_without_rendering()  # settles the size of the axes
    figure.set_layout_engine("none")
    for axes, points in zip(panels, systems.values(), strict=False):
        place_labels(axes, *_shown(points))
    return figure


def _limits(systems: dict[str, Points]) -> tuple[float, float]:
    """Ends of the axis, a decade apart at least: three numbers stand at it then."""
    pairs = [count for points in systems.values() for count, _ in points.values() if count]
    least, most = min(pairs), max(pairs)
    room = max(ROOM, (10 * least / most) ** 0.5)
    return least / room, most * room


def _axis_label(systems: dict[str, Points]) -> str:
    counts = {name: count for points in systems.values() for name, (count, _) in points.items()}
    without = [name for name, count in counts.items() if not count]
    note = f" (without any, so not shown: {', '.join(without)})" if without else ""
    return f"training pairs of the language, after decontamination{note}"


def _shown(points: Points) -> tuple[np.ndarray, list[str]]:
    """Points [N, 2] that the logarithmic axis can show, and the codes of their N languages."""
    shown = {name: point for name, point in points.items() if point[0]}
    return np.array(list(shown.values()), dtype=float).reshape(-1, 2), list(shown)


def _scatter(axes: Axes, name: str, points: Points, number: int) -> None:
    places, _ = _shown(points)
    axes.scatter(*places.T, s=10, color=colour(number), linewidths=0, zorder=4, clip_on=False)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(TICKS))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # "5k"; the default is mathematics
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, 100)
    axes.set_title(name)
    axes.tick_params(labelbottom=True, labelleft=True)
    dress(axes)
