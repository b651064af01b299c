"""What each ablation costs: the difference of its mean P@1 on Tatoeba from the first system's.

The mean is over the languages trained on, as in EMS v2 Tables IV and XIV. Bars are 95 % intervals
of the paired bootstrap over sentences (`ems/bench/significance.py`): they do not cover what another
seed of the training would change.
"""

from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from ems.bench.significance import Change
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.scores import UNSEEN, ScoreFile
from ems.tables.canvas import colour, dress, make_figure, save, settings
from ems.tables.compare import compare
from ems.tables.scores import Families, read_scores

BENCHMARK = "tatoeba"
WIDTH, LINE = 6.0, 0.26  # inches, of the figure and of a system


def plot_deltas(
    scores: list[Path], order: list[str], out: Path, families: Families | None = None
) -> None:
    """Draw mean P@1 of each system of some tatoeba.json less that of the first of `order`.

    `families`: systems that count as one, each with languages of its own. A system without a
    language of the first one is left out. Writes .svg and .png beside `out`. Raises `EmsError` for
    scores of different data, and when there is nothing to compare.
    """
    systems = read_scores(scores, BENCHMARK, "P@1", order=order, seen=True)
    files = [_trained(system.file) for system in systems if not system.absent]
    base, *others = _together(files, families or {})
    alike = [other for other in others if other.labelled().keys() & base.labelled().keys()]
    if not alike:
        raise EmsError(
            f"{base.path}: no other system has a language of this one; leave the figure out, "
            "or score another one"
        )
    changes = {other.system: _change(base, other) for other in alike}
    with settings():
        save(_figure(base.system, changes, base.version), out)


def _together(files: list[ScoreFile], families: Families) -> list[ScoreFile]:
    """The score files, those of a family as one, where its first system stood."""
    family = {system: name for name, members in families.items() for system in members}
    merged: dict[str, ScoreFile] = {}
    for file in files:
        name = family.get(file.system, file.system)
        rows = merged[name].rows if name in merged else []
        merged[name] = replace(file, system=name, rows=[*rows, *file.rows])
    return list(merged.values())


def _trained(file: ScoreFile) -> ScoreFile:
    """The score file with the languages trained on."""
    unseen = {name for name, language in file.languages.items() if language == UNSEEN}
    rows = [row for row in file.rows if not {row.source, row.target} & unseen]
    return replace(file, rows=rows)


def _change(base: ScoreFile, other: ScoreFile) -> Change:
    row = compare(base, other).rows[-1]  # the mean
    if row.change is None:
        raise Damaged(other.path, "no hits of its sentences in it")
    return row.change


def _figure(base: str, changes: dict[str, Change], version: str) -> Figure:
    figure = make_figure(WIDTH, 1.4 + LINE * len(changes))
    axes = figure.subplots()
    for place, change in enumerate(changes.values()):
        sides = [[change.delta - change.low], [change.high - change.delta]]
        axes.errorbar(
            [change.delta], [place], xerr=sides, fmt="o", markersize=4, color=colour(0), capsize=2
        )
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.set_yticks(range(len(changes)), list(changes))
    axes.set_ylim(len(changes) - 0.5, -0.5)
    axes.set_xlabel(f"mean P@1 in points, less that of {base}")
    dress(axes, grid="x")
    figure.suptitle(f"Tatoeba {version}: what each change is worth")
    return figure
