"""Figures of scores: by language, by direction, against training data and minutes, lines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter

from ems.base.errors import EmsError, mistake
from ems.config.languages import family_of, language_families, language_names
from ems.config.plugins import Benchmark, benchmark, joining
from ems.tables import canvas
from ems.tables.corpora import TRAIN, read_report
from ems.tables.engine import span
from ems.tables.logs import Times, last_time
from ems.tables.printed import in_given_order, in_table_one_order
from ems.tables.scores import Families, Scores, read_scores
from ems.tables.table import headings_of

# inches
STRIP_ROW = 0.2  # of a language
CORPUS_ROW = 0.32
NUMBERED, COLOURED = 0.42, 0.16  # a language in a map, with numbers and without
MAP_MARGIN = 1.8  # for codes, titles and the scale

MOST_NUMBERED = 15  # languages in a map with numbers; more are grouped by family
STEP = 2  # the ends of a map's scale are multiples, in percent
SAME = 2.0  # numbers of pairs that differ by less than this factor are alike
MOST_LABELS = 12  # languages with a label, where each is a point
HATCHES = ("", "////", "xxxx", "\\\\\\\\")  # of reasons beyond the colours
BETTER = "P@1 (%), higher is better"

Points = dict[str, tuple[int, float]]  # the experiment's code -> training pairs, P@1 in percent


def plot_strip(
    systems: Mapping[str, Mapping[str, float]], title: str, out: Path, note: str = ""
) -> None:
    """Draw a row per language, the best on top; `systems`: name -> language -> P@1 in percent."""
    import pandas as pd  # imported late: it takes a second

    values = pd.DataFrame(systems)  # languages x systems
    values = values.loc[values.max(axis=1).sort_values(kind="stable").index]
    places = range(len(values))
    with canvas.drawing(out, 7.0, STRIP_ROW * len(values) + 1.8) as figure:
        axes = figure.subplots()
        keys = []
        for number, name in enumerate(values):
            look = {"label": name, "clip_on": False, **_look(number)}
            keys += axes.plot(values[name], places, **look)
        axes.set_yticks(places, [f"{language_names().get(c, '')}  {c}" for c in values.index])
        axes.set_ylim(-0.6, len(values) - 0.4)
        axes.set_xlim(0, 100)
        axes.set_xlabel(BETTER + note)
        figure.suptitle(title)
        canvas.add_legend(figure, keys)


def _look(number: int) -> dict[str, Any]:
    """Return the colour and mark of a system by its number."""
    mark = canvas.MARKS[number % len(canvas.MARKS)]
    return {"color": f"C{number}", "marker": mark, "linestyle": "", "markeredgewidth": 0}


def plot_directions(system: Scores, benchmark: Benchmark, out: Path) -> None:
    """Draw P@1 (percent) of each direction of a system; queries are rows, a missing score is blank.
    Few languages have numbers, many are grouped by family. The scale spans the scores.
    """
    codes = in_table_one_order({code for name in system.values for code in name.split("-")})
    numbered = len(codes) <= MOST_NUMBERED
    if not numbered:
        codes = in_given_order(set(codes), list(language_families()))
    grid = np.array([[system.values.get(f"{q}-{c}", np.nan) for c in codes] for q in codes])
    low = floor(np.nanmin(grid) / STEP) * STEP
    high = max(ceil(np.nanmax(grid) / STEP) * STEP, low + STEP)
    size = (NUMBERED if numbered else COLOURED) * max(6, len(codes)) + MAP_MARGIN
    with canvas.drawing(out, size + (0 if numbered else 1), size - MAP_MARGIN / 3) as figure:
        axes = figure.subplots()
        image = axes.imshow(grid, vmin=low, vmax=high)  # [L, L]
        figure.suptitle(f"{benchmark.title} {system.version}: P@1 of {system.system}")
        axes.set_xticks(range(len(codes)), codes, rotation=0 if numbered else 90)
        axes.set_yticks(range(len(codes)), codes)
        axes.tick_params(labelsize="medium" if numbered else 7)
        axes.set(xlabel="language of the candidates", ylabel="language of the queries")
        axes.grid(False)
        axes.set_facecolor("#EEEEEE")  # of blank cells
        axes.spines[:].set_visible(False)
        canvas.name_languages([*axes.get_xticklabels(), *axes.get_yticklabels()])
        if numbered:
            for query, candidate in np.argwhere(~np.isnan(grid)):
                value = grid[query, candidate]
                light = np.dot(image.to_rgba(value)[:3], (0.299, 0.587, 0.114)) > 0.5
                look = {"ha": "center", "va": "center", "color": "black" if light else "white"}
                axes.text(candidate, query, f"{value:.0f}", **look)
        else:
            _mark_families(axes, codes)
        scale = f"{BETTER}; colours span {low} to {high}"
        figure.colorbar(image, ax=axes, label=scale, shrink=0.7).outline.set_visible(False)


def _mark_families(axes: Axes, codes: Sequence[str]) -> None:
    """Separate the families of a map's languages by lines, and name them on the right."""
    start = 0
    for family, members in groupby(codes, family_of):
        end = start + len(list(members))
        if start:
            axes.axhline(start - 0.5, color="white", linewidth=1.2)
            axes.axvline(start - 0.5, color="white", linewidth=1.2)
        place = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 7}
        axes.text(1.01, (start + end - 1) / 2, family, **place)
        start = end


def plot_pairs(
    scores: list[Path], report: Path, out: Path, families: Families | None = None
) -> None:
    """Draw P@1 (percent, mean of both directions) of languages against their training pairs, or, if
    all have about as many, a row per language. Raises `EmsError` like `read_points`.
    """
    name = joining("pairs")[0]
    systems = read_scores(scores, name, "P@1", families=families, seen=True)
    points = read_points(systems, report)
    # the points that a logarithmic axis can show
    shown = {n: {k: v for k, v in each.items() if v[0]} for n, each in points.items()}
    counts = [pairs for each in shown.values() for pairs, _ in each.values()]
    if not counts:
        raise EmsError(f"{report}: no training pairs are kept of any language; see its corpora")
    without = dict.fromkeys(k for each in points.values() for k, v in each.items() if not v[0])
    note = f"\nnot shown, since they have no pairs: {', '.join(without)}" if without else ""
    title = f"{benchmark(name).title} {systems[0].version}: P@1"
    if max(counts) >= SAME * min(counts):
        _plot_cloud(shown, f"{title} against training data, one point per language", note, out)
        return
    note = f"\ntraining pairs of each language: {span(counts)}{note}"
    values = {n: {code: value for code, (_, value) in each.items()} for n, each in shown.items()}
    plot_strip(values, f"{title} of languages with about as many training pairs", out, note)


def _plot_cloud(shown: Mapping[str, Points], title: str, note: str, out: Path) -> None:
    """Draw all systems in one panel, each with its trend, and label outliers of the first one."""
    places = {name: np.array([*points.values()], float) for name, points in shown.items() if points}
    first, *others = places
    with canvas.drawing(out, 7.5, 5.2) as figure:
        axes = figure.subplots()
        lines = {}
        for number, (name, points) in enumerate(places.items()):
            for code, point in zip(shown[name], points, strict=True):
                (mark,) = axes.plot(*point, alpha=0.8, clip_on=False, **_look(number))
                language = language_names().get(code, code)
                canvas.show_on_hover(mark, f"{language}, {name}: {point[1]:.1f}")
            degree = min(1, len(set(points[:, 0])) - 1)
            lines[name] = np.poly1d(np.polyfit(np.log(points[:, 0]), points[:, 1], degree))
            ends = np.array([points[:, 0].min(), points[:, 0].max()])
            axes.plot(ends, lines[name](np.log(ends)), color=f"C{number}", linewidth=0.8)
        axes.set_xscale("log")
        canvas.number_logarithms(axes.xaxis, EngFormatter(sep=""))  # "5k"
        axes.set_ylim(0, 100)
        axes.set_ylabel(BETTER)
        key = f"lines: the trend of each system; names: languages far from the trend of {first}"
        axes.set_xlabel(f"training pairs of the language, after decontamination\n{key}{note}")
        figure.suptitle(title)
        keys = [Line2D([], [], label=name, **_look(at)) for at, name in enumerate(places)]
        canvas.add_legend(figure, keys)
        away = np.abs(places[first][:, 1] - lines[first](np.log(places[first][:, 0])))
        order = np.argsort(-away, kind="stable")
        labels, points = np.array([*shown[first]])[order], places[first][order]
        rest = np.concatenate([points[MOST_LABELS:], *(places[name] for name in others)])
        canvas.place_labels(axes, labels[:MOST_LABELS], points[:MOST_LABELS], rest)


def read_points(systems: list[Scores], report: Path) -> dict[str, Points]:
    """Return system -> language -> (pairs, P@1). Raises `EmsError` for a language without pairs."""
    pairs: dict[str, int] = {}  # language -> training pairs that have it on one side
    for entry in read_report(report).entries:
        for side in entry.sides if entry.role == TRAIN else ():
            pairs[side] = pairs.get(side, 0) + entry.kept
    scored = {system.languages[label] for system in systems for label in system.values}
    if absent := sorted(scored - set(pairs)):
        raise mistake("no corpus of a language", report=report, absent=absent, this=systems[0])
    points: dict[str, Points] = {}
    for system in systems:
        values = {system.languages[label]: value for label, value in system.values.items()}
        points[system.system] = {code: (pairs[code], value) for code, value in values.items()}
    return points


def plot_tradeoff(scores: list[Path], times: Times, out: Path) -> None:
    """Draw mean P@1 over the languages trained on, with its 95 % interval, against minutes.
    `times`: system -> its *.times.jsonl. Raises `EmsError` if no system has both.
    """
    name = joining("tradeoff")[0]
    systems = [s for s in read_scores(scores, name, "P@1", seen=True) if s.system in times]
    seconds = {s.system: last_time(times[s.system])[1] for s in systems}
    systems = [system for system in systems if seconds[system.system]]
    if not systems:
        raise mistake("no costs", scores=list(map(str, scores)))
    with canvas.drawing(out, 6.0, 4.2) as figure:
        axes = figure.subplots()
        keys = []
        for number, system in enumerate(systems):
            minutes, mean = seconds[system.system] / 60, system.sample(system.values)
            look = {"linewidth": 1, "label": system.system, **_look(number)}
            keys.append(axes.errorbar(minutes, mean.value, yerr=mean.half or 0.0, **look))
        axes.set_xscale("log")  # twice the minutes are the same distance everywhere
        canvas.number_logarithms(axes.xaxis)
        costs = [seconds[system.system] / 60 for system in systems]
        axes.set_xlim(min(costs) / 1.5, max(costs) * 1.5)
        axes.set_xlabel("minutes of training, fewer are better")
        axes.set_ylabel(f"mean {BETTER}")
        title = f"{benchmark(name).title} {systems[0].version}"
        figure.suptitle(f"{title}: quality against the cost of training")
        canvas.add_legend(figure, keys)


def plot_lines(
    labels: list[str], lines: Mapping[str, list[float | None]], heading: str, title: str, out: Path
) -> None:
    """Draw a line for each entry of `lines`: "Tatoeba en->fr" -> a percentage per label; None is a
    gap. Lines of one benchmark (the words before the last) share a style.
    """
    benchmarks = list(dict.fromkeys(name.rpartition(" ")[0] for name in lines))
    with canvas.drawing(out, 6.0, 4.0) as figure:
        axes = figure.subplots()
        keys = []
        for at, (name, values) in enumerate(lines.items()):
            kind = benchmarks.index(name.rpartition(" ")[0])
            shown = [float("nan") if value is None else value for value in values]
            look = _look(at) | {"linestyle": canvas.DASHES[kind % len(canvas.DASHES)]}
            keys += axes.plot(range(len(labels)), shown, label=name, **look)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlabel(heading)
        axes.set_ylabel("percent")
        figure.suptitle(title)
        canvas.add_legend(figure, keys)


def plot_cleaning(report: Path, out: Path) -> None:
    """Draw a row per corpus: pairs kept, pairs removed by reason, sides changed by repair (if any),
    in percent of the pairs, or sides, read.
    """
    corpora, roles, rows = zip(*read_report(report).by_corpus(), strict=True)
    names = [f"{c}, {role}" if role != TRAIN else c for c, role in zip(corpora, roles, strict=True)]
    read = np.array([max(sum(entry.read for entry in row), 1) for row in rows])
    kept = np.array([sum(entry.kept for entry in row) for row in rows]) / read * 100
    removed = _shares([[entry.removed for entry in row] for row in rows], read)
    changed = _shares([[entry.changed for entry in row] for row in rows], 2 * read)
    panels = {"kept (%)": {"": kept}, "removed (%)": removed, "sides changed (%)": changed}
    panels = {title: shares for title, shares in panels.items() if shares}
    with canvas.drawing(out, 3.2 * len(panels) + 1, CORPUS_ROW * len(names) + 2) as figure:
        panes, keys = np.atleast_1d(figure.subplots(1, len(panels), sharey=True)), []
        for axes, (title, shares) in zip(panes, panels.items(), strict=True):
            left = np.zeros(len(names))
            for number, (label, share) in enumerate(shares.items(), start=len(keys)):
                colour = f"C{number % canvas.COLOURS}" if label else "#BBBBBB"
                hatch = HATCHES[number // canvas.COLOURS % len(HATCHES)]
                look = {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
                axes.barh(names, share, left=left, **look)
                left += share
                text = f"changed: {label}" if shares is changed else label
                keys += [Patch(label=text, **look)] if label else []
            axes.set_xlabel(title)
        panes[0].set_ylim(len(names) - 0.4, -0.6)
        for place, (share, total) in enumerate(zip(kept, read, strict=True)):
            panes[0].text(2, place, f"{share:.1f} % of {total:,}", va="center", fontsize=7)
        figure.suptitle("What became of the pairs of each corpus")
        if keys:
            canvas.add_legend(figure, keys)


def _shares(counts: list[list[dict[str, int]]], totals: np.ndarray) -> dict[str, np.ndarray]:
    """Return label -> percentage of each row's total, the largest first."""
    sums, labels = [sum(map(Counter, row), Counter[str]()) for row in counts], headings_of("reason")
    columns = {name: np.array([each[name] for each in sums]) for name in set().union(*sums)}
    shares = {name: counts / totals * 100 for name, counts in columns.items() if counts.any()}
    order = sorted(shares, key=lambda name: (-shares[name].max(), name))
    return {labels.get(name, name.replace("_", " ")): shares[name] for name in order}
