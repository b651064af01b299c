"""P@1 between every two languages of FLORES-200 as a map of colours: EMS v2 Table VII in full.

Notable choices:
- one system, the first of the tables: a map of 62 languages has 3,782 fields;
- the scale is always 0 to 100, so that two maps can be compared;
- languages are in the order of the tables, English last.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from ems.tables.canvas import make_figure, save, settings
from ems.tables.columns import direction, language_direction
from ems.tables.printed import in_table_one_order
from ems.tables.scores import Families, Scores, read_scores

FIELD = 0.16  # inches of one language
LEAST = 3.0  # inches of the map
MARGIN = 1.8  # inches for codes, titles and the scale


def plot_flores(scores: list[Path], out: Path, families: Families | None = None) -> None:
    """Draw P@1 (percent) of each direction of the first system, queries from top to bottom.

    Writes .svg and .png beside `out`. A direction that was not scored stays white. `families` are
    systems that share a map. Raises `EmsError` as the table does.
    """
    how = {"label": language_direction, "families": families}
    system = read_scores(scores, "flores200", "P@1", **how)[0]
    languages = in_table_one_order({code for name in system.values for code in name.split("-")})
    size = max(LEAST, FIELD * len(languages)) + MARGIN
    with settings():
        figure = make_figure(size, size - MARGIN / 3)
        axes = figure.subplots()
        drawn = axes.imshow(_grid(system, languages), vmin=0, vmax=100, cmap="viridis")
        figure.colorbar(drawn, ax=axes, label="P@1 (%)", shrink=0.6)
        figure.suptitle(f"FLORES-200 {system.version}: P@1 of {system.system}")
        _dress(axes, languages)
        save(figure, out)


def _grid(system: Scores, languages: list[str]) -> np.ndarray:
    """float[L, L], NaN where there is no score: queries are rows."""
    return np.array(
        [
            [system.values.get(direction(query, candidates), np.nan) for candidates in languages]
            for query in languages
        ]
    )


def _dress(axes: Axes, languages: list[str]) -> None:
    places = range(len(languages))
    axes.set_xticks(places, languages, rotation=90)
    axes.set_yticks(places, languages)
    axes.tick_params(length=0, labelsize=7)
    axes.set_xlabel("candidates")
    axes.set_ylabel("queries")
