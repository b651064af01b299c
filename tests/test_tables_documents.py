"""Laws of the tables of classification: rows, means, deviations, the papers' rows beside ours."""

from statistics import mean, stdev

import pytest
from scores_made import fives, row, write_accuracies
from tables_made import csv_rows, tex_line, write_table

from ems.errors import EmsError
from ems.tables.printed import ACCURACIES, AVERAGE, load_accuracies

MLDOC = [name for name in load_accuracies("mldoc")["EMS"] if name != AVERAGE]
CLS = [name for name in load_accuracies("cls")["EMS"] if name != AVERAGE]


def test_a_row_is_the_mean_of_the_seeds_and_the_line_under_it_their_deviation(tmp_path):
    values = {"ems": fives(MLDOC), "other": fives(MLDOC, 60.0)}
    paths = [write_accuracies(tmp_path, "mldoc", name, of) for name, of in values.items()]
    out = tmp_path / "mldoc.tex"
    write_table("mldoc", paths, out)
    rows = csv_rows(out)
    assert list(rows) == ["ems", "ems, s.d.", "other", "other, s.d."]
    assert list(rows["ems"])[1:] == [*MLDOC, AVERAGE]
    for system, of in values.items():
        for name, seeds in of.items():
            assert float(rows[system][name]) == pytest.approx(mean(seeds), abs=0.051)
            assert float(rows[f"{system}, s.d."][name]) == pytest.approx(stdev(seeds), abs=0.051)
        averages = [mean(seeds[at] for seeds in of.values()) for at in range(5)]
        assert float(rows[system][AVERAGE]) == pytest.approx(mean(averages), abs=0.051)
        found = float(rows[f"{system}, s.d."][AVERAGE])
        assert found == pytest.approx(stdev(averages), abs=0.051)
    assert all(cell.startswith(r"\textbf{") for cell in tex_line(out, "ems"))
    assert not any(r"\textbf" in cell for cell in tex_line(out, "ems, s.d."))


@pytest.mark.parametrize("benchmark", [name for name in ACCURACIES if name != "mldoc_bilingual"])
def test_printed_rows_are_the_papers_and_do_not_compete(benchmark, tmp_path):
    known = load_accuracies(benchmark)
    names = [name for name in known["LASER"] if name != AVERAGE]
    paths = [
        write_accuracies(tmp_path, benchmark, s, fives(names, 20.0 + n)) for n, s in enumerate("ab")
    ]
    out = tmp_path / f"{benchmark}.tex"
    write_table(benchmark, paths, out, ["EMS", "LASER", "LASER2"])
    rows = csv_rows(out)
    shown = {"EMS", "LASER"} if "EMS" in known else set(known)
    assert {label for label in rows if "printed" in label} == {
        f"{name} (printed)" for name in shown
    }
    heads = list(rows["a"])[1:]
    assert heads[-1] == AVERAGE
    for model in shown:
        printed = [known[model][name] for name in names]
        assert [float(rows[f"{model} (printed)"][head]) for head in heads[:-1]] == printed
        if AVERAGE in known[model]:
            assert float(rows[f"{model} (printed)"][AVERAGE]) == known[model][AVERAGE]
    text = out.read_text()
    assert not any("bf" in line for line in text.splitlines() if "(printed)" in line)
    assert ("dagger" in text) == (benchmark == "rcv2")  # of which the paper prints no average
    assert "% Rows marked printed: " in text


def test_columns_of_domains_stand_in_a_block_for_each_language_pair(tmp_path):
    path = write_accuracies(tmp_path, "cls", "ems", fives(CLS))
    write_table("cls", [path], tmp_path / "cls.tex")
    text = (tmp_path / "cls.md").read_text()
    heads = [line for line in text.splitlines() if line.startswith("| Model")]
    assert len(heads) == 3
    assert heads[0].count("en-de") == heads[0].count("de-en") == 3
    assert (
        heads[0].index("en-de books") < heads[0].index("de-en books") < heads[0].index("en-de dvd")
    )
    assert heads[2].rstrip(" |").endswith(AVERAGE)


def test_fewer_directions_than_the_papers_give_its_rows_a_mean_of_ours_with_a_dagger(tmp_path):
    some = ["en-de", "de-en", "en-zh"]
    path = write_accuracies(tmp_path, "mldoc", "ems", fives(some))
    write_table("mldoc", [path], tmp_path / "t.tex", ["EMS"])
    rows, printed = csv_rows(tmp_path / "t.tex"), load_accuracies("mldoc")["EMS"]
    found = float(rows["EMS (printed)"][AVERAGE])
    assert found == pytest.approx(mean(printed[name] for name in some), abs=0.051)
    assert "dagger" in tex_line(tmp_path / "t.tex", "EMS (printed)")[-1]


def test_what_is_learnt_in_english_is_named_by_the_target_and_english_is_not_averaged(tmp_path):
    values = {
        "en-fr": [50.0, 60.0],
        "en-en": [90.0, 90.0],
        "en-de": [70.0, 80.0],
        "en-af": [10.0, 20.0],
    }
    path = write_accuracies(tmp_path, "sib200", "ems", values)
    write_table("sib200", [path], tmp_path / "t.tex", ["EMS"])
    rows = csv_rows(tmp_path / "t.tex")
    assert list(rows["ems"])[1:] == ["en", "af", "de", "fr", AVERAGE]
    assert rows["ems"][AVERAGE] == "48.3"
    assert list(rows) == ["ems", "ems, s.d."]


def test_a_missing_direction_is_a_dash_and_a_note_that_names_it(tmp_path):
    whole = write_accuracies(tmp_path, "marc", "whole", fives(["en-de", "de-en", "en-fr"]))
    part = write_accuracies(tmp_path, "marc", "part", fives(["en-de", "de-en"]))
    write_table("marc", [whole, part], tmp_path / "t.tex")
    cells = tex_line(tmp_path / "t.tex", "part")
    assert cells[2] == cells[3] == "--"
    assert "part has no score for en-fr" in (tmp_path / "t.tex").read_text()


def test_systems_of_one_pair_each_share_a_row(tmp_path):
    first = write_accuracies(tmp_path, "mldoc", "ugt-de", fives(["en-de", "de-en"]))
    second = write_accuracies(tmp_path, "mldoc", "ugt-fr", fives(["en-fr", "fr-en"]))
    families = {"ugt": ("ugt-de", "ugt-fr")}
    write_table("mldoc", [first, second], tmp_path / "t.tex", families=families)
    rows = csv_rows(tmp_path / "t.tex")
    assert list(rows) == ["ugt", "ugt, s.d."]
    assert all(rows["ugt"].values())
    assert all(rows["ugt, s.d."].values())


def test_average_precision_has_a_line_of_its_own(tmp_path):
    precision = {"average precision": {"en-en": 50.0, "en-de": 51.0}}
    values = {"en-en": 70.0, "en-de": 60.0}
    protocol = {"part": "test"}
    path = write_accuracies(tmp_path, "pawsx", "ems", values, precision, protocol=protocol)
    write_table("pawsx", [path], tmp_path / "t.tex")
    rows = csv_rows(tmp_path / "t.tex")
    assert list(rows) == ["ems", "ems, AP"]
    assert rows["ems, AP"] == {"Model": "ems, AP", "en": "50.0", "de": "51.0", AVERAGE: "51.0"}


def test_the_most_frequent_class_stands_below_ours_where_no_paper_prints_a_row(tmp_path):
    for benchmark in ("counterfactual", "mldoc"):
        majority = {"most frequent class": {"en-de": 90.0, "en-fr": 80.0}}
        values = fives(["en-de", "en-fr"])
        path = write_accuracies(tmp_path, benchmark, "ems", values, majority)
        write_table(benchmark, [path], tmp_path / f"{benchmark}.tex")
    rows = csv_rows(tmp_path / "counterfactual.tex")
    assert list(rows) == ["ems", "ems, s.d.", "most frequent class"]
    assert list(rows["most frequent class"].values())[1:] == ["90.0", "80.0", "85.0"]
    assert r"\textbf" not in (tmp_path / "counterfactual.tex").read_text()
    assert "most frequent" not in (tmp_path / "mldoc.tex").read_text()


def test_printed_rows_are_left_out_of_other_data(tmp_path):
    path = write_accuracies(tmp_path, "mldoc", "ems", fives(MLDOC), version="mine")
    write_table("mldoc", [path], tmp_path / "t.tex", ["EMS"])
    assert list(csv_rows(tmp_path / "t.tex")) == ["ems", "ems, s.d."]
    assert (
        "Printed rows left out (EMS): they are of version v1, these scores of mine"
        in (tmp_path / "t.tex").read_text()
    )


def test_the_same_scores_give_the_same_bytes_whatever_their_order(tmp_path):
    paths = [write_accuracies(tmp_path, "mldoc", name, fives(MLDOC)) for name in ("a", "b")]
    for out, order in (("one", paths), ("two", paths[::-1])):
        write_table("mldoc", order, tmp_path / f"{out}.tex", ["EMS"], ["a", "b"])
    for suffix in (".tex", ".md", ".csv"):
        one, two = ((tmp_path / name).with_suffix(suffix).read_bytes() for name in ("one", "two"))
        assert one == two


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"metric": "P@1"},
            "expected accuracy under `metric`, found 'P@1'",
        ),
        ({"benchmark": "cls"}, "expected mldoc under `benchmark`, found 'cls'"),
        ({"rows": []}, "expected at least one score under `rows`"),
        ({"rows": [row("en", "de", 101)]}, "a percentage under `rows.0.value`, found 101"),
        ({"rows": [row("en", "de", None)]}, "found None"),
        ({"rows": [5]}, "expected a JSON object under `rows.0`"),
        ({"rows": [row("en", "de", 1, seed="x")]}, "under `rows.0.seed`, found 'x'"),
        ({"rows": [row("en", "", 1)]}, "text under `rows.0.target`"),
        ({"rows": [row("en", "xx", 1)]}, "the language xx under `languages`"),
        ({"version": ""}, "expected text under `version`"),
    ],
)
def test_a_malformed_score_file_is_told_with_its_name(changes, message, tmp_path):
    path = write_accuracies(tmp_path, "mldoc", "ems", fives(MLDOC), **changes)
    with pytest.raises(EmsError) as error:
        write_table("mldoc", [path], tmp_path / "t.tex")
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


def test_scores_of_other_data_cannot_share_a_table(tmp_path):
    first = write_accuracies(tmp_path, "mldoc", "a", fives(MLDOC))
    second = write_accuracies(tmp_path, "mldoc", "b", fives(MLDOC), data_sha256="e" * 64)
    with pytest.raises(EmsError, match="the mldoc scores are of different data"):
        write_table("mldoc", [first, second], tmp_path / "t.tex")
    with pytest.raises(EmsError, match="system a has two score files"):
        write_table("mldoc", [first, first], tmp_path / "t.tex")
    with pytest.raises(EmsError, match="no score files were given"):
        write_table("mldoc", [], tmp_path / "t.tex")


# --- models of one pair each


def bilingual(folder, *codes, **changes):
    """A score file of a model for English and each of some languages."""
    return [
        write_accuracies(
            folder, "mldoc", f"ugt-{code}", fives([f"en-{code}", f"{code}-en"]), **changes
        )
        for code in codes
    ]


def test_models_of_one_pair_stand_above_the_lightweight_papers_rows_in_its_classes(tmp_path):
    codes = ("it", "es", "de", "fr")
    paths, families = bilingual(tmp_path, *codes), {"ugt": [f"ugt-{code}" for code in codes]}
    out = tmp_path / "t.tex"
    write_table("mldoc_bilingual", paths, out, ["Lightweight"], families=families)
    rows = csv_rows(out)
    assert list(rows["ugt"])[1:3] == ["en-fr", "fr-en"]
    assert list(rows)[:2] == ["ugt", "ugt, s.d."]
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


def test_the_papers_rows_are_left_out_of_other_data_and_averaged_over_fewer_languages(tmp_path):
    families = {"ugt": ["ugt-fr", "ugt-de"]}
    out = tmp_path / "t.tex"
    paths = bilingual(tmp_path, "fr", "de")
    write_table("mldoc_bilingual", paths, out, ["Lightweight"], families=families)
    assert csv_rows(out)["Lightweight (printed)"][AVERAGE] == "84.3"
    assert "dagger" in tex_line(out, "Lightweight (printed)")[-1]
    assert csv_rows(out)["mBERT (printed)"][AVERAGE] == ""
    paths = bilingual(tmp_path, "fr", "de", version="mine")
    write_table("mldoc_bilingual", paths, out, ["Lightweight"], families=families)
    assert "(printed)" not in out.read_text()


@pytest.mark.parametrize("benchmark", ["mldoc", "mldoc_bilingual", "cls", "marc", "xnli"])
def test_each_printed_average_is_the_mean_of_its_row(benchmark):
    sizes = {"mldoc": 14, "mldoc_bilingual": 8, "cls": 18, "marc": 10, "xnli": 4}
    without = {"mBERT", "MultiFit"}  # of which the paper prints no direction into English
    averaged = [of for name, of in load_accuracies(benchmark).items() if name not in without]
    for values in averaged:
        of = [value for name, value in values.items() if name not in (AVERAGE, "en-en")]
        assert len(of) == sizes[benchmark]
        assert mean(of) == pytest.approx(values[AVERAGE], abs=0.05 + 1e-9)
