"""Figures of training: learning curves, and validation P@1 of each language. At equal pairs systems
have seen the same text, at equal minutes they have cost the same.
"""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, StrMethodFormatter

from ems.base.errors import Damaged, mistake
from ems.tables import canvas
from ems.tables.logs import P1, PARTS, TRAIN, VALIDATION, LossEntry, Times, read_losses, read_times
from ems.tables.printed import in_table_one_order
from ems.tables.table import rounded

LABELS = {P1: "validation P@1 (%)", **{name: f"{text} loss" for name, text in PARTS.items()}}
WIDTH = 9.0  # inches
TALL, LOW = 3.0, 2.4  # inches of the panel of P@1 and of one part of the loss
THIN = {"linewidth": 0.8, "alpha": 0.5}
MARKED = {"marker": "o", "markersize": 3.0}
MOST_PANELS, MOST_ACROSS = 28, 7  # of languages, in all and side by side
PANEL = (1.5, 1.3)  # inches of a language
LEAST_WIDTH = 6.0  # inches; few panels are wider instead


def plot_curves(losses: Mapping[str, Path], times: Times | None, out: Path) -> None:
    """Draw learning curves against the pairs seen or, with `times`, the minutes of training.
    `losses`: system -> losses.jsonl; `times`: system -> its *.times.jsonl. Raises `EmsError` for a
    malformed row, a step without a time, and if no system was trained.
    """
    axis = "sentence pairs seen" if times is None else "minutes of training"
    curves: dict[str, list[tuple[float, LossEntry]]] = {}  # system -> place on the axis, row
    for system, path in losses.items():
        entries = read_losses(path)
        places: list[float] = [entry.pairs for entry in entries]
        if times is not None:
            if system not in times:
                raise mistake("no times of a system", path=path, system=system)
            seconds = read_times(times[system])
            if absent := [entry.step for entry in entries if entry.step not in seconds]:
                raise Damaged(times[system], f"no time of step {absent[0]}, which {path} has")
            places = [seconds[entry.step] / 60 for entry in entries]
        curves[system] = list(zip(places, entries, strict=True))
    # a system keeps its number, and so its colour, if another has no curve
    numbered = enumerate(curves.items())
    numbers = {name: at for at, (name, rows) in numbered if any(entry.step for _, entry in rows)}
    if not numbers:
        raise mistake("no curve", listed=", ".join(map(str, losses.values())) or "no file")
    # P@1, then the parts of the loss in the order in which they first appear
    values = dict.fromkeys(n for name in numbers for _, entry in curves[name] for n in entry.values)
    panels = sorted(values, key=lambda name: name != P1)
    heights = [TALL if panel == P1 else LOW for panel in panels]
    with canvas.drawing(out, WIDTH, sum(heights) + 0.8) as figure:
        rows = figure.subplots(len(panels), sharex=True, squeeze=False, height_ratios=heights)
        for axes, panel in zip(rows[:, 0], panels, strict=True):
            for name, number in numbers.items():
                for part, look in ((TRAIN, THIN), (VALIDATION, MARKED)):
                    rows_of = [row for row in curves[name] if row[1].part == part]
                    points = [(at, row.values[panel]) for at, row in rows_of if panel in row.values]
                    if points:
                        axes.plot(*zip(*points, strict=True), **line_style(number), **look)
            axes.set_ylabel(LABELS.get(panel, panel))
            if panel == P1:
                axes.set_ylim(bottom=0)
            else:
                axes.set_yscale("log")
                canvas.number_logarithms(axes.yaxis)
        rows[-1, 0].set_xlabel(axis)
        rows[-1, 0].xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        figure.suptitle(f"Learning curves against {axis}")
        keys = _keys(numbers)
        if any(panel != P1 for panel in panels):
            keys.append(Line2D([], [], color="black", label="training", **THIN))
            keys.append(Line2D([], [], color="black", label="validation", **MARKED))
        canvas.add_legend(figure, keys)


def line_style(number: int) -> dict[str, str]:
    """Return the colour and dashes of a system by its number."""
    dashes = canvas.DASHES[number // canvas.COLOURS % len(canvas.DASHES)]
    return {"color": f"C{number}", "linestyle": dashes}


def _keys(numbers: Mapping[str, int]) -> list[Line2D]:
    return [Line2D([], [], label=name, **line_style(number)) for name, number in numbers.items()]


def plot_languages(losses: Mapping[str, Path], out: Path) -> None:
    """Draw validation P@1 per language (percent, mean of both directions) against the pairs seen,
    of many languages the hardest: with the lowest last value of the best system. Raises `EmsError`
    for a malformed losses.jsonl and for one without P@1 per language.
    """
    curves = {}
    for system, path in losses.items():
        curves[system] = [entry for entry in read_losses(path) if entry.p1_by_language]
        if not curves[system]:
            raise mistake("no P@1 of languages", path=path)
    lines: dict[str, dict[int, list[tuple[int, float]]]] = {}  # language -> system's number -> line
    for number, rows in enumerate(curves.values()):
        for row in rows:
            for code, value in row.p1_by_language.items():
                lines.setdefault(code, {}).setdefault(number, []).append((row.pairs, value))
    ends = {code: {number: own[number][-1][1] for number in own} for code, own in lines.items()}
    hardest = sorted(sorted(lines), key=lambda code: max(ends[code].values()))[:MOST_PANELS]
    codes = in_table_one_order(hardest)
    columns = min(MOST_ACROSS, len(codes))
    rows, width = -(-len(codes) // columns), max(LEAST_WIDTH, columns * PANEL[0])
    with canvas.drawing(out, width, rows * PANEL[1] + 1.3) as figure:
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
        for axes, code in zip(panels, codes, strict=False):
            for number, points in lines[code].items():
                axes.plot(*zip(*points, strict=True), **line_style(number))
            best = max(ends[code], key=lambda number: ends[code][number])
            look = {"fontsize": 8, "pad": 2}
            canvas.name_languages([axes.set_title(code, loc="left", **look)])
            axes.set_title(rounded(ends[code][best]), loc="right", color=f"C{best}", **look)
            axes.tick_params(labelsize=7)
        for axes in panels[len(codes) :]:
            axes.set_visible(False)
        for axes in panels[len(codes) - columns : len(codes)]:
            axes.tick_params(labelbottom=True)  # the lowest of its column
        panels[0].set_ylim(0, 100)  # all panels share its axes
        panels[0].yaxis.set_major_locator(FixedLocator((0, 50, 100)))
        panels[0].set_xlim(left=0)
        panels[0].xaxis.set_major_locator(MaxNLocator(2, steps=(1, 2, 5, 10)))
        panels[0].xaxis.set_major_formatter(EngFormatter(sep=""))
        some = f"the {len(codes)} hardest of {len(lines)} languages"
        chosen = some if len(codes) < len(lines) else "each language"
        figure.suptitle(f"Validation P@1 (%) of {chosen} against sentence pairs seen")
        note = "Number above a panel: P@1 at the end of training of the best system, in its colour"
        canvas.add_legend(figure, _keys({name: number for number, name in enumerate(curves)}), note)
