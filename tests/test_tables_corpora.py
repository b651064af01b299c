"""Laws of the tables of training data: counts add up, each pair is counted where it belongs."""

import csv
import json

import pytest
from tables_made import csv_rows, write_report

from ems.errors import EmsError
from ems.tables.corpora import human, write_corpora_table, write_decontamination_table


@pytest.fixture
def report(tmp_path):
    found = {"tatoeba": {"en": 100, "fr": 90, "pairs": 120}, "flores200": {"en": 1, "pairs": 1}}
    german = {"tatoeba": {"en": 7, "de": 8, "pairs": 9}}
    entries = [
        ("Demo", "train", "en-fr", 18120, {"empty": 0, "evaluation": 120, "cap": 0}, found),
        ("TED", "train", "en-fr", 1000, {"empty": 5, "evaluation": 0}, {}),
        ("Demo", "train", "de-en", 2000, {"evaluation": 9, "cap": 91}, german),
        ("TED", "train", "de-fr", 50, {}, {}),
        ("Demo", "validation", "en-fr", 500, {"evaluation": 3}, {"tatoeba": {"pairs": 3}}),
    ]
    return write_report(tmp_path / "decontamination.json", entries, ("tatoeba", "flores200"))


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
