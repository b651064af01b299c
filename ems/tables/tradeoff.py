"""What quality costs: mean P@1 against minutes of training, a point per system.

The mean is over the languages trained on, as in EMS v2 Table IV; bars are its 95 % interval over
sentences, by the normal approximation. Systems that were not trained here have no point.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from ems.base.errors import EmsError
from ems.config.plugins import benchmark, joining
from ems.tables.canvas import colour, dress, make_figure, save, settings, settle
from ems.tables.labels import place_labels
from ems.tables.losses import last_time
from ems.tables.scores import Scores, read_scores

WIDTH, HEIGHT = 6.0, 4.2  # inches


def plot_tradeoff(scores: list[Path], times: Mapping[str, Path], out: Path) -> None:
    """Draw the systems of some score files against the minutes of `times`, system -> its
    costs/train/*.times.jsonl.

    Writes .svg and .png beside `out`. Raises `EmsError` for malformed files, and when no system has
    both.
    """
    name = joining("tradeoff")[0]
    systems = [s for s in read_scores(scores, name, "P@1", seen=True) if s.system in times]
    seconds = {s.system: last_time(times[s.system])[1] for s in systems}
    systems = [system for system in systems if seconds[system.system]]
    if not systems:
        listed = ", ".join(map(str, scores))
        raise EmsError(f"no system of {listed} was trained, so nothing has a price; train one")
    means = [float(np.mean(list(system.values.values()))) for system in systems]
    points = np.array([[seconds[s.system] / 60, m] for s, m in zip(systems, means, strict=True)])
    with settings():
        figure = make_figure(WIDTH, HEIGHT)
        axes = figure.subplots()
        for at, (point, system) in enumerate(zip(points, systems, strict=True)):
            look = {"fmt": "o", "markersize": 4, "color": colour(at), "linewidth": 1}
            axes.errorbar(*point, yerr=_half_width(system), **look)
        axes.set_xscale("log")  # a system that takes twice as long is judged alike everywhere
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(points[:, 0].min() / 1.5, points[:, 0].max() * 1.5)
        axes.set_xlabel("minutes of training")
        axes.set_ylabel("P@1 (%)")
        dress(axes)
        title = f"{benchmark(name).title} {systems[0].version}"
        figure.suptitle(f"{title}: mean P@1 against the cost of training")
        settle(figure)
        place_labels(axes, points, [system.system for system in systems])
        save(figure, out)


def _half_width(system: Scores) -> float:
    """Return half of the interval of the mean: each language is drawn apart, and its two
    directions, which agree on most sentences, count as one.
    """
    shares = {code: value / 100 for code, value in system.values.items()}
    variances = [share * (1 - share) / system.counts[code] for code, share in shares.items()]
    return 100 * 1.96 * float(np.sqrt(sum(variances))) / len(variances)
