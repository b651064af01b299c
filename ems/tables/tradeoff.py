"""What quality costs: P@1 on Tatoeba against minutes of training, a point per system.

Notable choices:
- the mean over the languages trained on, as in EMS v2 Table IV; bars are its 95 % interval over
  sentences, by the normal approximation;
- minutes are logarithmic: a system that takes twice as long is to be judged alike everywhere;
- systems that nobody trained have no point: they cost nothing here and something elsewhere.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from ems.errors import EmsError
from ems.tables.canvas import colour, dress, make_figure, save, settings
from ems.tables.labels import place_labels
from ems.tables.losses import read_times
from ems.tables.scores import Scores, read_scores

WIDTH, HEIGHT = 6.0, 4.2  # inches


def plot_tradeoff(scores: list[Path], times: Mapping[str, Path], out: Path) -> None:
    """Draw the systems of some tatoeba.json against the minutes of `times`, system -> its
    costs/train/*.times.jsonl.

    Writes .svg and .png beside `out`. Raises `EmsError` for malformed files, and when no system has
    both.
    """
    systems = [s for s in read_scores(scores, "tatoeba", "P@1", seen=True) if s.system in times]
    minutes = {system.system: _minutes(times[system.system]) for system in systems}
    trained = [system for system in systems if minutes[system.system]]
    if not trained:
        listed = ", ".join(map(str, scores))
        raise EmsError(f"no system of {listed} was trained, so nothing has a price; train one")
    with settings():
        save(_figure(trained, minutes), out)


def _minutes(path: Path) -> float:
    """Wall minutes of a training, all of its runs together."""
    return max(read_times(path).items())[1] / 60


def _figure(systems: list[Scores], minutes: Mapping[str, float]) -> Figure:
    figure = make_figure(WIDTH, HEIGHT)
    axes = figure.subplots()
    means = [float(np.mean(list(system.values.values()))) for system in systems]
    points = np.array([[minutes[s.system], m] for s, m in zip(systems, means, strict=True)])
    for number, (point, system) in enumerate(zip(points, systems, strict=True)):
        error = _half_width(system)
        axes.errorbar(*point, yerr=error, fmt="o", markersize=4, color=colour(number), linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(points[:, 0].min() / 1.5, points[:, 0].max() * 1.5)
    axes.set_xlabel("minutes of training")
    axes.set_ylabel("P@1 (%)")
    dress(axes)
    figure.suptitle(f"Tatoeba {systems[0].version}: mean P@1 against the cost of training")
    figure.draw_without_rendering()  # settles the size of the axes
    figure.set_layout_engine("none")
    place_labels(axes, points, [system.system for system in systems])
    return figure


def _half_width(system: Scores) -> float:
    """Half of the interval of the mean: each language is drawn apart, and its two directions, which
    agree on most sentences, count as one.
    """
    variances = [
        (value / 100) * (1 - value / 100) / system.counts[code]
        for code, value in system.values.items()
    ]
    return 100 * 1.96 * float(np.sqrt(sum(variances))) / len(variances)
