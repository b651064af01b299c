"""Laws of Table XIV and its figures: means of the paper's groups, seconds apart, deltas of hits."""

import json
from statistics import mean

import numpy as np
import pytest
from made.scores import edit, naive_mean, row, write_accuracies, write_flores, write_scores
from made.tables import csv_rows, pixels, texts, times_file

from ems.base.errors import EmsError
from ems.bench.scores import packed
from ems.tables.compare import plot_deltas
from ems.tables.figures import plot_tradeoff
from ems.tables.printed import (
    AVERAGE,
    load_accuracies,
    load_flores_groups,
    load_groups,
    load_models,
    load_table,
)
from ems.tables.study import SECONDS, write_ablation_table

SEEN = list(load_models()["EMS"].seen)
RICH, POOR = load_groups("XIV").values()
MLDOC = [name for name in load_accuracies("ems-v2-table11-mldoc")["EMS"] if name != AVERAGE]
MUSE, LOW = load_flores_groups().values()
COLUMNS = list(load_table("ems-v2-table14-ablation", "column")["EMS"])[:-1]  # without seconds


def tatoeba(folder, system, codes=SEEN, start=40.0):
    values = {code: start + at / 2 for at, code in enumerate(codes)}
    return write_scores(folder, system, values), values


def mldoc(folder, system, directions=MLDOC):
    values = {name: [60.0 + at] for at, name in enumerate(directions)}
    return write_accuracies(folder, "mldoc", system, values), {k: v[0] for k, v in values.items()}


def table(tmp_path, scores, printed=(), order=("ems",), times=None):
    write_ablation_table(scores, tmp_path / "t.tex", list(printed), list(order), times=times)
    return csv_rows(tmp_path / "t.tex"), (tmp_path / "t.md").read_text()


def test_the_columns_are_the_papers_and_each_is_the_mean_of_its_group(tmp_path):
    paths, values = tatoeba(tmp_path, "ems")
    documents, accuracies = mldoc(tmp_path, "ems")
    flores = write_flores(tmp_path, "ems", sorted({*MUSE, *LOW}))
    rows, _ = table(tmp_path, [paths, flores, documents])
    expected = [
        mean(values.values()),
        mean(values[code] for code in RICH),
        mean(values[code] for code in POOR),
        naive_mean(MUSE),
        naive_mean(LOW),
        mean(v for name, v in accuracies.items() if name.startswith("en-")),
        mean(v for name, v in accuracies.items() if name.endswith("-en")),
    ]
    assert list(rows["ems"])[1:] == COLUMNS
    means = [float(rows["ems"][name]) for name in COLUMNS]
    assert means == pytest.approx(expected, abs=0.05 + 1e-9)


def test_a_note_says_how_long_the_systems_were_trained(tmp_path):
    steps = {"a": 1000, "b": 762, "c": 1000}
    paths = [tatoeba(tmp_path, name)[0] for name in steps]
    write_ablation_table(paths, tmp_path / "t.tex", [], list(steps), steps=steps)
    assert "Steps of training: 1,000, b 762." in (tmp_path / "t.md").read_text()


def test_a_part_of_a_group_is_said_and_the_printed_mean_beside_it_has_a_dagger(tmp_path):
    path, values = tatoeba(tmp_path, "ems", [*RICH[:3], POOR[0]])
    rows, notes = table(tmp_path, [path], ["EMS"])
    assert list(rows["ems"])[1:] == ["Tatoeba 4/58", "Tatoeba >300k 3/43", "Tatoeba <300k 1/15"]
    assert float(rows["ems"]["Tatoeba <300k 1/15"]) == values[POOR[0]]
    assert rows["EMS (printed)"]["Tatoeba 4/58"] == "89.8"
    assert "89.8†" in notes
    assert "Not among the benchmarks of the experiment: Flores, MLDoc." in notes
    assert len(rows) == 1 + len(load_table("ems-v2-table14-ablation", "column")) == 11


@pytest.mark.parametrize(("printed", "version"), [([], "v1"), (["EMS"], "demo-v1")])
def test_printed_rows_stand_only_beside_the_papers_data_and_when_asked_for(
    printed, version, tmp_path
):
    path = write_scores(tmp_path, "ems", {"deu": 50.0}, version=version)
    assert list(table(tmp_path, [path], printed)[0]) == ["ems"]


def test_seconds_are_those_of_1000_steps_up_to_the_last_and_are_never_bold(tmp_path):
    scores = [tatoeba(tmp_path, name)[0] for name in ("ems", "slow", "untrained")]
    times = {
        "ems": times_file(tmp_path, "ems", 500, 100.0),
        "slow": times_file(tmp_path, "slow", 2000, 900.0),
    }
    order = ["ems", "slow", "untrained"]
    rows, notes = table(tmp_path, scores, ["EMS"], order, times)
    assert [rows[name][SECONDS] for name in order] == ["200.0", "450.0", ""]
    assert rows["EMS (printed)"][SECONDS] == "732.0"
    assert "**450.0**" not in notes
    assert SECONDS not in table(tmp_path, scores, [], order)[0]["ems"]


def test_without_scores_of_any_of_its_benchmarks_there_is_no_table(tmp_path):
    path = write_scores(tmp_path, "ems", {"deu": 50.0}, benchmark="ntrex")
    with pytest.raises(EmsError, match="needs scores of tatoeba, flores200, mldoc"):
        table(tmp_path, [path])


# --- figures


def write_hits(folder, system, share, seed, languages=("de", "fr")):
    """A score file with hits: each sentence of 400 is right with probability `share`."""
    random, rows = np.random.default_rng(seed), []
    for language in languages:
        for way in ((language, "en"), ("en", language)):
            hits = random.random(400) < share
            rows.append(row(*way, 100 * hits.sum() / 400, 400, hits=packed(hits)))
    return write_scores(folder, system, dict.fromkeys(languages, 0.0), rows=rows)


def test_deltas_are_drawn_for_every_system_but_the_first(tmp_path):
    shares = {"ems": 0.8, "worse": 0.5, "same": 0.8}
    scores = [write_hits(tmp_path, name, share, 1) for name, share in shares.items()]
    plot_deltas(scores, list(shares), tmp_path / "d.svg")
    labels = texts(tmp_path / "d.svg")
    assert "worse" in labels
    assert "same" in labels
    assert "ems" not in labels
    assert "mean P@1 in points, less that of ems" in labels
    assert min(pixels(tmp_path / "d.svg")) > 200


def test_deltas_are_of_the_languages_trained_on(tmp_path):
    first = write_hits(tmp_path, "ems", 0.8, 1)
    second = write_hits(tmp_path, "other", 0.8, 1)
    plot_deltas([first, second], ["ems", "other"], tmp_path / "a.svg")
    for path, share in ((first, 0.1), (second, 0.9)):  # a language that nobody was trained on
        unseen = json.loads(write_hits(tmp_path / "u", "x", share, 2, ("xx",)).read_text())["rows"]
        edit(path, lambda data: data["rows"].extend(unseen))  # noqa: B023 - called at once
        edit(path, lambda data: data["languages"].update(xx="und"))
    plot_deltas([first, second], ["ems", "other"], tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_systems_of_an_entry_are_compared_as_one(tmp_path):
    parts = [write_hits(tmp_path, f"ugt-{code}", 0.8, 1, (code,)) for code in ("de", "fr")]
    both = write_hits(tmp_path, "both", 0.6, 2)
    other = write_hits(tmp_path, "other", 0.6, 3, ("it",))
    families = {"ugt": ("ugt-de", "ugt-fr")}
    order = ["ugt-de", "ugt-fr", "both", "other"]
    plot_deltas([*parts, both, other], order, tmp_path / "d.svg", families)
    labels = texts(tmp_path / "d.svg")
    assert "both" in labels
    assert "mean P@1 in points, less that of ugt" in labels
    assert not {"ugt-fr", "other"} & set(labels)


def test_one_system_has_no_deltas_and_scores_without_hits_have_none_either(tmp_path):
    first = write_hits(tmp_path, "ems", 0.8, 1)
    with pytest.raises(EmsError, match="no other system has a language of this one"):
        plot_deltas([first], ["ems"], tmp_path / "d.svg")
    bare = write_scores(tmp_path, "bare", {"de": 50.0, "fr": 40.0})
    with pytest.raises(EmsError, match="no hits of its sentences"):
        plot_deltas([first, bare], ["ems", "bare"], tmp_path / "d.svg")


def test_the_price_of_quality_has_a_point_for_each_trained_system(tmp_path):
    scores = [tatoeba(tmp_path, name)[0] for name in ("ems", "cheap", "char-ngram")]
    times = {name: times_file(tmp_path, name, 100, s) for name, s in (("ems", 600), ("cheap", 60))}
    plot_tradeoff(scores, times, tmp_path / "t.svg")
    labels = texts(tmp_path / "t.svg")
    assert {"ems", "cheap", "minutes of training"} <= set(labels)
    assert "char-ngram" not in labels
    with pytest.raises(EmsError, match=r"no system of .* was trained"):
        plot_tradeoff(scores, {}, tmp_path / "t.svg")
