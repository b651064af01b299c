"""Lines over the rows of a study: how scores change with one setting."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ems.tables.canvas import colour, dress, legend_columns, make_figure, save, settings

WIDTH, HEIGHT = 6.0, 4.0  # inches
MARKS = "osD^vPX"
STYLES = ["-", "--", ":", "-."]


def plot_lines(
    labels: Sequence[str],
    lines: Mapping[str, Sequence[float | None]],
    heading: str,
    title: str,
    out: Path,
) -> None:
    """Draw a line for each entry of `lines`, "Tatoeba en->fr" -> a percentage for each label.

    Lines of one benchmark (the words before the last) have one style. `heading` stands below the
    labels. A missing value is a gap. Writes .svg and .png beside `out`.
    """
    names = list(lines)
    benchmarks = list(dict.fromkeys(name.rpartition(" ")[0] for name in names))
    with settings():
        figure = make_figure(WIDTH, HEIGHT)
        axes = figure.subplots()
        for at, (name, values) in enumerate(lines.items()):
            kind = benchmarks.index(name.rpartition(" ")[0])
            shown = [float("nan") if value is None else value for value in values]
            look = {"linestyle": STYLES[kind % len(STYLES)], "marker": MARKS[at % len(MARKS)]}
            axes.plot(range(len(labels)), shown, color=colour(at), markersize=4, label=name, **look)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlabel(heading)
        axes.set_ylabel("percent")
        dress(axes)
        figure.suptitle(title)
        columns = legend_columns(names, WIDTH)
        figure.legend(loc="outside lower center", ncols=columns, frameon=False)
        save(figure, out)
