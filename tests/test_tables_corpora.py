"""Laws of the tables of training data and of models: counts add up, each pair is counted where it
belongs."""

import csv
import json
import re

import pytest
from made.tables import csv_rows, demo_report, tex_line, write_model, write_report

from ems.base.errors import EmsError
from ems.tables.corpora import (
    human,
    write_corpora_table,
    write_decontamination_table,
    write_filters_table,
)
from ems.tables.models import write_models_table


@pytest.fixture
def report(tmp_path):
    return demo_report(tmp_path / "decontamination.json")


def test_the_corpora_table_counts_training_pairs_per_language_over_all_corpora(tmp_path, report):
    write_corpora_table(report, tmp_path / "corpora.tex")
    rows = {label: list(row.values())[1:] for label, row in csv_rows(tmp_path / "corpora").items()}
    assert rows == {
        "de": ["2000", "9", "91", "1900", "8.7M", "5.6M"],
        "fr": ["19120", "120", "5", "18995", "8.8M", "8.7M"],
        "de-fr": ["50", "0", "0", "50", "", ""],
        "Total": ["21170", "129", "96", "20945", "17.5M", "14.3M"],
        "Validation": ["500", "3", "0", "497", "", ""],
    }
    text = (tmp_path / "corpora.tex").read_text()
    assert "fr & 19,120 & 120 & 5 & 18,995 & 8.8M & 8.7M" in text
    assert "204M for LASER and 143M for EMS" in text
    assert "add up to 206.6M and 143.6M" in text


def test_the_decontamination_table_counts_each_benchmark_and_a_pair_once_in_all(tmp_path, report):
    out = tmp_path / "decontamination.tex"
    write_decontamination_table(report, out)
    with open(out.with_suffix(".csv"), encoding="utf-8", newline="") as handle:
        rows = [row for row in csv.reader(handle) if row[:2] == ["Demo v1", "train"]]
    assert [row[2:] for row in rows] == [
        ["tatoeba", "20120", "107", "98", "129"],
        ["flores200", "20120", "1", "0", "1"],
        ["any of them", "20120", "", "", "129"],
    ]
    assert "folded" in out.read_text()
    assert "is a part of" not in out.read_text()  # no corpus here is


def test_the_reasons_of_other_removals_are_told_with_their_counts(tmp_path):
    removed = {"evaluation": 3, "one_empty": 2, "max_ratio": 5}
    entries = [("A", "train", "de-en", 100, removed, {})]
    write_corpora_table(write_report(tmp_path / "r.json", entries), tmp_path / "c.tex")
    assert "Other removals: max ratio 5, one empty 2." in (tmp_path / "c.md").read_text()
    assert csv_rows(tmp_path / "c")["de"]["Other removals"] == "7"
    write_corpora_table(write_report(tmp_path / "r.json", entries * 2), tmp_path / "c.tex")
    assert "Other removals: max ratio 10, one empty 4." in (tmp_path / "c.md").read_text()


def test_counts_that_do_not_add_up_are_an_error(tmp_path, report):
    data = json.loads(report.read_text())
    data["corpora"][0]["kept"] += 1
    report.write_text(json.dumps(data))
    for write in (write_corpora_table, write_decontamination_table):
        with pytest.raises(EmsError, match=r"corpora\[0\] \(Demo v1, en-fr\)"):
            write(report, tmp_path / "t.tex")
    del data["against"]
    report.write_text(json.dumps(data))
    with pytest.raises(EmsError, match="expected a list under `against`, found nothing"):
        write_corpora_table(report, tmp_path / "t.tex")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(300, "0.3k"), (50_000, "50k"), (999_499, "999k"), (999_500, "1.0M"), (4_900_000, "4.9M")],
)
def test_large_counts_read_as_table_one_prints_them(count, shown):
    assert human(count) == shown


# --- parts of corpora, several benchmarks

BENCHMARKS = ("tatoeba", "flores200", "sib200", "ntrex")


@pytest.fixture
def parts(tmp_path):
    """A corpus and two parts of another, against four benchmarks."""
    counts = {name: {"en": 2, "de": 1, "pairs": 3} for name in BENCHMARKS}
    entries = [
        ("TED", "train", "de-en", 500, {"evaluation": 5}, counts),
        ("NTREX+train", "train", "de-en", 300, {"evaluation": 7}, counts),
        ("NTREX+validation", "validation", "de-en", 200, {"evaluation": 4}, counts),
        ("bible", "train", "de-en", 100, {}, {}),
    ]
    return write_report(tmp_path / "decontamination.json", entries, BENCHMARKS)


def test_a_part_of_a_corpus_is_a_corpus_of_its_own_with_a_row_per_benchmark(tmp_path, parts):
    out = tmp_path / "decontamination.tex"
    write_decontamination_table(parts, out)
    with open(out.with_suffix(".csv"), encoding="utf-8", newline="") as handle:
        rows = list(csv.reader(handle))[1:]
    names = ["bible v1", "NTREX+train v1", "NTREX+validation v1", "TED v1"]  # by the alphabet
    assert [row[0] for row in rows] == [name for name in names for _ in range(5)]
    assert [row[2] for row in rows] == [*BENCHMARKS, "any of them"] * 4
    assert [row[6] for row in rows[5:10]] == ["3", "3", "3", "3", "7"]
    assert "NTREX+train is a part of the corpus" in out.read_text()
    write_corpora_table(parts, tmp_path / "corpora.tex")
    assert csv_rows(tmp_path / "corpora.tex")["de"]["Kept"] == "888"  # 495 + 293 + 100


def test_people_read_a_corpus_once_and_programs_in_each_row(tmp_path, parts):
    out = tmp_path / "decontamination.tex"
    write_decontamination_table(parts, out)
    counts = [out.with_suffix(s).read_text().count("NTREX+train v1") for s in (".tex", ".md")]
    assert counts == [1, 1]
    assert out.with_suffix(".csv").read_text().count("NTREX+train v1") == 5
    assert tex_line(out, "NTREX+train v1") == ["train", "tatoeba", "300", "2", "1", "3"]
    assert "\n & & flores200 & & 2 & 1 & 3 \\\\\n" in re.sub(" +", " ", out.read_text())
    assert "|  |  | flores200 |  | 2 | 1 | 3 |" in out.with_suffix(".md").read_text()


# --- EMS v2 Table III: sizes are those of the weights, pairs those of a system's own languages

KEPT = {"en-fr": 18120 - 120 + 1000 - 5, "de-en": 2000 - 100, "de-fr": 50}


def models_table(tmp_path, *models, printed=()):
    report = demo_report(tmp_path / "report.json")
    write_models_table(list(models), report, list(printed), tmp_path / "t.tex")
    return csv_rows(tmp_path / "t.tex")


def test_parameters_are_counted_in_the_weights_with_and_without_the_input_embedding(tmp_path):
    row = models_table(tmp_path, write_model(tmp_path, "ems", ["en", "fr", "de"]))["ems"]
    assert row["#Param."] == str(4 * 3 + 2 * 5)
    assert row["to encode"] == str(10 * 4 + 4 * 3)


def test_pairs_are_those_kept_for_training_of_the_systems_own_languages(tmp_path):
    models = [
        write_model(tmp_path, "all", ["en", "fr", "de"]),
        write_model(tmp_path, "french", ["en", "fr"]),
        write_model(tmp_path, "half", ["en", "de"], share=0.5),
    ]
    rows = models_table(tmp_path, *models)
    assert [row["Langs"] for row in rows.values()] == ["3", "2", "2"]
    expected = [sum(KEPT.values()), KEPT["en-fr"], KEPT["de-en"] // 2]
    assert [row["Paral."] for row in rows.values()] == list(map(str, expected))


def test_sentences_of_documents_are_no_pairs(tmp_path):
    report = demo_report(tmp_path / "report.json")
    data = json.loads(report.read_text())
    counts = {"read": 5, "removed": {}, "kept": 5}
    own = {"corpus": "Own", "version": "v1", "role": "train", "pair": "en", "by_benchmark": {}}
    data["corpora"].append(own | counts | {"documents": counts})
    report.write_text(json.dumps(data))
    write_models_table([write_model(tmp_path, "a", ["en", "fr"])], report, [], tmp_path / "t.tex")
    assert csv_rows(tmp_path / "t.tex")["a"]["Paral."] == str(KEPT["en-fr"])


def test_printed_rows_are_those_that_are_named_and_stand_last(tmp_path):
    model = write_model(tmp_path, "ems", ["en", "fr"])
    rows = models_table(tmp_path, model, printed=["EMS", "LaBSE"])
    assert list(rows) == ["ems", "LaBSE (printed)", "EMS (printed)"]


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
def test_weights_that_are_missing_or_damaged_are_an_error_that_names_them(name, tmp_path):
    model = write_model(tmp_path, "ems", ["en", "fr"])
    for spoil in (lambda path: path.write_bytes(b"half"), lambda path: path.unlink()):
        spoil(model.with_name(name))
        with pytest.raises(EmsError, match=rf"{name}: cannot be read"):
            models_table(tmp_path, model)


def test_a_model_json_of_another_form_is_an_error_that_says_what_is_missing(tmp_path):
    model = write_model(tmp_path, "ems", ["en", "fr"])
    model.write_text(json.dumps({"name": "ems"}))
    with pytest.raises(EmsError, match="that is not empty under `languages`, found nothing"):
        models_table(tmp_path, model)


def test_documents_are_rows_of_their_own_and_counted_in_a_note(tmp_path):
    report = demo_report(tmp_path / "report.json")
    data = json.loads(report.read_text())
    counts = {"read": 9, "removed": {"evaluation": 2, "no_context": 1}, "kept": 6}
    documents = {"read": 5, "removed": {"no_context": 1, "empty": 2}, "kept": 2}
    own = {"corpus": "Own", "version": "v1", "pair": "en", "role": "train"} | counts
    data["corpora"].append(own | {"by_benchmark": {}, "documents": documents})
    report.write_text(json.dumps(data))
    write_corpora_table(report, tmp_path / "c.tex")
    row = csv_rows(tmp_path / "c")["en (documents)"]
    assert [row[name] for name in ("Read", "Decontaminated", "Kept")] == ["9", "2", "6"]
    assert "5 read, 2 kept; removed: no context 1, empty 2." in (tmp_path / "c.md").read_text()
    write_filters_table(report, tmp_path / "f.tex")
    assert csv_rows(tmp_path / "f")["Own v1"]["No context"] == "1"
    data["corpora"][-1]["documents"]["kept"] = 3
    report.write_text(json.dumps(data))
    with pytest.raises(EmsError, match="5 read less 3 removed is not the 3 kept"):
        write_corpora_table(report, tmp_path / "c.tex")
