"""Figures: the text of each as a golden file, sizes that grow, labels that cover nothing."""

import json
import re
from itertools import combinations

import numpy as np
import pytest
from made import golden
from made.experiments import one_line
from made.scores import row, write_file, write_flores, write_scores
from made.tables import demo_report, pixels, texts, times_file, write_lines, write_report

from ems.bench.scores import packed
from ems.benchmarks.flores200.table import plot_map
from ems.benchmarks.tatoeba.table import plot_tatoeba
from ems.tables import curves
from ems.tables.canvas import drawing, place_labels
from ems.tables.compare import plot_deltas, write_comparison
from ems.tables.curves import plot_curves, plot_languages
from ems.tables.figures import plot_cleaning, plot_pairs, plot_tradeoff, read_points
from ems.tables.logs import read_losses, read_times
from ems.tables.printed import tatoeba_codes
from ems.tables.scores import read_scores

ISO = {"deu": "de", "fra": "fr"}
CODES = ("zho_Hans", "zho_Hant")
FAMILIES = {"ugt": ("ugt-fr", "ugt-de")}


# --- scores, hits and loss logs


def of_two_systems(folder):
    return [
        write_scores(folder, name, {"fra": (80.0 - n, 70.0), "deu": (60.0, 50.0)}, ISO)
        for n, name in enumerate(("ems", "ems-no-xtr"))
    ]


def of_families(folder):
    """Write scores of two systems of one language each, and of one with an unseen language."""
    values = {"ugt-fr": {"fra": 8.0}, "both": {"fra": 7.0, "deu": 6.0, "isl": 9.0}}
    values["ugt-de"] = {"deu": 5.0}
    languages = ISO | {"isl": "und"}
    return [write_scores(folder, name, each, languages) for name, each in values.items()]


def write_hits(folder, system, share, seed, languages=("de", "fr"), unseen=()):
    """Write a score file with hits: each sentence of 400 is right with probability `share`."""
    random, rows, codes = np.random.default_rng(seed), [], [*languages, *unseen]
    for code in codes:
        for way in ((code, "en"), ("en", code)):
            hits = random.random(400) < share
            rows.append(row(*way, 100 * hits.sum() / 400, 400, hits=packed(hits)))
    known = dict.fromkeys(unseen, "und")
    return write_scores(folder, system, dict.fromkeys(codes, 0.0), known, rows=rows)


def loss_row(part, step, loss, parts, **others):
    values = dict.fromkeys(parts, loss)
    row = {"part": part, "step": step, "pairs": step * 1_000_000, **values}
    return {**row, "total": sum(values.values()), **others}


def validation_row(step, parts):
    return loss_row("validation", step, 6.0 / (step + 1), parts, p1=5.0 + step)


def loss_rows(parts=("xtr", "contrastive"), steps=2):
    """Return a loss log with validation at 0 and at the end, and training at each step."""
    rows = [loss_row("train", at, 5.0 / at, parts, lr=0.001) for at in range(1, steps + 1)]
    ends = [validation_row(step, parts) for step in (0, steps)]
    return [ends[0], *rows, ends[1]] if steps else ends[:1]


def time_rows(rows):
    kept = [{"step": row["step"], "pairs": row["pairs"]} for row in rows]
    return [row | {"seconds": 3600.0 * row["step"]} for row in kept]


def runs(folder):
    """Write the losses and times, by system, of three systems; one was not trained."""
    logs = {"ems": loss_rows(), "untrained": loss_rows(steps=0)}
    logs["ems-no-xtr"] = loss_rows(("contrastive",))
    losses, times = {}, {}
    for name, rows in logs.items():
        losses[name] = write_lines(folder / "models" / name / "losses.jsonl", rows)
        times[name] = write_lines(folder / "costs" / f"{name}.times.jsonl", time_rows(rows))
    return losses, times


def languages_of(folder, **systems):
    """Write loss logs; `systems`: name -> code -> P@1 after two steps, reached evenly from 0."""
    losses = {}
    for name, values in systems.items():
        rows = [
            validation_row(step, ("xtr",))
            | {"p1_by_language": {code: value * step / 2 for code, value in values.items()}}
            for step in range(3)
        ]
        losses[name] = write_lines(folder / name / "losses.jsonl", rows)
    return losses


# --- the text of each figure


def pairs_without_german(folder, out):
    kept = {"de-en": {"evaluation": 9}, "en-fr": {}}
    entries = [("TED", "train", pair, 9, removed, {}) for pair, removed in kept.items()]
    plot_pairs(of_two_systems(folder), write_report(folder / "r.json", entries), out)


def large_map(folder, out):
    languages = "ar bg da de en es fi fr he hi ja pl ru sv tr zh".split()  # noqa: SIM905
    plot_map([write_flores(folder, "A", languages)], out)


def comparison(folder, out):
    """Two benchmarks; the codes of FLORES-200 become short, and a lower error rate is better."""
    for name, share in (("A", 0.5), ("B", 0.8)):
        write_hits(folder, name, share, 1)
        hits = np.random.default_rng(2).random(400) < share
        rows = [row(code, "eng_Latn", 100 * hits.mean(), 400, hits=packed(hits)) for code in CODES]
        known = dict(zip(CODES, ("zh", "und"), strict=True)) | {"eng_Latn": "en"}
        write_file(folder, name, "xsim", "error rate", rows, known)
    write_comparison(folder / "A", folder / "B", out)


def curves_without_validation(folder, out):
    rows = [row for row in loss_rows() if row["part"] == "train"]
    plot_curves({"ems": write_lines(folder / "losses.jsonl", rows)}, None, out)


def panels(folder, out):
    first, second = {"de": 40.0, "fr": 61.25}, {"de": 50.04, "fr": 7.0, "zh": 3}
    plot_languages(languages_of(folder, a=first, b=second), out)


def deltas(folder, out):
    shares = {"ems": 0.8, "worse": 0.5, "same": 0.8}
    scores = [write_hits(folder, name, share, 1) for name, share in shares.items()]
    plot_deltas(scores, list(shares), out)


def deltas_of_families(folder, out):
    scores = [write_hits(folder, f"ugt-{code}", 0.8, 1, (code,)) for code in ("de", "fr")]
    scores.append(write_hits(folder, "both", 0.6, 2))
    scores.append(write_hits(folder, "other", 0.6, 3, ("it",)))  # of no language of the first
    plot_deltas(scores, ["ugt-de", "ugt-fr", "both", "other"], out, FAMILIES)


def tradeoff(folder, out):
    """The n-gram system was not trained, nor the others on the second language."""
    values, languages = {"deu": 50.0, "isl": 90.0}, {"isl": "und"}
    scores = [write_scores(folder, n, values, languages) for n in ("ems", "cheap", "char-ngram")]
    times = {name: times_file(folder, name, 100, s) for name, s in (("ems", 600), ("cheap", 60))}
    plot_tradeoff(scores, times, out)


def changed_report(path):
    """A report with 16 reasons, one of which is none, and two repairs."""
    reasons = {f"reason_{at}": 16 - at for at in range(15)} | {"none": 0}
    write_report(path, [("One", "train", "de-en", 1000, reasons, {})])
    report = json.loads(path.read_text())
    report["corpora"][0]["changed"] = {"mojibake": 30, "swapped": 10}
    path.write_text(json.dumps(report))
    return path


FIGURES = {
    "strip": lambda folder, out: plot_tatoeba(of_families(folder), out, FAMILIES),
    "map": lambda folder, out: plot_map(
        [write_flores(folder, name, ["en", "de", "fr"]) for name in "AB"], out
    ),
    "map_large": large_map,
    "comparison": comparison,
    "pairs": lambda folder, out: plot_pairs(
        of_two_systems(folder), demo_report(folder / "r.json"), out
    ),
    "pairs_families": lambda folder, out: plot_pairs(
        of_families(folder), demo_report(folder / "r.json"), out, FAMILIES
    ),
    "pairs_none_kept": pairs_without_german,
    "cleaning": lambda folder, out: plot_cleaning(demo_report(folder / "r.json"), out),
    "cleaning_changed": lambda folder, out: plot_cleaning(changed_report(folder / "r.json"), out),
    "curves": lambda folder, out: plot_curves(runs(folder)[0], None, out),
    "curves_minutes": lambda folder, out: plot_curves(*runs(folder), out),
    "curves_without_validation": curves_without_validation,
    "languages": panels,
    "deltas": deltas,
    "deltas_families": deltas_of_families,
    "tradeoff": tradeoff,
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_say_the_golden_text(name, tmp_path):
    FIGURES[name](tmp_path, tmp_path / "f.svg")
    golden.check(f"figures/{name}.txt", "\n".join(texts(tmp_path / "f.svg")) + "\n")
    assert min(pixels(tmp_path / "f.svg")) > 200


# --- sizes, colours and bytes


def test_a_figure_grows_with_its_languages_and_not_with_its_systems(tmp_path):
    sizes = []
    for count, systems in ((7, "ABC"), (58, "ABC"), (58, "A")):
        codes = tatoeba_codes()[:count]
        paths = [write_scores(tmp_path, name, dict.fromkeys(codes, 50.0)) for name in systems]
        plot_tatoeba(paths, tmp_path / "f.png")
        sizes.append(pixels(tmp_path / "f.png"))
    (width, low), (same, high), last = sizes
    assert width == same
    assert last == (same, high)
    assert 4 * low < high < 3000


def test_panels_of_languages_stand_in_rows_of_the_same_height(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "MOST_ACROSS", 2)
    monkeypatch.setattr(curves, "LEAST_WIDTH", 1.0)
    sizes = []
    for count in (1, 2, 4, 6):
        losses = languages_of(tmp_path, a=dict.fromkeys("abcdef"[:count], 50.0))
        plot_languages(losses, tmp_path / "f.svg")
        sizes.append(pixels(tmp_path / "f.svg"))
    (few, _), (one_row, height), (two_rows, taller), (most, tallest) = sizes
    assert few < one_row == two_rows == most
    assert tallest - taller == pytest.approx(taller - height, abs=2)


def test_of_many_languages_only_the_hardest_have_a_panel(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "MOST_PANELS", 2)
    ours, other = {"de": 40.0, "fr": 60.0, "zh": 50.0}, {"de": 1.0, "fr": 2.0, "zh": 70.0}
    plot_languages(languages_of(tmp_path, a=ours, b=other), tmp_path / "f.svg")
    shown = texts(tmp_path / "f.svg")
    assert {"de", "fr", "40.0", "60.0"} < set(shown)
    assert not {"zh", "70.0"} & set(shown)
    assert "Validation P@1 (%) of the 2 hardest of 3 languages against sentence pairs seen" in shown


def test_a_comparison_of_many_benchmarks_has_four_panels_side_by_side(tmp_path):
    sizes = []
    for count in (1, 4, 9):
        for name, share in (("A", 0.5), ("B", 0.6)):
            for number in range(count):
                path = write_hits(tmp_path / str(count), name, share, number)
                path.rename(path.with_name(f"b{number}.json"))
        out = tmp_path / f"{count}.svg"
        write_comparison(tmp_path / str(count) / "A", tmp_path / str(count) / "B", out)
        sizes.append(pixels(out))
    (narrow, low), (wide, same), (most, high) = sizes
    assert narrow < wide == most < 16 * 150
    assert low == same < high


def test_systems_keep_their_colour_if_another_has_no_curve(tmp_path):
    losses, _ = runs(tmp_path)
    plot_curves(losses, None, tmp_path / "f.svg")
    svg = (tmp_path / "f.svg").read_text().lower()
    assert [colour in svg for colour in ("#4477aa", "#ee6677", "#228833")] == [True, False, True]
    height = pixels(tmp_path / "f.svg")[1]
    plot_curves({"ems-no-xtr": losses["ems-no-xtr"]}, None, tmp_path / "f.svg")
    assert pixels(tmp_path / "f.svg")[1] < height  # one part of the loss, one panel less
    assert "XTR loss" not in texts(tmp_path / "f.svg")


def test_a_map_has_black_numbers_on_light_cells_and_white_ones_on_dark(tmp_path):
    value = {("en", "de"): 80.0, ("de", "en"): 97.4}
    plot_map([write_flores(tmp_path, "A", ["en", "de"], lambda *way: value[way])], tmp_path / "f")
    svg = (tmp_path / "f.svg").read_text()
    assert re.search(r"<text [^>]*fill: #ffffff[^>]*>80</text>", svg)
    assert re.search(r'<text style="(?:(?!fill)[^"])*"[^>]*>97</text>', svg)  # black is the default
    assert "P@1 (%), higher is better; colours span 80 to 98" in texts(tmp_path / "f.svg")


def test_codes_and_points_show_the_name_of_their_language_on_hover(tmp_path):
    FIGURES["pairs"](tmp_path, tmp_path / "f.svg")
    svg = (tmp_path / "f.svg").read_text()
    names = re.findall("<title>(.*?)</title>", svg)
    assert {"German, ems: 55.0", "French, ems: 75.0"} < set(names)
    assert {"French", "German"} < set(names)  # the labels
    assert "hover" not in svg


def test_the_pdf_has_text_and_the_svg_a_font_that_browsers_have(tmp_path):
    FIGURES["map"](tmp_path, tmp_path / "f.pdf")
    assert b"/Subtype /Type0" in (tmp_path / "f.pdf").read_bytes()  # TrueType, not outlines
    assert "'DejaVu Sans', 'Verdana'" in (tmp_path / "f.svg").read_text()


@pytest.mark.slow
def test_figures_depend_only_on_their_inputs(tmp_path):
    written = []
    for folder in (tmp_path / "one", tmp_path / "two" / "deeper"):
        for name in ("strip", "map", "pairs", "curves"):
            FIGURES[name](folder, folder / f"{name}.svg")
        made = sorted(
            path for suffix in ("svg", "png", "pdf") for path in folder.glob(f"*.{suffix}")
        )
        written.append([path.read_bytes() for path in made])
    assert len(written[0]) == 12
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in b"".join(written[0])


def test_deltas_are_of_the_languages_trained_on(tmp_path):
    names, drawn, out = ["ems", "other"], [], tmp_path / "f.svg"
    for unseen in ((), ("xx",)):
        scores = [write_hits(tmp_path, n, 0.8, at, unseen=unseen) for at, n in enumerate(names)]
        plot_deltas(scores, names, out)
        drawn.append(out.read_bytes())
    assert drawn[0] == drawn[1]


# --- points and their labels


def test_a_point_has_the_pairs_kept_for_training_and_the_mean_of_both_directions(tmp_path):
    systems = read_scores(of_two_systems(tmp_path), "tatoeba")
    points = read_points(systems, demo_report(tmp_path / "r.json"))
    # of German 1,900 with English and the 50 with French, which French has too
    assert points["ems"] == {"de": (1950, 55.0), "fr": (18000 + 995 + 50, 75.0)}
    assert points["ems-no-xtr"] == {"de": (1950, 55.0), "fr": (19045, 74.5)}


def labelled(out, points, labels, others=()):
    """Return the labels written, their boxes [N, 4] in pixels, and the box [4] of the axes."""
    with drawing(out, 6.0, 4.0) as figure:
        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set(xlim=(100, 100_000), ylim=(0, 100))
        written = place_labels(axes, labels, points, np.reshape(others, (-1, 2)))
        assert [text.get_text() for text in axes.texts] == written
        boxes = [text.get_window_extent().extents for text in axes.texts]
        return written, np.array(boxes), axes.get_window_extent().extents


def cover(first, second):
    """Return True if two boxes overlap by more than two pixels in width and height."""
    low, high = np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])
    return bool(((high - low) > 2).all())


def test_no_label_covers_another_or_leaves_the_panel_if_points_are_crowded(tmp_path):
    generator = np.random.default_rng(1)
    spread = np.stack([10 ** generator.uniform(2.2, 4.8, 40), generator.uniform(2, 98, 40)], axis=1)
    crowd = np.stack([np.full(18, 20_000.0), np.linspace(90, 99, 18)], axis=1)
    labels = [f"{number:02}" for number in range(58)]
    written, boxes, frame = labelled(tmp_path / "f", np.concatenate([spread, crowd]), labels)
    assert 30 < len(written) < 58
    assert not [pair for pair in combinations(boxes, 2) if cover(*pair)]
    assert cover(boxes[0], boxes[0] + 2)
    assert (boxes[:, :2] >= frame[:2]).all()
    assert (boxes[:, 2:] <= frame[2:]).all()


def test_the_first_labels_are_written_first_and_points_without_a_label_stay_free(tmp_path):
    near = [(1000.0, 50.0), (1000.0, 50.0)]
    assert labelled(tmp_path / "f", np.array(near), ["de", "fr"])[0] == ["de", "fr"]
    around = [(1000.0 * 10 ** (x / 30), 50.0 + y) for x in (-2, 0, 2) for y in (-4, 0, 4)]
    assert labelled(tmp_path / "f", np.array(near), ["de", "fr"], around)[0] == []


# --- loss logs


def test_rows_are_read_unchanged_and_a_repeated_step_has_its_last_time(tmp_path):
    path, both = write_lines(tmp_path / "losses.jsonl", loss_rows()), ("xtr", "contrastive")
    entries = [(e.part, e.step, e.pairs, e.total, e.values) for e in read_losses(path)]
    assert entries == [  # neither total nor lr is a value
        ("validation", 0, 0, 12.0, dict.fromkeys(both, 6.0) | {"p1": 5.0}),
        ("train", 1, 1_000_000, 10.0, dict.fromkeys(both, 5.0)),
        ("train", 2, 2_000_000, 5.0, dict.fromkeys(both, 2.5)),
        ("validation", 2, 2_000_000, 4.0, dict.fromkeys(both, 2.0) | {"p1": 7.0}),
    ]
    rows = [{"step": step, "pairs": 0, "seconds": s} for step, s in ((0, 1), (50, 8), (50, 9.5))]
    assert read_times(write_lines(tmp_path / "times.jsonl", rows)) == {0: 1.0, 50: 9.5}


# --- figures without data


def test_points_without_training_pairs_or_times_are_errors(tmp_path):
    scores, out = of_two_systems(tmp_path), tmp_path / "f.svg"
    report = write_report(tmp_path / "r.json", [("TED", "train", "de-en", 9, {}, {})])
    message = one_line(plot_pairs, scores, report, out)
    assert "r.json: no training corpus of fr, which" in message
    gone = [("TED", "train", pair, 9, {"cap": 9}, {}) for pair in ("de-en", "en-fr")]
    message = one_line(plot_pairs, scores, write_report(report, gone), out)
    assert "no training pairs are kept of any language" in message
    assert "was trained" in one_line(plot_tradeoff, scores, {}, out)
    assert not list(tmp_path.glob("f.*"))
