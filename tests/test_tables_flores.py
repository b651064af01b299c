"""Laws of the tables of FLORES-200 and the case study: Table VII's columns, its numbers apart."""

from made.scores import (
    both_measures,
    naive_mean,
    value_of,
    write_cosine,
    write_errors,
    write_flores,
)
from made.tables import tex_line, write_table

from ems.tables.printed import load_flores_groups, load_table
from ems.tables.table import rounded

MUSE, LOW = load_flores_groups().values()
PAIRS = ["af-gu", "hi-hy", "jv-ka", "kk-mr", "my-nb", "sw-ta", "te-tl", "ur-yo"]


def flores_rows(tmp_path, scores, printed=()):
    return write_table("flores", scores, tmp_path / "flores.tex", printed)


# --- Table VII


def test_the_groups_have_the_languages_and_the_directions_of_the_paper():
    assert [len(MUSE), len(LOW)] == [14, 16]
    assert list(load_flores_groups()) == ["mUSE (182)", "<300k (240)"]
    assert {code for pair in PAIRS for code in pair.split("-")} == set(LOW)
    for columns in load_table("ems-v2-table07-flores", "pair").values():
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


def test_a_system_with_fewer_languages_has_dashes_and_a_note_names_its_means_too(tmp_path):
    paths = [write_flores(tmp_path, "A", ["de", "fr", "hi", "hy"])]
    paths.append(write_flores(tmp_path, "B", ["de", "fr"]))
    rows = flores_rows(tmp_path, paths)
    assert rows["B"]["mUSE 2/182"] == rows["A"]["mUSE 2/182"] != ""
    assert rows["B"]["hi-hy"] == rows["B"]["All (12)"] == ""
    note = "% B has no score for hi-hy, <300k 2/240, All (12); means need all of theirs."
    assert note in (tmp_path / "flores.tex").read_text()


def test_printed_rows_are_absent_beside_fewer_sentences(tmp_path):
    path = write_flores(tmp_path, "A", MUSE, value_of, 30)
    assert list(flores_rows(tmp_path, [path], ["EMS"])) == ["A"]
    assert "Printed rows left out (EMS)" in (tmp_path / "flores.tex").read_text()


# --- xsim and xsim++


def test_both_measures_have_a_row_per_system_and_the_lowest_is_bold(tmp_path):
    paths = [*both_measures(tmp_path, "A", 1.5, 40), *both_measures(tmp_path, "B", 2.5, 30)]
    rows = write_table("xsim", paths, tmp_path / "xsim.tex", order=["B"])
    assert list(rows) == ["xsim: B", "xsim: A", "xsim++: B", "xsim++: A"]
    assert [rows["xsim: A"][name] for name in ("de", "fr", "Avg.")] == ["3.5", "1.5", "2.5"]
    out = tmp_path / "xsim.tex"
    assert tex_line(out, "xsim: A") == [r"\textbf{3.5}", r"\textbf{1.5}", r"\textbf{2.5}"]
    assert tex_line(out, "xsim: B") == ["4.5", "2.5", "3.5"]
    assert tex_line(out, "xsim++: B")[0] == r"\textbf{30.0}"
    assert tex_line(out, "xsim++: A")[0] == "40.0"
    assert "ratio margin, k = 4" in out.read_text()


def test_kinds_of_errors_are_shares_that_add_up_to_the_average(tmp_path):
    rows = write_table("xsim", both_measures(tmp_path, "A", 1.5, 40), tmp_path / "xsim.tex")
    row = rows["xsim++: A"]
    # of 200 sentences fr has 40 of each kind (20 %), de 80 misaligned (40 %)
    assert (row["misaligned"], row["number replacement"], row["Avg."]) == ("30.0", "10.0", "40.0")
    assert rows["xsim: A"]["misaligned"] == ""
    kinds = (tmp_path / "xsim.tex").read_text().rpartition("Model &")[2]
    assert "xsim++: A" in kinds
    assert "xsim: A" not in kinds  # xsim has none, so it has no row of dashes there


def test_systems_of_a_family_share_their_kinds_too(tmp_path):
    paths = [
        write_errors(tmp_path, f"C-{name}", "xsimpp", {name: 10.0}, {name: {kind: 20}})
        for name, kind in (("de", "x"), ("fr", "y"))
    ]
    row = write_table("xsim", paths, tmp_path / "xsim.tex", families={"C": ("C-de", "C-fr")})[
        "xsim++: C"
    ]
    assert [row[name] for name in ("de", "fr", "Avg.", "x", "y")] == ["10.0"] * 3 + ["5.0"] * 2


# --- the case study


def test_cosines_have_two_decimals_as_printed_and_the_papers_stand_below_in_its_order(tmp_path):
    paths = [write_cosine(tmp_path, name, value) for name, value in (("A", 0.964), ("B", -0.5))]
    printed = ["EMS", "LASER2", "LaBSE", "LASER"]
    rows = write_table("wordorder", paths, tmp_path / "wordorder.tex", printed)
    ours, papers = {"A": "0.96", "B": "-0.50"}, {"LASER": "0.90", "LaBSE": "0.95", "EMS": "0.97"}
    expected = ours | {f"{name} (printed)": value for name, value in papers.items()}
    assert [(name, row["Cosine"]) for name, row in rows.items()] == list(expected.items())
