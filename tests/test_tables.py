"""Laws of the table of Tatoeba: ours and the printed numbers keep apart, bytes repeat."""

import re

import jinja2
import pytest
import yaml
from conftest import ROOT
from scores_made import row, write_scores
from tables_made import DECLARED, SEVEN, SUFFIXES, csv_rows, tex_line, write_table

from ems.benchmarks.tatoeba.table import plot_tatoeba
from ems.errors import EmsError
from ems.tables.printed import load_models
from ems.tables.registry import figures, tables, timed
from ems.tables.table import rounded


def tatoeba_rows(tmp_path, scores, printed=(), order=None):
    write_table("tatoeba", scores, tmp_path / "tatoeba.tex", list(printed), order)
    return csv_rows(tmp_path / "tatoeba.tex")


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


def test_languages_stand_in_the_papers_order_in_blocks_of_fifteen(tmp_path):
    seen = list(load_models()["EMS"].seen)
    path = write_scores(tmp_path, "EMS", dict.fromkeys(reversed(seen), 50.0))
    tatoeba_rows(tmp_path, [path])
    out = tmp_path / "tatoeba.tex"
    blocks = [tex_line(out, "Model", block) for block in range(5)]
    assert [len(block) for block in blocks] == [15, 15, 15, 14, 6]
    assert [name for block in blocks[:4] for name in block] == [*seen, "Avg."]
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


def test_one_system_alone_is_not_the_best_of_anything(tmp_path):
    tatoeba_rows(tmp_path, [write_scores(tmp_path, "A", dict.fromkeys(SEVEN, 50.0))], ["EMS"])
    assert "textbf{" not in (tmp_path / "tatoeba.tex").read_text()


def test_labse_of_ours_stands_in_italics_and_does_not_compete(tmp_path):
    values = {"labse": 99.0, "A": 60.0, "B": 50.0}
    paths = [write_scores(tmp_path, name, {"deu": value}) for name, value in values.items()]
    tatoeba_rows(tmp_path, paths, ["LaBSE", "LaBSE-EMS-MLP"])
    out = tmp_path / "tatoeba.tex"
    assert tex_line(out, "A")[0] == r"\textbf{60.0}"
    assert tex_line(out, r"\textit{labse}")[0] == r"\textit{99.0}"
    assert tex_line(out, r"\textit{LaBSE (printed)}")[0] == r"\textit{99.4}"
    assert tex_line(out, "LaBSE-EMS-MLP (printed)")[0] == "99.4"
    assert "% In italics: LaBSE" in out.read_text()
    assert "| *labse* | *99.0* |" in out.with_suffix(".md").read_text()
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


def test_printed_rows_are_absent_beside_another_version(tmp_path):
    path = write_scores(tmp_path, "A", dict.fromkeys(SEVEN, 50.0), version="demo-v1")
    rows = tatoeba_rows(tmp_path, [path], ["EMS", "LASER"])
    assert list(rows) == ["A"]
    text = (tmp_path / "tatoeba.tex").read_text()
    assert "% Printed rows left out (EMS, LASER): they are of Tatoeba v1" in text
    assert "(printed)" not in text


def test_over_all_languages_a_printed_row_is_exactly_as_printed(tmp_path):
    model = load_models()["LASER2"]
    path = write_scores(tmp_path, "A", dict.fromkeys(model.seen, 50.0))
    rows = tatoeba_rows(tmp_path, [path], ["LASER2"])
    row = rows["LASER2 (printed)"]
    assert row["Avg."] == "81.5"
    assert row["<300k (11)"] == "66.4"  # its languages give 66.47: what is printed stays
    assert row["SBERT-distill (48)"] == ""  # printed as a dash
    assert {code: float(row[code]) for code in model.seen} == model.seen
    text = (tmp_path / "tatoeba.tex").read_text()
    assert "dagger" not in text
    assert "two readings for ind, jpn" in text


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


def test_languages_of_table_six_that_ours_were_trained_on_take_their_values_from_there(tmp_path):
    path = write_scores(tmp_path, "A", dict.fromkeys(load_models()["LASER"].unseen, 50.0))
    rows = tatoeba_rows(tmp_path, [path], ["LASER"])
    assert (rows["LASER (printed)"]["isl"], rows["LASER (printed)"]["Avg."]) == ("95.6", "47.5")


# --- the same inputs give the same bytes


def test_tables_and_figures_depend_only_on_their_inputs(tmp_path):
    written = []
    for folder in (tmp_path / "one", tmp_path / "two" / "deeper"):
        paths = [
            write_scores(folder, name, dict.fromkeys(SEVEN, 50.0 + step))
            for step, name in enumerate("AB")
        ]
        write_table("tatoeba", paths, folder / "t.tex", ["EMS"], None)
        plot_tatoeba(paths, folder / "f.svg")
        names = [*(f"t{suffix}" for suffix in SUFFIXES), "f.svg", "f.png"]
        written.append([(folder / name).read_bytes() for name in names])
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in b"".join(written[0])


# --- errors


def test_an_empty_list_of_scores_is_an_error(tmp_path):
    with pytest.raises(EmsError, match="no score files"):
        write_table("tatoeba", [], tmp_path / "t.tex", [], None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "demo-v1"}, "version"),
        ({"data_sha256": "e" * 64}, "data_sha256"),
        ({"benchmark": "bucc"}, "expected tatoeba under `benchmark`, found 'bucc'"),
        ({"metric": "F1"}, "expected P@1 under `metric`, found 'F1'"),
        ({"system": "A"}, "two score files"),
        ({"rows": []}, "at least one score"),
        ({"rows": [row("deu", "en", 50.0), row("en", "deu", 101)]}, "a percentage under `rows.1"),
        ({"rows": [row("deu", "en", 50.0)] * 2}, "expected one row of deu-en, found two"),
    ],
)
def test_scores_that_cannot_share_a_table_are_an_error_that_names_the_file(
    tmp_path, changes, message
):
    first = write_scores(tmp_path, "A", {"deu": 50.0})
    second = write_scores(tmp_path, "B", {"deu": 50.0}, **changes)
    for write in (
        lambda: write_table("tatoeba", [first, second], tmp_path / "t.tex", [], None),
        lambda: plot_tatoeba([first, second], tmp_path / "f.svg"),
    ):
        with pytest.raises(EmsError, match=message) as error:
            write()
        assert str(second) in str(error.value)
    assert not list(tmp_path.glob("*.*"))


def test_an_experiment_may_ask_for_every_printed_model_and_for_no_other():
    schema = yaml.safe_load((ROOT / "schemas" / "experiment.schema.yaml").read_text())
    allowed = schema["properties"]["tables"]["properties"]["printed"]["items"]["enum"]
    printed = [table.printed for table in DECLARED.values() if table.printed]
    models = {name for paper in printed if not paper.every for name in paper.models()}
    assert set(allowed) == models | {"Reimers and Gurevych"}


def test_a_system_named_like_a_printed_row_is_an_error(tmp_path):
    path = write_scores(tmp_path, "EMS (printed)", {"deu": 50.0})
    with pytest.raises(EmsError, match="named alike"):
        write_table("tatoeba", [path], tmp_path / "t.tex", ["EMS"], None)


CLASSIFIED = ["mldoc", "cls", "marc", "rcv2", "xnli", "sib200", "counterfactual"]  # share a text
SHOWN = {"table": tables(), "figure": figures(), "timed": timed()}  # by file of report/


def test_captions_of_the_report_are_there_for_every_table_and_figure_and_differ():
    captions = [
        _caption(file, output.shown.report)
        for file, outputs in SHOWN.items()
        for name, output in outputs.items()
        if name not in CLASSIFIED[1:]
    ]
    captions.append(_caption("costs", ""))
    assert all(captions)
    assert len(set(captions)) == len(captions)
    assert len({tables()[name].shown.report for name in CLASSIFIED}) == 1


def _caption(file, report):
    text = (ROOT / "report" / f"{file}.rst").read_text(encoding="utf-8")
    return jinja2.Template(text).render(snakemake={"params": {"report": report}}).strip()
