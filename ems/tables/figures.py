"""Tatoeba P@1 per language as bars, one colour per system: EMS v2 Table IV at a glance.

Notable choices:
- the languages that were trained on only, as in the table;
- the figure grows with the number of bars, up to `MOST_WIDTH`, then goes on in a row below.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ems.tables.canvas import COLOURS, colour, dress, legend_columns, make_figure, save, settings
from ems.tables.printed import in_paper_order
from ems.tables.scores import Families, Scores, read_scores

BAR_WIDTH = 0.11  # inches
GROUP_GAP = 0.18  # inches between two languages
MOST_WIDTH = 16.0  # inches of bars in one row of axes
LEAST_WIDTH = 4.2  # the same, at least; few bars stand in the middle
MARGIN = 0.8  # inches for the vertical axis
ROW_HEIGHT = 2.6  # inches


def plot_tatoeba(scores: list[Path], out: Path, families: Families | None = None) -> None:
    """Draw P@1 (percent, mean of both directions) of each system in each language.

    Writes .svg and .png beside `out`; languages stand in the paper's order, systems in that of
    `scores`, the `families` of them as one. A language that a system lacks has no bar. Raises
    `EmsError` as the table does.
    """
    systems = read_scores(scores, "tatoeba", "P@1", families=families, seen=True)
    with settings():
        save(_figure(systems), out)


def _figure(systems: list[Scores]) -> Figure:
    languages = in_paper_order({code for system in systems for code in system.values})
    rows = _rows(languages, len(systems))
    names = [system.system for system in systems]
    width, height = _size(rows, names)
    figure = make_figure(width, height)
    for axes, row in zip(figure.subplots(len(rows), squeeze=False)[:, 0], rows, strict=True):
        _bars(axes, systems, row, len(rows[0]))
    figure.suptitle(f"Tatoeba {systems[0].version}: P@1, mean of both directions")
    _legend(figure, names, legend_columns(names, width))
    return figure


def _legend(figure: Figure, names: list[str], columns: int) -> None:
    """One legend below all axes."""
    # an explicit list: axes of a row in which a system has no bar know nothing of it
    keys = [Patch(**_style(number), label=name) for number, name in enumerate(names)]
    figure.legend(handles=keys, loc="outside lower center", ncols=columns, frameon=False)


def _style(number: int) -> dict[str, Any]:
    """Colour of the system of this number, hatched where the colours start over."""
    hatch = "//" if number >= len(COLOURS) else None
    return {"facecolor": colour(number), "edgecolor": "white", "hatch": hatch}


def _group_width(systems: int) -> float:
    return systems * BAR_WIDTH + GROUP_GAP  # inches of one language


def _rows(languages: list[str], systems: int) -> list[list[str]]:
    """Languages in rows of like length, each at most `MOST_WIDTH` wide."""
    most = max(1, int(MOST_WIDTH / _group_width(systems)))
    count = -(-len(languages) // most)
    size = -(-len(languages) // count)
    return [languages[start : start + size] for start in range(0, len(languages), size)]


def _size(rows: list[list[str]], names: list[str]) -> tuple[float, float]:
    """Width and height of the figure in inches, with room for title, labels and legend."""
    width = MARGIN + max(LEAST_WIDTH, len(rows[0]) * _group_width(len(names)))
    legend = -(-len(names) // legend_columns(names, width)) * 0.2
    return width, ROW_HEIGHT * len(rows) + 0.8 + legend


def _bars(axes: Axes, systems: list[Scores], languages: list[str], places: int) -> None:
    bar = BAR_WIDTH / _group_width(len(systems))  # in units of one language
    for number, system in enumerate(systems):
        offset = (number - (len(systems) - 1) / 2) * bar
        known = [place for place, code in enumerate(languages) if code in system.values]
        axes.bar(
            [place + offset for place in known],
            [system.values[languages[place]] for place in known],
            width=bar,
            linewidth=0,
            **_style(number),
        )
    # a language keeps its width: few stand in the middle, a short last row to the left
    middle = (places - 1) / 2
    half = max(places, LEAST_WIDTH / _group_width(len(systems))) / 2
    axes.set_xlim(middle - half, middle + half)
    _dress(axes, languages)


def _dress(axes: Axes, languages: list[str]) -> None:
    axes.set_ylim(0, 100)
    axes.set_ylabel("P@1 (%)")
    axes.set_xticks(range(len(languages)), languages)
    axes.tick_params(axis="x", length=0)
    dress(axes, grid="y")
