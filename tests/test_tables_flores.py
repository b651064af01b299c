"""Laws of the tables of FLORES-200 and the case study: Table VII's columns, its numbers apart."""

import itertools

import pytest
from scores_made import (
    both_measures,
    naive_mean,
    row,
    value_of,
    write_cosine,
    write_errors,
    write_flores,
)
from tables_made import SUFFIXES, csv_rows, tex_line, write_table

from ems.benchmarks.flores200.table import plot_flores
from ems.errors import EmsError
from ems.tables.printed import load_flores, load_flores_groups, load_table
from ems.tables.table import rounded

MUSE, LOW = load_flores_groups().values()
PAIRS = ["af-gu", "hi-hy", "jv-ka", "kk-mr", "my-nb", "sw-ta", "te-tl", "ur-yo"]


def flores_rows(tmp_path, scores, printed=(), **how):
    write_table("flores", scores, tmp_path / "flores.tex", list(printed), **how)
    return csv_rows(tmp_path / "flores.tex")


# --- Table VII


def test_the_groups_have_the_languages_and_the_directions_of_the_paper():
    assert [len(MUSE), len(LOW)] == [14, 16]
    assert list(load_flores_groups()) == ["mUSE (182)", "<300k (240)"]
    assert {code for pair in PAIRS for code in pair.split("-")} == set(LOW)
    for columns in load_flores().values():
        assert list(columns) == ["mUSE (182)", *PAIRS, "<300k (240)"]


def test_the_columns_are_the_papers_then_all_and_values_are_means_of_directions(tmp_path):
    languages = ["en", *MUSE, *LOW]
    rows = flores_rows(tmp_path, [write_flores(tmp_path, "A", languages)])
    assert list(rows["A"]) == ["Model", "mUSE (182)", *PAIRS, "<300k (240)", "All (930)"]
    assert rows["A"]["mUSE (182)"] == rounded(naive_mean(MUSE))
    assert rows["A"]["<300k (240)"] == rounded(naive_mean(LOW))
    assert rows["A"]["All (930)"] == rounded(naive_mean(languages))
    for pair in PAIRS:
        one, other = pair.split("-")
        both = (value_of(one, other) + value_of(other, one)) / 2
        assert rows["A"][pair] == rounded(both)
        assert value_of(one, other) != value_of(other, one)
    assert rows["A"]["mUSE (182)"] != rows["A"]["<300k (240)"]


@pytest.mark.parametrize("model", list(load_flores()))
def test_a_printed_row_is_exactly_as_printed_in_the_papers_order(tmp_path, model):
    path = write_flores(tmp_path, "A", [*MUSE, *LOW])
    rows = flores_rows(tmp_path, [path], [model])
    assert list(rows) == ["A", f"{model} (printed)"]
    shown = rows[f"{model} (printed)"]
    assert {name: float(shown[name]) for name in load_flores()[model]} == load_flores()[model]
    assert shown["All (870)"] == ""
    assert "dagger" not in (tmp_path / "flores.tex").read_text()


def test_a_part_of_a_group_says_how_much_is_there_and_its_printed_mean_has_a_dagger(tmp_path):
    path = write_flores(tmp_path, "A", ["en", "de", "fr", "ja", "hi", "hy"])
    rows = flores_rows(tmp_path, [path], ["EMS", "LASER2"])
    assert list(rows["A"])[1] == "mUSE 6/182"
    assert rows["A"]["mUSE 6/182"] == rounded(naive_mean(["de", "fr", "ja"]))
    assert rows["A"]["<300k 2/240"] == rows["A"]["hi-hy"] != ""
    assert rows["A"]["af-gu"] == ""
    assert rows["EMS (printed)"]["mUSE 6/182"] == "99.7"
    assert rows["EMS (printed)"]["af-gu"] == "8.9"
    out = tmp_path / "flores.tex"
    printed = tex_line(out, "EMS (printed)")
    assert [cell.endswith(r"\rlap{$^{\dagger}$}") for cell in printed] == [
        name in ("mUSE 6/182", "<300k 2/240") for name in list(rows["A"])[1:]
    ]
    text = out.read_text()
    assert "as printed, over all directions of the group" in text
    assert "% No system was scored on af-gu, jv-ka, kk-mr" in text
    assert "% The paper prints no row of LASER2 there." in text


def test_printed_rows_are_absent_beside_other_data(tmp_path):
    for count, version in ((1012, "demo-v1"), (30, "v1")):
        path = write_flores(tmp_path, "A", MUSE, value_of, count, version=version)
        rows = flores_rows(tmp_path, [path], ["EMS"])
        assert list(rows) == ["A"]
        assert "Printed rows left out (EMS)" in (tmp_path / "flores.tex").read_text()


def test_a_system_with_fewer_languages_has_dashes_where_it_lacks_a_direction(tmp_path):
    paths = [write_flores(tmp_path, "A", ["de", "fr", "hi", "hy"])]
    paths.append(write_flores(tmp_path, "B", ["de", "fr"]))
    rows = flores_rows(tmp_path, paths)
    assert rows["B"]["mUSE 2/182"] == rows["A"]["mUSE 2/182"] != ""
    assert rows["B"]["hi-hy"] == rows["B"]["All (12)"] == ""
    text = (tmp_path / "flores.tex").read_text()
    assert "% B has no score for hi-hy, <300k 2/240, All (12);" in text


def test_bold_is_the_best_of_ours_and_systems_of_a_family_share_a_row(tmp_path):
    paths = [
        write_flores(tmp_path, "A", ["de", "fr"], lambda query, candidates: 50.0),
        write_flores(tmp_path, "B", ["de", "fr"], lambda query, candidates: 60),
        write_flores(tmp_path, "C-de", ["en", "de"]),
        write_flores(tmp_path, "C-fr", ["en", "fr"]),
    ]
    rows = flores_rows(tmp_path, paths, ["EMS"], families={"C": ("C-de", "C-fr")}, order=["B", "A"])
    assert list(rows) == ["B", "A", "C", "EMS (printed)"]
    out = tmp_path / "flores.tex"
    assert tex_line(out, "B")[0] == r"\textbf{60.0}"
    assert tex_line(out, "A")[0] == "50.0"
    assert rows["C"]["mUSE 2/182"] == ""  # de-fr is of neither
    assert "% A system of its own for each language: C." in out.read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "v2"}, "version"),
        ({"data_sha256": "e" * 64}, "data_sha256"),
        ({"metric": "F1"}, "expected P@1 under `metric`"),
        ({"rows": [row("x", "de_code", 1)]}, "expected the language x under `languages`"),
        ({"rows": [row("de_code", "fr_code", 101)]}, "`rows.0.value`, found 101"),
        ({"rows": [row("de_code", "fr_code", True)]}, "`rows.0.value`, found True"),
        (
            {"rows": [row("de_code", "fr_code", 1, None)]},
            "above 0 under `rows.0.count`, found None",
        ),
        ({"system": "A"}, "two score files"),
    ],
)
def test_scores_that_cannot_share_a_table_are_an_error_that_names_the_file(
    tmp_path, changes, message
):
    first = write_flores(tmp_path / "1", "A", ["de", "fr"])
    second = write_flores(tmp_path / "2", "B", ["de", "fr"], **changes)
    for write in (
        lambda: write_table("flores", [first, second], tmp_path / "t.tex", []),
        lambda: plot_flores([first, second], tmp_path / "f.svg"),
    ):
        with pytest.raises(EmsError, match=message) as error:
            write()
        assert str(second) in str(error.value)


# --- xsim and xsim++


def test_both_measures_have_a_row_per_system_and_the_lowest_is_bold(tmp_path):
    paths = [*both_measures(tmp_path, "A", 1.5, 40), *both_measures(tmp_path, "B", 2.5, 30)]
    write_table("xsim", paths, tmp_path / "xsim.tex", order=["B"])
    rows = csv_rows(tmp_path / "xsim.tex")
    assert list(rows) == ["xsim: B", "xsim: A", "xsim++: B", "xsim++: A"]
    assert [rows["xsim: A"][name] for name in ("de", "fr", "Avg.")] == ["3.5", "1.5", "2.5"]
    out = tmp_path / "xsim.tex"
    assert tex_line(out, "xsim: A") == [r"\textbf{3.5}", r"\textbf{1.5}", r"\textbf{2.5}"]
    assert tex_line(out, "xsim: B") == ["4.5", "2.5", "3.5"]
    assert tex_line(out, "xsim++: B")[0] == r"\textbf{30.0}"
    assert tex_line(out, "xsim++: A")[0] == "40.0"
    assert "ratio margin, k = 4" in out.read_text()


def test_kinds_of_errors_are_shares_that_add_up_to_the_average(tmp_path):
    write_table("xsim", both_measures(tmp_path, "A", 1.5, 40), tmp_path / "xsim.tex")
    rows = csv_rows(tmp_path / "xsim.tex")
    row = rows["xsim++: A"]
    # of 200 sentences fr has 40 of each kind (20 %), de 80 misaligned (40 %)
    assert (row["misaligned"], row["number replacement"], row["Avg."]) == ("30.0", "10.0", "40.0")
    assert rows["xsim: A"]["misaligned"] == ""
    kinds = (tmp_path / "xsim.tex").read_text().rpartition("Model &")[2]
    assert "xsim++: A" in kinds
    assert "xsim: A" not in kinds  # xsim has none, so it has no row of dashes there


def test_one_measure_alone_makes_a_table_without_kinds(tmp_path):
    write_table("xsim", both_measures(tmp_path, "A", 1.5, 40)[:1], tmp_path / "xsim.tex")
    assert list(csv_rows(tmp_path / "xsim.tex")["xsim: A"]) == ["Model", "de", "fr", "Avg."]


def test_systems_of_a_family_share_their_kinds_too(tmp_path):
    paths = [
        write_errors(tmp_path, f"C-{name}", "xsimpp", {name: 10.0}, {name: {kind: 20}})
        for name, kind in (("de", "x"), ("fr", "y"))
    ]
    write_table("xsim", paths, tmp_path / "xsim.tex", families={"C": ("C-de", "C-fr")})
    row = csv_rows(tmp_path / "xsim.tex")["xsim++: C"]
    assert [row[name] for name in ("de", "fr", "Avg.", "x", "y")] == ["10.0"] * 3 + ["5.0"] * 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": {"k": 5, "margin": "ratio"}}, "protocol"),
        ({"metric": "P@1"}, "expected error rate under `metric`"),
        ({"rows": []}, "at least one score under `rows`"),
        ({"data_sha256": "e" * 64}, "data_sha256"),
    ],
)
def test_error_rates_of_other_data_or_another_protocol_are_an_error(tmp_path, changes, message):
    first = write_errors(tmp_path, "A", "xsim", {"de": 1.0})
    second = write_errors(tmp_path, "B", "xsim", {"de": 1.0}, **changes)
    with pytest.raises(EmsError, match=message) as error:
        write_table("xsim", [first, second], tmp_path / "t.tex")
    assert str(second) in str(error.value)


def test_error_rates_without_their_protocol_and_no_files_at_all_are_an_error(tmp_path):
    path = write_errors(tmp_path, "A", "xsim", {"de": 1.0}, protocol={})
    with pytest.raises(EmsError, match=r"expected text under `protocol.margin`, found nothing"):
        write_table("xsim", [path], tmp_path / "t.tex")
    with pytest.raises(EmsError, match="no score files"):
        write_table("xsim", [], tmp_path / "t.tex")


# --- the case study


def test_cosines_have_two_decimals_as_printed_and_stand_beside_the_papers(tmp_path):
    paths = [write_cosine(tmp_path, name, value) for name, value in (("A", 0.964), ("B", -0.5))]
    printed = ["LASER", "LASER2", "SBERT-distill", "EMS", "LaBSE"]
    write_table("wordorder", paths, tmp_path / "wordorder.tex", printed, ["B"])
    rows = csv_rows(tmp_path / "wordorder.tex")
    assert {name: row["Cosine"] for name, row in rows.items()} == {
        "B": "-0.50",
        "A": "0.96",
        "LASER (printed)": "0.90",
        "SBERT-distill (printed)": "0.97",
        "LaBSE (printed)": "0.95",
        "EMS (printed)": "0.97",
    }
    assert {
        f"{v['Cosine']:.2f}"
        for v in load_table("ems-v2-section5h-similarity", "Cosine", "cosine_similarity").values()
    } == {"0.90", "0.97", "0.95"}


@pytest.mark.parametrize("value", [None, "0.9", 2.0])
def test_what_is_no_cosine_is_an_error_that_names_the_file(tmp_path, value):
    path = write_cosine(tmp_path, "A", value)
    with pytest.raises(EmsError, match=r"expected a cosine under `rows.0.value`") as error:
        write_table("wordorder", [path], tmp_path / "t.tex", [])
    assert str(path) in str(error.value)


# --- the same inputs give the same bytes


def test_tables_and_the_map_depend_only_on_their_inputs(tmp_path):
    written = []
    for folder in (tmp_path / "one", tmp_path / "two" / "deeper"):
        flores = [write_flores(folder, name, [*MUSE, *LOW]) for name in "AB"]
        errors = [*both_measures(folder, "A", 1.5, 40), *both_measures(folder, "B", 2.5, 30)]
        cosines = [write_cosine(folder, name, 0.5) for name in "AB"]
        write_table("flores", flores, folder / "f.tex", ["EMS"])
        write_table("xsim", errors, folder / "x.tex")
        write_table("wordorder", cosines, folder / "w.tex", ["EMS"])
        plot_flores(flores, folder / "map.svg")
        names = [f"{n}{suffix}" for n, suffix in itertools.product("fxw", SUFFIXES)]
        written.append([(folder / n).read_bytes() for n in (*names, "map.svg", "map.png")])
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in b"".join(written[0])


def test_the_map_names_its_system_and_each_language_on_both_sides(tmp_path):
    paths = [write_flores(tmp_path, name, ["en", "de", "fr"]) for name in "AB"]
    plot_flores(paths, tmp_path / "map.svg")
    text = (tmp_path / "map.svg").read_text()
    assert "<!-- FLORES-200 v1: P@1 of A -->" in text
    assert [text.count(f"<!-- {code} -->") for code in ("en", "de", "fr")] == [2, 2, 2]
