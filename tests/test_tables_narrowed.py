"""Laws of the tables and figures of systems with some of the languages: a shared row, or dashes."""

import re

import pytest
from scores_made import write_scores
from tables_made import csv_rows, demo_report, write_table

from ems.benchmarks.tatoeba.table import plot_tatoeba
from ems.tables.pairs import plot_pairs
from ems.tables.vocabulary import write_vocabulary_table

FAMILIES = {"ugt": ("ugt-fr", "ugt-de"), "xtr": ("xtr-fr", "xtr-de")}
ISO = {"deu": "de", "fra": "fr"}


@pytest.fixture
def scores(tmp_path):
    """Two models of one pair each in `ugt` and one in `xtr`, and a model of both pairs."""
    found = {
        "ugt-fr": {"fra": (80.0, 82.0)},
        "both": {"fra": 70.0, "deu": 60.0},
        "ugt-de": {"deu": 50.0},
        "xtr-de": {"deu": 90.0},
    }
    return [write_scores(tmp_path, name, values, ISO) for name, values in found.items()]


def tatoeba(tmp_path, scores, *more):
    write_table("tatoeba", scores, tmp_path / "t.tex", [], *more)
    rows = csv_rows(tmp_path / "t.tex")
    notes = (tmp_path / "t.md").read_text()
    return {
        name: [row[code] for code in ("deu", "fra", "Avg.")] for name, row in rows.items()
    }, notes


def test_the_systems_of_an_entry_share_a_row_with_a_mean_over_their_languages(tmp_path, scores):
    rows, notes = tatoeba(tmp_path, scores, None, FAMILIES)
    assert rows == {
        "ugt": ["50.0", "81.0", "65.5"],
        "both": ["60.0", "70.0", "65.0"],
        "xtr-de": ["90.0", "", ""],  # the only one of its entry: no row to share
    }
    assert "A system of its own for each language: ugt." in notes
    assert "xtr-de has no score for fra; means need all of theirs." in notes


def test_a_shared_row_stands_where_its_first_system_is_named(tmp_path, scores):
    order = ["xtr-de", "ugt-de", "ugt-fr", "both"]
    assert list(tatoeba(tmp_path, scores, order, FAMILIES)[0]) == ["xtr-de", "ugt", "both"]


def test_systems_of_their_own_have_rows_with_dashes_and_no_mean(tmp_path, scores):
    rows, notes = tatoeba(tmp_path, scores)
    assert rows["ugt-fr"] == ["", "81.0", ""]
    assert rows["ugt-de"] == ["50.0", "", ""]
    assert rows["both"][2] == "65.0"
    assert "for each language:" not in notes


def test_systems_with_a_language_in_common_do_not_share_a_row(tmp_path, scores):
    families = {"mixed": ("ugt-fr", "both")}
    assert list(tatoeba(tmp_path, scores, None, families)[0]) == [
        *("ugt-fr", "both", "ugt-de", "xtr-de")
    ]


def test_the_unseen_table_has_the_systems_that_score_unseen_languages(tmp_path, scores):
    wide = write_scores(tmp_path, "wide", {"fra": 1.0, "isl": 2.0}, ISO | {"isl": "und"})
    write_table("tatoeba_unseen", [*scores, wide], tmp_path / "u.tex", [], ["ugt-fr", "wide"])
    assert list(csv_rows(tmp_path / "u.tex")) == ["wide"]


def test_ntrex_shares_rows_too(tmp_path):
    changes = {"benchmark": "ntrex", "version": "v1+test"}
    paths = [
        write_scores(tmp_path, f"ugt-{code}", {code: value}, **changes)
        for code, value in (("fr", 10.0), ("de", 20.0))
    ]
    write_table("ntrex", paths, tmp_path / "n.tex", families=FAMILIES)
    assert csv_rows(tmp_path / "n.tex")["ugt"] == {
        **{"Model": "ugt", "de": "20.0", "fr": "10.0", "Avg.": "15.0"}
    }


def test_the_figures_show_an_entry_once(tmp_path, scores):
    plot_tatoeba(scores, tmp_path / "bars.svg", FAMILIES)
    report = demo_report(tmp_path / "decontamination.json")
    plot_pairs(scores, report, tmp_path / "pairs.svg", FAMILIES)
    for name in ("bars", "pairs"):
        texts = re.findall(r"<!-- (.*?) -->", (tmp_path / f"{name}.svg").read_text())
        assert [texts.count(label) for label in ("ugt", "both", "xtr-de")] == [1, 1, 1]
        assert not {"ugt-fr", "ugt-de"} & set(texts)


def vocabulary_report(path, languages, latin):
    counts = {"lines": 10, "characters": 100, "tokens": 20, "unknown": 1}
    found = dict.fromkeys(languages, counts)
    scripts = {"Latin": latin, "control": 5}
    path.write_text(
        f'{{"pieces": {latin + 5}, "scripts": {scripts}, "languages": {found}}}'.replace("'", '"')
    )
    return path


def test_several_vocabularies_stand_below_each_other_under_their_names(tmp_path):
    reports = [
        vocabulary_report(tmp_path / "fr.json", ["en", "fr"], 300),
        vocabulary_report(tmp_path / "de.json", ["en", "de"], 200),
    ]
    write_vocabulary_table(reports, tmp_path / "v.tex")
    rows = csv_rows(tmp_path / "v.tex")
    names = ["fr: fr", "fr: en", "fr: Latin script", "fr: control symbols"]
    names += [name.replace("fr", "de") for name in names]
    assert list(rows) == names
    assert (rows["fr: Latin script"]["Pieces"], rows["de: Latin script"]["Pieces"]) == (
        "300",
        "200",
    )
    assert "(fr: 305 pieces, de: 205 pieces)" in (tmp_path / "v.md").read_text()
    assert (tmp_path / "v.tex").read_text().count(r"\midrule") == 1 + 3
    write_vocabulary_table(reports[:1], tmp_path / "one.tex")
    assert list(csv_rows(tmp_path / "one.tex")) == ["fr", "en", "Latin script", "control symbols"]
