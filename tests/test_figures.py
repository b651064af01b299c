"""Laws of the figures: what is drawn is what was measured, nothing is covered, bytes repeat."""

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from made.scores import write_flores, write_scores
from made.tables import demo_report, pixels, texts, write_lines, write_report

from ems.base.errors import EmsError
from ems.benchmarks.flores200.table import plot_flores
from ems.benchmarks.tatoeba.table import plot_tatoeba
from ems.tables.canvas import COLOURS, drawing, place_labels
from ems.tables.curves import plot_curves, plot_languages
from ems.tables.figures import plot_pairs, read_points
from ems.tables.logs import read_losses, read_times
from ems.tables.printed import load_models
from ems.tables.scores import read_scores

ISO = {"deu": "de", "fra": "fr"}


@pytest.fixture
def drawn(tmp_path):
    """Plots into f.svg and says its texts."""

    def draw(plot, *sources, families=None):
        out = tmp_path / "f.svg"
        plot(*sources, out, *([families] if families else []))
        return texts(out)

    return draw


# --- P@1 per language


def test_a_figure_grows_with_its_languages_and_continues_in_a_second_row(tmp_path):
    sizes = []
    for count in (7, 25, 58):
        codes = list(load_models()["EMS"].seen)[:count]
        paths = [write_scores(tmp_path, name, dict.fromkeys(codes, 50.0)) for name in "ABC"]
        plot_tatoeba(paths, tmp_path / "f.png")
        sizes.append(pixels(tmp_path / "f.png"))
    (few, low), (more, same), (most, high) = sizes
    assert few < more < most < 3000
    assert low == same < high


def test_a_map_names_its_system_and_each_language_on_both_sides(tmp_path, drawn):
    paths = [write_flores(tmp_path, name, ["en", "de", "fr"]) for name in "AB"]
    said = drawn(plot_flores, paths)
    assert "FLORES-200 v1: P@1 of A" in said
    assert [said.count(code) for code in ("en", "de", "fr")] == [2, 2, 2]


# --- P@1 against training pairs


@pytest.fixture
def report(tmp_path):
    return demo_report(tmp_path / "decontamination.json")


@pytest.fixture
def two_systems(tmp_path):
    return [
        write_scores(tmp_path, name, {"fra": (80.0 - n, 70.0), "deu": (60.0, 50.0)}, ISO)
        for n, name in enumerate(("ems", "ems-no-xtr"))
    ]


def test_a_point_is_what_was_kept_for_training_and_the_mean_of_both_directions(two_systems, report):
    points = read_points(read_scores(two_systems, "tatoeba"), report)
    # of German 1,900 with English and the 50 with French, which French has too
    assert points["ems"] == {"de": (1950, 55.0), "fr": (18000 + 995 + 50, 75.0)}
    assert points["ems-no-xtr"] == {"de": (1950, 55.0), "fr": (19045, 74.5)}


def test_each_system_has_a_panel_with_its_name_and_each_language_once(two_systems, report, drawn):
    said = drawn(plot_pairs, two_systems, report)
    assert [said.count(name) for name in ("ems", "ems-no-xtr")] == [1, 1]
    assert [said.count(name) for name in ("de", "fr", "2k", "20k")] == [2, 2, 2, 2]


def test_languages_never_trained_on_have_no_point_and_no_bar(tmp_path, report, drawn):
    path = write_scores(tmp_path, "A", {"deu": 5.0, "isl": 6.0}, {"deu": "de", "isl": "und"})
    for plot, sources, name in ((plot_pairs, [report], "de"), (plot_tatoeba, [], "deu")):
        said = drawn(plot, [path], *sources)
        assert not {"und", "isl"} & set(said)
        assert name in said


def test_systems_of_an_entry_are_shown_once(tmp_path, report, drawn):
    values = {"ugt-fr": {"fra": 8.0}, "both": {"fra": 7.0, "deu": 6.0}, "ugt-de": {"deu": 5.0}}
    scores = [write_scores(tmp_path, name, of, ISO) for name, of in values.items()]
    for plot, sources in ((plot_tatoeba, [scores]), (plot_pairs, [scores, report])):
        said = drawn(plot, *sources, families={"ugt": ("ugt-fr", "ugt-de")})
        assert [said.count(label) for label in ("ugt", "both")] == [1, 1]
        assert not {"ugt-fr", "ugt-de"} & set(said)


def test_a_language_of_which_no_pairs_are_left_is_named_below(tmp_path, two_systems, drawn):
    entries = [
        ("TED", "train", "de-en", 9, {"evaluation": 9}, {}),
        ("TED", "train", "en-fr", 9, {}, {}),
    ]
    said = drawn(plot_pairs, two_systems, write_report(tmp_path / "r.json", entries))
    assert "de" not in said
    assert any(text.endswith("(without any, so not shown: de)") for text in said)


def test_a_report_without_a_language_or_without_any_pairs_is_an_error(tmp_path, two_systems):
    other = write_report(tmp_path / "r.json", [("TED", "train", "de-en", 9, {}, {})])
    with pytest.raises(EmsError, match="no training corpus of fr, which") as error:
        plot_pairs(two_systems, other, tmp_path / "f.svg")
    assert str(other) in str(error.value)
    gone = [("TED", "train", pair, 9, {"cap": 9}, {}) for pair in ("de-en", "en-fr")]
    with pytest.raises(EmsError, match="no training pairs are kept of any language"):
        plot_pairs(two_systems, write_report(other, gone), tmp_path / "f.svg")
    assert not list(tmp_path.glob("f.*"))


def labelled(points, labels):
    """Boxes [N, 4] in pixels of the labels of `points`, and that of their axes [4]."""
    with TemporaryDirectory() as folder, drawing(Path(folder) / "f.svg", 6.0, 4.0) as figure:
        axes = figure.subplots()
        axes.set_ylim(0, 100)
        axes.set_xscale("log")
        axes.set_xlim(100, 100_000)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        place_labels(axes, points, labels)
        boxes = [text.get_window_extent().extents for text in axes.texts]
        return np.array(boxes), axes.get_window_extent().extents


def cover(first, second):
    """Whether two boxes have more than a pixel of width and height in common."""
    low, high = np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])
    return bool(((high - low) > 1).all())


def test_no_label_covers_another_or_leaves_the_panel_even_where_points_crowd():
    generator = np.random.default_rng(1)
    spread = np.stack([10 ** generator.uniform(2.2, 4.8, 40), generator.uniform(2, 98, 40)], axis=1)
    crowd = np.stack([np.full(18, 20_000.0), np.linspace(90, 99, 18)], axis=1)
    points = np.concatenate([spread, crowd])
    labels = [f"{a}{b}" for a, b in itertools.product("abcdefgh", repeat=2)][: len(points)]
    boxes, frame = labelled(points, labels)
    assert len(boxes) == 58
    assert not [pair for pair in itertools.combinations(range(58), 2) if cover(*boxes[list(pair)])]
    assert (boxes[:, :2] >= frame[:2] - 1).all()
    assert (boxes[:, 2:] <= frame[2:] + 1).all()


def test_the_law_about_labels_notices_labels_that_do_cover_each_other():
    boxes, _ = labelled(np.array([[1000.0, 50.0], [1010.0, 50.0]]), ["de", "fr"])
    assert not cover(*boxes)
    assert cover(boxes[0], boxes[0] + 2)


# --- learning curves


def loss_rows(parts=("xtr", "contrastive"), steps=2):
    """A loss log: validation at 0 and at the end, training at each of `steps`."""
    rows = [validation_row(0, parts)]
    for step in range(1, steps + 1):
        values = dict.fromkeys(parts, 5.0 / step)
        row = {"part": "train", "step": step, "pairs": step * 1_000_000, **values}
        rows.append({**row, "total": sum(values.values()), "lr": 0.001})
    return [*rows, validation_row(steps, parts)] if steps else rows


def validation_row(step, parts):
    values = dict.fromkeys(parts, 6.0 / (step + 1))
    row = {"part": "validation", "step": step, "pairs": step * 1_000_000, **values}
    return {**row, "total": sum(values.values()), "p1": 5.0 + step}


def time_rows(rows, seconds=3600.0):
    return [
        {"step": row["step"], "pairs": row["pairs"], "seconds": row["step"] * seconds}
        for row in rows
    ]


def write_system(folder, name, rows):
    """A system's losses.jsonl and times.jsonl."""
    times = write_lines(folder / "costs" / f"{name}.times.jsonl", time_rows(rows))
    return write_lines(folder / "models" / name / "losses.jsonl", rows), times


@pytest.fixture
def runs(tmp_path):
    """Losses and times by system, of three systems; one was not trained."""
    logs = {
        "ems": loss_rows(),
        "untrained": loss_rows(steps=0),
        "ems-no-xtr": loss_rows(("contrastive",)),
    }
    written = {name: write_system(tmp_path, name, rows) for name, rows in logs.items()}
    return {n: p[0] for n, p in written.items()}, {n: p[1] for n, p in written.items()}


def test_a_system_that_was_not_trained_has_no_curve_and_the_others_keep_their_colour(
    tmp_path, runs, drawn
):
    said = drawn(plot_curves, runs[0], None)
    svg = (tmp_path / "f.svg").read_text().lower()
    assert [name for name in said if name in runs[0]] == ["ems", "ems-no-xtr"]
    used = [colour for colour in COLOURS if colour.lower() in svg]
    assert used == [COLOURS[0], COLOURS[2]]


def test_only_parts_of_the_loss_that_a_system_has_get_a_panel_and_the_axis_counts_pairs_or_minutes(
    tmp_path, runs, drawn
):
    panels = {"validation P@1 (%)", "XTR loss", "contrastive loss"}
    one = drawn(plot_curves, {"ems-no-xtr": runs[0]["ems-no-xtr"]}, None)
    height = pixels(tmp_path / "f.svg")[1]
    pairs = drawn(plot_curves, runs[0], None)
    assert panels & set(one) == panels - {"XTR loss"}
    assert panels <= set(pairs)
    assert height < pixels(tmp_path / "f.svg")[1]
    minutes = drawn(plot_curves, *runs)
    assert {"2,000,000", "sentence pairs seen"} <= set(pairs)  # two steps
    assert {"120", "minutes of training"} <= set(minutes)  # two hours
    assert not {"120", "minutes of training"} & set(pairs)


def test_without_validation_there_are_curves_of_training_alone(tmp_path, drawn):
    rows = [row for row in loss_rows() if row["part"] == "train"]
    said = drawn(plot_curves, {"ems": write_lines(tmp_path / "losses.jsonl", rows)}, None)
    assert "validation P@1 (%)" not in said
    assert {"XTR loss", "contrastive loss", "training"} <= set(said)


def test_rows_are_read_as_written_and_a_step_that_is_there_twice_has_its_last_time(tmp_path):
    path = write_lines(tmp_path / "losses.jsonl", loss_rows())
    entries = read_losses(path)
    assert [(e.part, e.step, e.pairs) for e in entries] == [
        ("validation", 0, 0),
        ("train", 1, 1_000_000),
        ("train", 2, 2_000_000),
        ("validation", 2, 2_000_000),
    ]
    assert [e.total for e in entries] == [12.0, 10.0, 5.0, 4.0]
    assert entries[0].values == {"xtr": 6.0, "contrastive": 6.0, "p1": 5.0}
    assert entries[2].values == {"xtr": 2.5, "contrastive": 2.5}  # neither total nor lr
    rows = [{"step": step, "pairs": 0, "seconds": s} for step, s in ((0, 1), (50, 8), (50, 9.5))]
    assert read_times(write_lines(tmp_path / "times.jsonl", rows)) == {0: 1.0, 50: 9.5}


def test_no_trained_system_is_an_error_that_lists_what_was_read(tmp_path, runs):
    for losses in ({"untrained": runs[0]["untrained"]}, {}):
        with pytest.raises(EmsError, match="no system was trained") as error:
            plot_curves(losses, None, tmp_path / "f.svg")
        assert all(str(path) in str(error.value) for path in losses.values())


GOOD = {"part": "train", "step": 1, "pairs": 9, "xtr": 1.0, "total": 1.0, "lr": 0.1}


TIME = {"step": 1, "pairs": 9, "seconds": 1.0}
BAD_ROWS = [  # the log, a row, the message
    ("losses", '{"part": "train", "st', "expected JSON"),
    ("losses", "[1]", "a JSON object"),
    ("losses", "", "expected JSON"),
    ("losses", {**GOOD, "part": "test"}, "train or validation under `part`, found 'test'"),
    ("losses", {**GOOD, "step": 1.5}, "under `step`, found 1.5"),
    ("losses", {**GOOD, "pairs": None}, "under `pairs`"),
    ("losses", {**GOOD, "xtr": "low"}, "under `xtr`, found 'low'"),
    ("losses", {**GOOD, "xtr": float("nan")}, "found NaN"),
    ("losses", {**GOOD, "part": "validation"}, "under `p1`, found None"),
    ("losses", {**GOOD, "total": None}, "under `total`, found None"),
    ("losses", {**GOOD, "p1_by_language": [1.0]}, "under `p1_by_language`, found \\[1.0"),
    ("losses", {**GOOD, "p1_by_language": {"de": "high"}}, "under `de`, found 'high'"),
    ("losses", {**GOOD, "p1_by_corpus": 1.0}, "P@1 of each corpus under `p1_by_corpus`, found 1.0"),
    ("losses", {**GOOD, "p1_by_corpus": {"News": -1}}, "under `News`, found -1"),
    ("times", {"step": 2, "pairs": 9}, "under `seconds`, found None"),
    ("times", {"step": 2, "pairs": 9, "seconds": -1}, "under `seconds`, found -1"),
    ("times", {"pairs": 9, "seconds": 1.0}, "under `step`"),
    ("times", "2 9 1.0", "expected JSON"),
]


@pytest.mark.parametrize(("log", "row", "message"), BAD_ROWS)
def test_a_malformed_row_is_an_error_that_names_file_and_line(log, row, message, tmp_path, runs):
    good, logs = (GOOD, runs[0]) if log == "losses" else (TIME, runs[1])
    write_lines(logs["ems"], [good, good, row, good])
    with pytest.raises(EmsError, match=message) as error:
        plot_curves(*runs, tmp_path / "f.svg")
    assert f"{logs['ems']}: line 3" in str(error.value)
    assert not list(tmp_path.glob("f.*"))


def test_a_system_or_a_step_without_a_time_is_an_error(tmp_path, runs):
    losses, times = runs
    write_lines(times["ems"], time_rows(loss_rows(steps=1)))
    with pytest.raises(EmsError, match="no time of step 2") as error:
        plot_curves(losses, times, tmp_path / "f.svg")
    assert str(times["ems"]) in str(error.value)
    with pytest.raises(EmsError, match="no times of ems were given"):
        plot_curves(losses, {}, tmp_path / "f.svg")
    with pytest.raises(EmsError, match=r"missing\.jsonl: no such file"):
        plot_curves({"ems": tmp_path / "missing.jsonl"}, None, tmp_path / "f.svg")


# --- P@1 per language over time


def language_rows(values, steps=2):
    """Rows of validation; `values`: code -> P@1 after the last step, reached evenly from 0."""
    rows = []
    for step in range(steps + 1):
        scores = {code: value * step / steps for code, value in values.items()}
        rows.append({**validation_row(step, ("xtr",)), "p1_by_language": scores})
    return rows


def languages_of(folder, **systems):
    return {
        name: write_lines(folder / name / "losses.jsonl", language_rows(values))
        for name, values in systems.items()
    }


def test_each_language_has_a_panel_with_the_last_value_of_the_best_system(tmp_path, drawn):
    losses = languages_of(
        tmp_path, a={"de": 40.0, "fr": 61.25}, b={"de": 50.04, "fr": 7.0, "zh": 3}
    )
    said = drawn(plot_languages, losses)
    assert {"de", "fr", "zh", "50.0", "61.3", "3.0", "a", "b", "2M"} <= set(said)
    assert said.index("de") < said.index("fr")
    assert not {"40.0", "7.0"} & set(said)


def test_languages_stand_in_rows_of_like_panels_each_row_as_high_as_the_next(tmp_path, drawn):
    sizes = []
    codes = ["".join(pair) for pair in itertools.product("abcdefgh", repeat=2)]
    for count in (3, 9, 18, 61):
        said = drawn(plot_languages, languages_of(tmp_path, a=dict.fromkeys(codes[:count], 50.0)))
        assert set(codes[:count]) <= set(said)
        sizes.append(pixels(tmp_path / "f.svg"))
    (few, _), (one_row, height), (two_rows, taller), (most, tallest) = sizes
    assert few < one_row == two_rows == most < 2100
    assert tallest - taller == pytest.approx(5 * (taller - height), abs=5)


def test_a_log_of_before_p1_was_written_per_language_says_to_train_again(tmp_path, runs):
    with pytest.raises(EmsError, match="no row has P@1 per language") as error:
        plot_languages({"ems": runs[0]["ems"]}, tmp_path / "f.svg")
    assert str(runs[0]["ems"]) in str(error.value)
    assert not list(tmp_path.glob("f.*"))


# --- the same inputs give the same bytes


def test_figures_depend_only_on_their_inputs(tmp_path):
    written = []
    for folder in (tmp_path / "one", tmp_path / "two" / "deeper"):
        scores = [write_scores(folder, name, dict.fromkeys(ISO, 50.0), ISO) for name in "AB"]
        losses, times = write_system(folder, "A", loss_rows())
        report = demo_report(folder / "report.json")
        plot_tatoeba(scores, folder / "bars.svg")
        plot_flores([write_flores(folder, "A", ["de", "fr"])], folder / "map.svg")
        plot_pairs(scores, report, folder / "pairs.svg")
        plot_curves({"A": losses}, None, folder / "curves.svg")
        plot_curves({"A": losses}, {"A": times}, folder / "time.svg")
        plot_languages(languages_of(folder, A={"de": 40.0}), folder / "languages.svg")
        made = sorted([*folder.glob("*.svg"), *folder.glob("*.png")])
        written.append([path.read_bytes() for path in made])
    assert len(written[0]) == 12
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in b"".join(written[0])
