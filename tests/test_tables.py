"""Laws of the tables of P@1 per language: ours and the printed numbers keep apart, languages
trained on and others too."""

import re
from typing import get_args

import jinja2
import pytest
from conftest import ROOT
from made.scores import write_scores
from made.tables import DECLARED, SEVEN, csv_rows, tex_line, write_table

from ems.base.errors import EmsError
from ems.bench.scores import UNSEEN
from ems.config.tables import Printed
from ems.tables.printed import load_models, load_pairs
from ems.tables.registry import outputs
from ems.tables.table import rounded


def tatoeba_rows(tmp_path, scores, printed=(), order=None):
    return write_table("tatoeba", scores, tmp_path / "tatoeba.tex", printed, order)


# --- numbers of the Tatoeba table


def test_a_value_is_the_mean_of_both_directions_and_means_are_over_unrounded_values(tmp_path):
    values = {code: (70.1 + step, 72.2 - 2 * step) for step, code in enumerate(SEVEN)}
    rows = tatoeba_rows(tmp_path, [write_scores(tmp_path, "EMS", values)])
    means = {code: (to + back) / 2 for code, (to, back) in values.items()}
    assert [rows["EMS"][code] for code in SEVEN] == [rounded(means[code]) for code in SEVEN]
    assert rows["EMS"]["Avg."] == rounded(sum(means.values()) / 7)
    less_than_laser = [code for code in SEVEN if code != "spa"]  # Table I: LASER has fewer there
    expected = rounded(sum(means[code] for code in less_than_laser) / 6)
    assert rows["EMS"]["<LASER 6/43"] == expected != rows["EMS"]["Avg."]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(80.25, "80.3"), (80.15, "80.2"), ((80.1 + 80.2) / 2, "80.2"), (100.0, "100.0"), (0.0, "0.0")],
)
def test_scores_are_rounded_half_up_in_decimal(value, shown):
    assert rounded(value) == shown


def test_languages_stand_in_blocks_of_fifteen(tmp_path):
    seen = list(load_models()["EMS"].seen)
    tatoeba_rows(tmp_path, [write_scores(tmp_path, "EMS", dict.fromkeys(reversed(seen), 50.0))])
    out = tmp_path / "tatoeba.tex"
    assert [len(tex_line(out, "Model", block)) for block in range(5)] == [15, 15, 15, 14, 6]
    assert out.read_text().count(r"\begin{tabular}{l" + "r" * 15 + "}") == 1


def test_rows_stand_in_the_order_given_then_the_rest_then_the_printed_ones(tmp_path):
    paths = [write_scores(tmp_path, name, dict.fromkeys(SEVEN, 50.0)) for name in "ABC"]
    rows = tatoeba_rows(tmp_path, paths, ["LaBSE", "EMS"], ["C", "A"])
    assert list(rows) == ["C", "A", "B", "LaBSE (printed)", "EMS (printed)"]
    text = (tmp_path / "tatoeba.tex").read_text()
    assert re.search(r"\nB & [^\n]*\n\\midrule\n\\textit{LaBSE \(printed\)}", text)


def test_the_heading_of_a_partial_group_says_how_much_is_there(tmp_path):
    rows = tatoeba_rows(tmp_path, [write_scores(tmp_path, "EMS", dict.fromkeys(SEVEN, 50.0))])
    assert list(rows["EMS"])[9:] == [
        "mUSE 7/14",
        "XTREME 7/37",
        "SBERT-distill 7/45",
        "<LASER 6/43",
        ">300k 7/42",
        "<300k 0/11",
    ]
    assert rows["EMS"]["<300k 0/11"] == ""
    assert r"$<$300k \\ 0/11" in (tmp_path / "tatoeba.tex").read_text()


def test_a_missing_language_is_a_dash_and_takes_the_means_that_need_it(tmp_path):
    whole = write_scores(tmp_path, "whole", dict.fromkeys(SEVEN, 50.0))
    part = write_scores(tmp_path, "part", dict.fromkeys(SEVEN[:-1], 60.0))
    rows = tatoeba_rows(tmp_path, [whole, part])
    assert rows["part"]["spa"] == rows["part"]["Avg."] == rows["part"]["mUSE 7/14"] == ""
    assert rows["part"]["<LASER 6/43"] == "60.0"  # spa is not of that group
    assert tex_line(tmp_path / "tatoeba.tex", "part")[-2:] == ["--", "--"]
    assert "% part has no score for spa" in (tmp_path / "tatoeba.tex").read_text()


# --- bold


def test_bold_marks_the_best_of_ours_ties_included_and_never_a_printed_row(tmp_path):
    first = write_scores(tmp_path, "A", {"deu": 40.0, "fra": 50.0, "spa": 60.01})
    second = write_scores(tmp_path, "B", {"deu": 41.0, "fra": 49.0, "spa": 60.04})
    tatoeba_rows(tmp_path, [first, second], ["EMS"])
    out = tmp_path / "tatoeba.tex"
    assert tex_line(out, "A")[:3] == ["40.0", r"\textbf{50.0}", r"\textbf{60.0}"]
    assert tex_line(out, "B")[:3] == [r"\textbf{41.0}", "49.0", r"\textbf{60.0}"]
    assert not any("textbf" in cell for cell in tex_line(out, "EMS (printed)"))
    assert "| **41.0** |" in out.with_suffix(".md").read_text()
    tatoeba_rows(tmp_path, [first], ["EMS"])  # one system alone is not the best of anything
    assert "textbf{" not in out.read_text()


def test_labse_of_ours_stands_in_italics_and_a_note_says_so_only_beside_it(tmp_path):
    values = {"labse": 99.0, "A": 60.0, "B": 50.0}
    paths = [write_scores(tmp_path, name, {"deu": value}) for name, value in values.items()]
    tatoeba_rows(tmp_path, paths, ["LaBSE", "LaBSE-EMS-MLP"])
    out = tmp_path / "tatoeba.tex"
    assert tex_line(out, "A")[0] == r"\textbf{60.0}"
    assert tex_line(out, r"\textit{labse}")[0] == r"\textit{99.0}"
    assert tex_line(out, r"\textit{LaBSE (printed)}")[0] == r"\textit{99.4}"
    assert tex_line(out, "LaBSE-EMS-MLP (printed)")[0] == "99.4"
    assert "% In italics: LaBSE" in out.read_text()
    tatoeba_rows(tmp_path, paths[1:], ["LASER"])
    assert "In italics" not in out.read_text()


def test_muse_stands_only_where_all_of_its_languages_are(tmp_path):
    codes = load_models()["EMS"].seen
    rows = tatoeba_rows(
        tmp_path, [write_scores(tmp_path, "A", dict.fromkeys(codes, 5.0))], ["mUSE"]
    )
    assert {value for value in rows["mUSE (printed)"].values() if value} == {
        "mUSE (printed)",
        "93.9",
    }
    text = (tmp_path / "tatoeba.tex").read_text()
    assert text.count("\nmUSE (printed) &") == 1  # in the block of the groups
    assert text.count("\\midrule\n") == 5 + 1  # under each heading, and above the one printed row
    assert (tmp_path / "tatoeba.md").read_text().count("mUSE (printed)") == 1
    rows = tatoeba_rows(tmp_path, [write_scores(tmp_path, "A", {"deu": 5.0})], ["mUSE"])
    assert list(rows) == ["A"]
    assert "(printed)" not in (tmp_path / "tatoeba.tex").read_text()


# --- printed rows


def test_a_note_names_the_languages_that_the_papers_give_two_readings_for(tmp_path):
    path = write_scores(tmp_path, "A", dict.fromkeys(load_models()["LASER2"].seen, 50.0))
    tatoeba_rows(tmp_path, [path], ["LASER2"])
    assert "two readings for ind, jpn" in (tmp_path / "tatoeba.tex").read_text()


def test_over_fewer_languages_a_printed_mean_is_recomputed_with_a_dagger(tmp_path):
    model = load_models()["EMS"]
    path = write_scores(tmp_path, "A", dict.fromkeys(SEVEN, 50.0))
    rows = tatoeba_rows(tmp_path, [path], ["EMS"])
    mean = sum(model.seen[code] for code in SEVEN) / 7
    assert rows["EMS (printed)"]["Avg."] == rounded(mean)
    out = tmp_path / "tatoeba.tex"
    assert tex_line(out, "EMS (printed)")[-1].endswith(r"\rlap{$^{\dagger}$}")
    assert r"\footnotesize $^{\dagger}$ mean of the printed values" in out.read_text()
    assert not any("dagger" in cell for cell in tex_line(out, "A"))
    path = write_scores(tmp_path, "A", dict.fromkeys(load_models()["LASER"].unseen, 50.0))
    rows = tatoeba_rows(tmp_path, [path], ["LASER"])  # trained on what Table VI calls unseen
    assert (rows["LASER (printed)"]["isl"], rows["LASER (printed)"]["Avg."]) == ("95.6", "47.5")


def test_an_experiment_may_ask_for_every_printed_model_and_for_no_other():
    allowed = get_args(Printed)
    printed = [table.printed for table in DECLARED.values() if table.printed]
    models = {name for paper in printed if not paper.every for name in paper.models()}
    assert set(allowed) == models | {"Reimers and Gurevych"}


def test_a_system_named_like_a_printed_row_is_an_error(tmp_path):
    path = write_scores(tmp_path, "EMS (printed)", {"deu": 50.0})
    with pytest.raises(EmsError, match="named alike"):
        write_table("tatoeba", [path], tmp_path / "t.tex", ["EMS"], None)


# --- languages never trained on: EMS v2 Table VI

ALL = list(load_models()["EMS"].unseen)


def unseen_scores(folder, system, values, /, seen=None):
    """Scores of languages never trained on, `values`, and of others, `seen`."""
    return write_scores(folder, system, {**values, **(seen or {})}, dict.fromkeys(values, UNSEEN))


def unseen_rows(tmp_path, scores, printed=()):
    rows = write_table("tatoeba_unseen", scores, tmp_path / "unseen.tex", printed)
    return rows, (tmp_path / "unseen.tex").read_text()


def test_unseen_languages_stand_in_blocks_of_fourteen_and_beside_all_of_them_no_note(tmp_path):
    path = unseen_scores(tmp_path, "A", dict.fromkeys(reversed(ALL), 50.0), seen={"deu": 90.0})
    _, text = unseen_rows(tmp_path, [path], ["LASER2", "EMS"])
    blocks = [tex_line(tmp_path / "unseen.tex", "Model", block) for block in range(4)]
    assert [len(block) for block in blocks] == [14, 14, 14, 13]  # 54 languages and the average
    assert "says the paper" not in text


def test_over_fewer_unseen_languages_a_printed_mean_has_a_dagger_and_a_note_says_who_saw_them(
    tmp_path,
):
    printed = load_models()["EMS"].unseen
    path = unseen_scores(tmp_path, "A", dict.fromkeys(ALL[:5], 9.0))
    rows, text = unseen_rows(tmp_path, [path], ["EMS", "LASER"])
    assert rows["EMS (printed)"]["Avg."] == rounded(sum(printed[code] for code in ALL[:5]) / 5)
    assert tex_line(tmp_path / "unseen.tex", "EMS (printed)")[-1].endswith(r"\rlap{$^{\dagger}$}")
    assert "of Table VI, says the paper: LASER." in text


def test_each_language_is_in_the_one_table_or_the_other_and_so_is_its_mean(tmp_path):
    path = unseen_scores(tmp_path, "A", {"isl": 10.0, "yid": 20.0}, seen={"deu": 80.0, "fra": 90.0})
    only = write_scores(tmp_path, "B", {"deu": 1.0})  # scores no unseen language
    unseen, _ = unseen_rows(tmp_path, [path, only])
    seen = tatoeba_rows(tmp_path, [path])["A"]
    assert list(unseen) == ["A"]
    assert list(unseen["A"]) == ["Model", "isl", "yid", "Avg."]
    assert list(seen)[:4] == ["Model", "deu", "fra", "Avg."]
    assert (unseen["A"]["Avg."], seen["Avg."]) == ("15.0", "85.0")
    assert not {"isl", "yid"} & set(seen)


def test_a_table_without_a_language_of_its_kind_is_an_error_that_names_the_file(tmp_path):
    seen = write_scores(tmp_path / "seen", "A", {"deu": 50.0})
    unseen = unseen_scores(tmp_path / "unseen", "A", {"isl": 50.0})
    for name, path in (("tatoeba_unseen", seen), ("tatoeba", unseen)):
        with pytest.raises(EmsError, match="leave this table out") as error:
            write_table(name, [path], tmp_path / "t.tex")
        assert str(path) in str(error.value)
    assert not list(tmp_path.glob("t.*"))


def test_a_language_seen_by_one_system_and_not_by_another_is_an_error(tmp_path):
    first = unseen_scores(tmp_path, "A", {"isl": 50.0}, seen={"deu": 50.0})
    second = write_scores(tmp_path, "B", {"isl": 50.0, "deu": 50.0}, {"isl": "is"})
    with pytest.raises(EmsError, match="isl is language is, but und in") as error:
        write_table("tatoeba_unseen", [first, second], tmp_path / "t.tex", [])
    assert str(first) in str(error.value)
    assert str(second) in str(error.value)


# --- systems with some of the languages

FAMILIES = {"ugt": ("ugt-fr", "ugt-de"), "xtr": ("xtr-fr", "xtr-de"), "mixed": ("xtr-de", "both")}


def test_systems_of_an_entry_share_a_row_unless_one_is_alone_or_two_have_a_language(tmp_path):
    values = {
        "ugt-fr": {"fra": (80.0, 82.0)},
        "both": {"fra": 70.0, "deu": 60.0},
        "ugt-de": {"deu": 50.0},
        "xtr-de": {"deu": 90.0},
    }
    scores = [write_scores(tmp_path, name, of) for name, of in values.items()]
    rows = write_table("tatoeba", scores, tmp_path / "t.tex", families=FAMILIES)
    assert {name: [row[c] for c in ("deu", "fra", "Avg.")] for name, row in rows.items()} == {
        "ugt": ["50.0", "81.0", "65.5"],
        "both": ["60.0", "70.0", "65.0"],
        "xtr-de": ["90.0", "", ""],
    }
    notes = (tmp_path / "t.md").read_text()
    assert "A system of its own for each language: ugt." in notes
    assert "xtr-de has no score for fra; means need all of theirs." in notes
    order = ["xtr-de", "ugt-de", "ugt-fr", "both"]
    write_table("tatoeba", scores, tmp_path / "t.tex", order=order, families=FAMILIES)
    assert list(csv_rows(tmp_path / "t.tex")) == ["xtr-de", "ugt", "both"]
    rows = tatoeba_rows(tmp_path, scores)
    assert [row["Avg."] for row in rows.values()] == ["", "65.0", "", ""]
    assert "for each language:" not in (tmp_path / "tatoeba.md").read_text()


def test_no_score_files_at_all_are_an_error_that_names_the_file(tmp_path):
    with pytest.raises(EmsError, match=r"no score files.*ntrex\.json"):
        write_table("ntrex", [], tmp_path / "t.tex")


def test_ntrex_has_the_languages_of_table_one_in_its_order_and_says_what_it_ranks(tmp_path):
    values = {code: float(number) for number, code in enumerate(reversed(list(load_pairs())))}
    paths = [
        write_scores(tmp_path, name, {"xx": 61.0 + at, **values}, benchmark="ntrex")
        for at, name in enumerate("AB")
    ]
    row = write_table("ntrex", paths, tmp_path / "ntrex.tex")["A"]
    assert list(row) == ["Model", *load_pairs(), "xx", "Avg."]
    assert row["Avg."] == "30.5"  # of 0 to 61
    text = (tmp_path / "ntrex.tex").read_text()
    assert "among 1,000 sentences of each language" in text
    assert "documents of NTREX that neither training nor validation holds" in text
    assert "printed" not in text


# --- what the report says

CLASSIFIED = ["mldoc", "cls", "marc", "rcv2", "xnli", "sib200", "counterfactual"]  # share a text


def test_captions_of_the_report_are_there_for_every_table_and_figure_and_differ():
    every = [item for of in outputs().values() for item in of.items()]
    captions = [output.shown.paragraph for name, output in every if name not in CLASSIFIED[1:]]
    captions.append((ROOT / "rules" / "report" / "costs.rst").read_text(encoding="utf-8"))
    assert all(captions)
    assert len(set(captions)) == len(captions)
    assert len({outputs()["table"][name].shown.paragraph for name in CLASSIFIED}) == 1
    template = jinja2.Template(
        (ROOT / "rules" / "report" / "shown.rst").read_text(encoding="utf-8")
    )
    assert template.render(snakemake={"params": {"report": "words"}}).strip() == "words"
