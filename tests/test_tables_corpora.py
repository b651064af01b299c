"""Laws of the tables of training data: counts add up, each pair is counted where it belongs."""

import csv
import json
import re

import pytest
from tables_made import csv_rows, demo_report, tex_line, write_report

from ems.errors import EmsError
from ems.tables.corpora import human, write_corpora_table, write_decontamination_table


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


@pytest.mark.parametrize("spoil", ["key", "against", "corpora"])
def test_a_report_that_lacks_something_is_an_error_that_names_it(tmp_path, report, spoil):
    data = json.loads(report.read_text())
    del data[spoil]
    report.write_text(json.dumps(data))
    with pytest.raises(EmsError, match=spoil):
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
    found = {name: {"en": 2, "de": 1, "pairs": 3} for name in BENCHMARKS}
    entries = [
        ("TED", "train", "de-en", 500, {"evaluation": 5}, found),
        ("NTREX+train", "train", "de-en", 300, {"evaluation": 7}, found),
        ("NTREX+validation", "validation", "de-en", 200, {"evaluation": 4}, found),
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


def test_without_parts_no_note_speaks_of_them(tmp_path, report):
    write_decontamination_table(report, tmp_path / "decontamination.tex")
    assert "is a part of" not in (tmp_path / "decontamination.tex").read_text()
