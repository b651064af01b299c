"""Laws of the tables of classification: rows, means, deviations, the papers' rows beside ours."""

from statistics import mean, stdev

import pytest
from made.scores import fives, write_accuracies
from made.tables import csv_rows, tex_line, write_table

from ems.tables.printed import AVERAGE, load_accuracies

MLDOC = [name for name in load_accuracies("ems-v2-table11-mldoc")["EMS"] if name != AVERAGE]
CLS = [name for name in load_accuracies("ems-v2-table12-amazon-v1")["EMS"] if name != AVERAGE]


def test_a_row_is_the_mean_of_the_seeds_and_the_line_under_it_their_deviation(tmp_path):
    values = {"ems": fives(MLDOC), "other": fives(MLDOC, 60.0)}
    paths = [write_accuracies(tmp_path, "mldoc", name, of) for name, of in values.items()]
    out = tmp_path / "mldoc.tex"
    rows = write_table("mldoc", paths, out)
    assert list(rows) == ["ems", "ems, s.d.", "other", "other, s.d."]
    assert list(rows["ems"])[1:] == [*MLDOC, AVERAGE]
    for system, of in values.items():
        for name, seeds in of.items():
            assert float(rows[system][name]) == pytest.approx(mean(seeds), abs=0.051)
            assert float(rows[f"{system}, s.d."][name]) == pytest.approx(stdev(seeds), abs=0.051)
        averages = [mean(seeds[at] for seeds in of.values()) for at in range(5)]
        assert float(rows[system][AVERAGE]) == pytest.approx(mean(averages), abs=0.051)
        accuracy = float(rows[f"{system}, s.d."][AVERAGE])
        assert accuracy == pytest.approx(stdev(averages), abs=0.051)
    assert all(cell.startswith(r"\textbf{") for cell in tex_line(out, "ems"))
    assert not any(r"\textbf" in cell for cell in tex_line(out, "ems, s.d."))


def test_columns_of_domains_stand_in_a_block_for_each_language_pair(tmp_path):
    write_table("cls", [write_accuracies(tmp_path, "cls", "ems", fives(CLS))], tmp_path / "cls.tex")
    text = (tmp_path / "cls.md").read_text()
    heads = [line for line in text.splitlines() if line.startswith("| Model")]
    assert len(heads) == 3
    assert heads[0].count("en-de") == heads[0].count("de-en") == 3
    places = [heads[0].index(name) for name in ("en-de books", "de-en books", "en-de dvd")]
    assert places == sorted(places)
    assert heads[2].rstrip(" |").endswith(AVERAGE)


def test_what_is_learnt_in_english_is_named_by_the_target_and_english_is_not_averaged(tmp_path):
    values = {"en-fr": [50.0, 60.0], "en-en": [90.0, 90.0], "en-de": [70.0, 80.0]}
    path = write_accuracies(tmp_path, "sib200", "ems", values | {"en-af": [10.0, 20.0]})
    rows = write_table("sib200", [path], tmp_path / "t.tex", ["EMS"])
    assert list(rows) == ["ems", "ems, s.d."]
    assert list(rows["ems"])[1:] == ["en", "af", "de", "fr", AVERAGE]
    assert rows["ems"][AVERAGE] == "48.3"


def test_average_precision_has_a_line_of_its_own(tmp_path):
    precision = {"average precision": {"en-en": 50.0, "en-de": 51.0}}
    values = {"en-en": 70.0, "en-de": 60.0}
    path = write_accuracies(tmp_path, "pawsx", "ems", values, precision, protocol={"part": "test"})
    rows = write_table("pawsx", [path], tmp_path / "t.tex")
    assert list(rows) == ["ems", "ems, AP"]
    assert list(rows["ems, AP"].values()) == ["ems, AP", "50.0", "51.0", "51.0"]


def test_the_most_frequent_class_stands_below_ours_where_no_paper_prints_a_row(tmp_path):
    tables = {}
    for benchmark in ("counterfactual", "mldoc"):
        majority = {"most frequent class": {"en-de": 90.0, "en-fr": 80.0}}
        path = write_accuracies(tmp_path, benchmark, "ems", fives(["en-de", "en-fr"]), majority)
        tables[benchmark] = write_table(benchmark, [path], tmp_path / f"{benchmark}.tex")
    rows = tables["counterfactual"]
    assert list(rows) == ["ems", "ems, s.d.", "most frequent class"]
    assert list(rows["most frequent class"].values())[1:] == ["90.0", "80.0", "85.0"]
    assert r"\textbf" not in (tmp_path / "counterfactual.tex").read_text()
    assert "most frequent class" not in tables["mldoc"]


# --- models of one pair each


def bilingual(folder, *codes):
    """A score file of a model for English and each of some languages."""
    return [
        write_accuracies(folder, "mldoc", f"ugt-{code}", fives([f"en-{code}", f"{code}-en"]))
        for code in codes
    ]


def test_models_of_one_pair_stand_above_the_lightweight_papers_rows_in_its_classes(tmp_path):
    codes = ("it", "es", "de", "fr")
    paths, families = bilingual(tmp_path, *codes), {"ugt": [f"ugt-{code}" for code in codes]}
    out = tmp_path / "t.tex"
    rows = write_table("mldoc_bilingual", paths, out, ["Lightweight"], families=families)
    assert list(rows["ugt"])[1:3] == ["en-fr", "fr-en"]
    assert list(rows)[:2] == ["ugt", "ugt, s.d."]
    assert all(rows["ugt, s.d."].values())
    assert rows["LASER (printed)"]["de-en"] == "80.8"  # 76.7 in EMS v2, Table XI
    assert rows["MultiFit (printed)"]["fr-en"] == rows["MultiFit (printed)"][AVERAGE] == ""
    text = out.read_text()
    for first in ("MultiCCA + CNN", "Yu et al.", "mBERT"):
        assert "\\midrule\n" + first + " (printed)" in text
    assert text.count("\\midrule") == 4
    assert "fixed-dimensional sentence representation methods: Yu et al., LASER, T-LASER" in text
    assert "Lightweight, Tables 3 and 10" in text
    write_table("mldoc_bilingual", paths, out, [], families=families)
    assert list(csv_rows(out)) == ["ugt", "ugt, s.d."]


def test_over_fewer_languages_the_papers_rows_have_a_mean_of_ours(tmp_path):
    families = {"ugt": ["ugt-fr", "ugt-de"]}
    out = tmp_path / "t.tex"
    paths = bilingual(tmp_path, "fr", "de")
    write_table("mldoc_bilingual", paths, out, ["Lightweight"], families=families)
    assert csv_rows(out)["Lightweight (printed)"][AVERAGE] == "84.3"
    assert "dagger" in tex_line(out, "Lightweight (printed)")[-1]
    assert csv_rows(out)["mBERT (printed)"][AVERAGE] == ""
