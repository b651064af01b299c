"""What each ablation costs: the difference of its mean P@1 from the first system's.

The mean is over the languages trained on, as in EMS v2 Tables IV and XIV. Bars are 95 % intervals
of the paired bootstrap over sentences (`ems/bench/significance.py`): they do not cover what another
seed of the training would change.
"""

from pathlib import Path

from ems.base.errors import Damaged, EmsError
from ems.config.plugins import benchmark, joining
from ems.tables.canvas import LINE, colour, dress, make_figure, save, settings
from ems.tables.compare import compare
from ems.tables.scores import Families, read_scores

WIDTH, ROW = 6.0, 0.26  # inches, of the figure and of a system


def plot_deltas(
    scores: list[Path], order: list[str], out: Path, families: Families | None = None
) -> None:
    """Draw mean P@1 of each system less that of the first of `order`, on the first benchmark of the
    ablation.

    `families`: systems that count as one, each with languages of its own. A system without a
    language of the first one is left out. Writes .svg and .png beside `out`. Raises `EmsError` for
    scores of different data, and when there is nothing to compare.
    """
    name = joining("ablation")[0]
    systems = read_scores(scores, name, "P@1", order=order, families=families, seen=True)
    base, *others = (system.kept for system in systems if system.values)
    alike = [other for other in others if other.labelled().keys() & base.labelled().keys()]
    if not alike:
        raise EmsError(
            f"{base.path}: no other system has a language of this one; leave the figure out, "
            "or score another one"
        )
    with settings():
        figure = make_figure(WIDTH, 1.4 + ROW * len(alike))
        axes = figure.subplots()
        for place, other in enumerate(alike):
            change = compare(base, other).rows[-1].change  # of the mean
            if change is None:
                raise Damaged(other.path, "no hits of its sentences in it")
            sides = [[change.delta - change.low], [change.high - change.delta]]
            look = {"fmt": "o", "markersize": 4, "color": colour(0), "capsize": 2}
            axes.errorbar([change.delta], [place], xerr=sides, **look)
        axes.axvline(0, color=LINE, linewidth=0.8)
        axes.set_yticks(range(len(alike)), [other.system for other in alike])
        axes.set_ylim(len(alike) - 0.5, -0.5)
        axes.set_xlabel(f"mean P@1 in points, less that of {base.system}")
        dress(axes, grid="x")
        figure.suptitle(f"{benchmark(name).title} {base.version}: what each change is worth")
        save(figure, out)
