"""What each ablation costs: the difference of its mean P@1 on Tatoeba from the first system's.

Notable choices:
- the mean over the languages trained on, as in EMS v2 Tables IV and XIV;
- bars are 95 % intervals of the paired bootstrap over sentences (`ems/bench/significance.py`): one
  that does not reach 0 is no chance of the benchmark's sentences. What another seed would change,
  they do not say.
"""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ems.bench.significance import Change
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import read_json
from ems.shapes import TEXT, record
from ems.tables.canvas import colour, dress, make_figure, save, settings
from ems.tables.compare import compare
from ems.tables.scores import UNSEEN, Families, in_order, read_scores, scores_shape

Content = tuple[Path, Any]  # a score file and what it says
BENCHMARK = "tatoeba"
SCORES = scores_shape(BENCHMARK, "P@1", record({"language": TEXT}))
WIDTH, LINE = 6.0, 0.26  # inches, of the figure and of a system


def plot_deltas(
    scores: list[Path], order: list[str], out: Path, families: Families | None = None
) -> None:
    """Draw mean P@1 of each system of some tatoeba.json less that of the first of `order`.

    `families`: systems that count as one, each with languages of its own. A system without a
    language of the first one is left out. Writes .svg and .png beside `out`. Raises `EmsError` for
    scores of different data, and when there is nothing to compare.
    """
    systems = in_order(read_scores(scores, BENCHMARK), order)
    base, *others = _together([(s.path, _seen(s.path)) for s in systems], families or {})
    alike = [other for other in others if set(other[1]["directions"]) & set(base[1]["directions"])]
    if not alike:
        raise EmsError(
            f"{systems[0].path}: no other system has a language of this one; leave the figure out, "
            "or score another one"
        )
    changes = {content["system"]: _change(base, (path, content)) for path, content in alike}
    with settings():
        save(_figure(base[1]["system"], changes, systems[0].version), out)


def _together(found: list[Content], families: Families) -> list[Content]:
    """The score files, those of a family as one, where its first system stood."""
    of = {system: name for name, members in families.items() for system in members}
    merged: dict[str, Content] = {}
    for path, content in found:
        name = of.get(content["system"], content["system"])
        _, before = merged.get(name, (path, {"directions": {}}))
        directions = {**before["directions"], **content["directions"]}
        merged[name] = (path, {**content, "system": name, "directions": directions})
    return list(merged.values())


def _seen(path: Path) -> Any:
    """The score file with the languages trained on."""
    content = read_json(path, SCORES)
    directions = content["directions"]
    kept = {code: of for code, of in directions.items() if of["language"] != UNSEEN}
    return {**content, "directions": kept}


def _change(base: tuple[Path, Any], other: tuple[Path, Any]) -> Change:
    row = compare(BENCHMARK, base, other).rows[-1]  # the mean
    if row.change is None:
        raise Damaged(other[0], "no hits of its sentences in it")
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
