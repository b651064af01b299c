"""Every table that a paper prints: its copy agrees with itself, its rows stand in our tables.

Each table is made twice. With scores of ours the paper's rows must come out as its CSV has them;
scores of ours that are the paper's own numbers must come out as the paper's table. The CSVs are
read here without ems.
"""

import re
from itertools import chain
from operator import itemgetter
from statistics import mean

import pytest
from conftest import SHARED, needs
from made.tables import (
    AVERAGE,
    COPIES,
    TABLES,
    cells,
    csv_rows,
    numbers,
    read,
    values_of,
    without_seconds,
    write_report,
)

from ems.config.languages import load_languages
from ems.tables.corpora import write_corpora_table
from ems.tables.printed import (
    TOTAL,
    in_given_order,
    in_table_one_order,
    load_accuracies,
    load_flores_groups,
    load_groups,
    load_pairs,
    load_table,
    load_tatoeba,
)

PAPERS = SHARED.parent / "reference" / "paper-tables"
OURS = ["zz", "yy"]
AVERAGED = [name for name in TABLES if name != "monolingual 2"]  # which prints no average
# Means that differ from the cells of their row: the two slips named in the README, and means of 58
# languages, which the test computes from the rounded means of 43 and 15.
SLIPS = {
    "IV, V": {("LASER2", "<300k (11)")},
    "VI": {("LASER2", AVERAGE)},
    "XIV": {
        (model, "Tatoeba Avg. (58)")
        for model in ("- L_XTR", "- L_cntrs_mlp", "replace XTR with UGT")
    },
}


def marked(out):
    """Return row -> column -> text of the .md with its marks."""
    marks, heads = {}, []
    for line in out.with_suffix(".md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("| "):
            continue
        texts = [
            re.sub(r"\\(.)", r"\1", text).replace("→", "->") for text in line[2:-2].split(" | ")
        ]
        if texts[0] == "Model":
            heads = texts
        elif set(line) - set("| -:"):
            label = texts[0].strip("*") if texts[0].endswith("*") else texts[0]
            row = marks.setdefault(label, {})
            row |= dict(zip(heads[1:], texts[1:], strict=True)) | {"": texts[0]}
    return marks


def ours_of(paper, folder):
    """Write equal scores of two systems, with all columns of the paper."""
    columns = [column for column in paper.cells().columns if column != AVERAGE]
    row = dict.fromkeys(columns, "0.5" if "Cosine" in columns else "50.0")
    return [path for system in OURS for path in paper.scores(folder, system, row)]


@pytest.mark.parametrize("name", list(TABLES))
def test_the_papers_rows_below_ours_have_its_columns_and_cells(name, tmp_path):
    paper, out = TABLES[name], tmp_path / "t.tex"
    expected = paper.cells()
    printed = [paper.every] if paper.every else list(expected.rows)
    paper.write(ours_of(paper, tmp_path), out, printed, OURS)
    values = values_of(csv_rows(out), " (printed)")
    blank = dict.fromkeys([*expected.columns, *paper.own_columns], "")
    wanted = {model: blank | row for model, row in expected.rows.items()}
    if name not in AVERAGED:
        wanted = {model: {**row, AVERAGE: values[model][AVERAGE]} for model, row in wanted.items()}
    assert list(values) == list(wanted)
    for model, row in values.items():
        assert list(row.items()) == list(wanted[model].items())
    marks = marked(out)
    for model in values:
        texts = marks[f"{model} (printed)"]
        assert not any("**" in text for text in texts.values())
        italic = {text.startswith("*") for text in texts.values() if text != "–"}
        assert italic == {model == "LaBSE"}
    assert list(marks)[:2] == OURS
    text = out.read_text(encoding="utf-8")
    assert paper.where in text
    assert ("dagger" in text) == (name == "monolingual 2")  # over all languages nothing is ours


@pytest.mark.parametrize("name", AVERAGED)
def test_scores_equal_to_the_papers_make_its_table_with_bold_and_italics(name, tmp_path):
    paper, out = TABLES[name], tmp_path / "t.tex"
    expected = paper.cells()
    models = [model for model, row in expected.rows.items() if any(numbers(row).values())]
    models = [model for model in models if model != "mUSE" or name == "IX"]
    written = (paper.scores(tmp_path, model, expected.rows[model]) for model in models)
    paths = list(chain.from_iterable(written))
    paper.write(paths, out, ["EMS"], models)  # groups of the paper need a printed row
    values, marks = values_of(csv_rows(out)), marked(out)
    values = {model: row for model, row in values.items() if not model.endswith(" (printed)")}
    assert list(values) == models
    columns = [*expected.columns, *paper.own_columns]
    off, bold = set(), set()
    for model, row in values.items():
        assert list(row) == columns
        for column in expected.columns:
            text, printed = row[column], expected.rows[model][column]
            if printed and text != printed:
                assert abs(float(text) - float(printed)) < 0.1 + 1e-9
                off.add((model, column))
            if "**" in marks[model][column]:
                bold.add((model, column))
        assert {text.startswith("*") for text in marks[model].values() if "**" not in text} <= {
            model == "LaBSE"
        }
    assert off == SLIPS.get(name, set())
    if expected.best:  # of the EMS papers
        assert bold == expected.best


def test_table_one_has_the_papers_languages_counts_and_totals_in_its_order(tmp_path):
    *rows, total = read("ems-v2-table01-pairs")
    pairs = ["-".join(sorted(("en", row["language"]))) for row in reversed(rows)]
    entries = [("Demo", "train", pair, 10, {}, {}) for pair in pairs]
    out = tmp_path / "t.tex"
    write_corpora_table(write_report(tmp_path / "r.json", entries), out, ["EMS", "LASER"])
    table = csv_rows(out)
    assert list(table) == [*(row["language"] for row in rows), "Total"]
    for row in rows:
        for model in ("LASER", "EMS"):
            shown = row[f"{model.lower()}_printed"]
            assert table[row["language"]][f"{model} (printed)"] == shown.replace("-", "")
    text = out.read_text(encoding="utf-8")
    assert "EMS v2, Table I (v1: 1)" in text
    assert f"{total['laser_printed']} for LASER and {total['ems_printed']} for EMS" in text


def test_the_copies_of_the_printed_numbers_are_those_of_the_reference():
    needs(PAPERS.is_dir(), "the reference is not in the parent folder of the project")
    for path in sorted(COPIES.glob("*.csv")):
        theirs = (PAPERS / path.name).read_text(encoding="utf-8").splitlines()
        ours = path.read_text(encoding="utf-8").splitlines()
        if "grid" in path.name:  # with our names of the settings
            ours = [",".join([*line.split(",")[:1], *line.split(",")[2:]]) for line in ours]
            theirs = [",".join(line.split(",")[: len(ours[0].split(","))]) for line in theirs]
        assert ours == theirs


# --- the copies of the printed numbers


def test_table_fourteen_repeats_models_of_tables_four_seven_and_eleven():
    ablation = cells("ems-v2-table14-ablation", itemgetter("column"), without_seconds).rows
    for name in ("EMS", "LaBSE-EMS-vanilla", "LaBSE-EMS-joint"):
        model, row = load_tatoeba()[name], numbers(ablation[name])
        assert model["IV"] == row["Tatoeba Avg. (58)"]
        for heading, codes in load_groups("XIV").items():
            average = mean(model[code] for code in codes)
            assert average == pytest.approx(row[f"Tatoeba {heading}"], abs=0.05)
    for name in ("EMS", "LaBSE-EMS-joint"):
        row, flores = numbers(ablation[name]), load_table("ems-v2-table07-flores", "pair")[name]
        assert all(row[f"Flores {group}"] == flores[group] for group in load_flores_groups())
        documents = load_accuracies("ems-v2-table11-mldoc")[name]
        for side, column in ((0, "en->X"), (1, "X->en")):
            values = [v for k, v in documents.items() if [*k.split("-"), ""][side] == "en"]
            assert sum(values) / 7 == pytest.approx(row[f"MLDoc {column} Avg."], abs=0.05 + 1e-9)


def test_the_groups_by_amount_of_data_follow_from_table_one():
    languages = load_languages()
    laser, ems = load_pairs("laser_pairs"), load_pairs("ems_pairs")
    known = {
        languages[name].tatoeba_v1: (int(laser[name]), int(ems[name]))
        for name in laser
        if name != TOTAL and laser[name] and ems[name] and languages[name].tatoeba_v1
    }
    groups = {heading.split(" (")[0]: set(codes) for heading, codes in load_groups().items()}
    assert groups["<LASER"] == {code for code, (laser, ems) in known.items() if ems < laser}
    assert groups[">300k"] == {code for code, counts in known.items() if min(counts) >= 300_000}
    assert groups["<300k"] == {code for code, counts in known.items() if max(counts) < 300_000}


def test_table_one_agrees_with_itself_and_with_the_language_table():
    languages = load_languages()
    of_rows = {"laser": 206.6, "ems": 143.6}  # millions, not the printed totals (README)
    for model, millions in of_rows.items():
        printed, numbers = load_pairs(f"{model}_printed"), load_pairs(f"{model}_pairs")
        assert len(printed) == 62
        for name, text in printed.items():
            factor = {"k": 1000, "M": 1_000_000}.get(text[-1])
            assert numbers[name] == (str(round(float(text[:-1]) * factor)) if factor else "")
            assert model == "laser" or name == TOTAL or languages[name].ems_pairs == text
        rows = sum(int(number or 0) for name, number in numbers.items() if name != TOTAL)
        assert rows / 1e6 == pytest.approx(millions, abs=0.05)
    assert load_pairs("laser_printed")[TOTAL] == "204M"
    assert load_pairs()[TOTAL] == "143M"


def test_orders_are_the_papers_and_other_codes_come_last_alphabetically():
    assert in_given_order({"zzz", "aaa", "vie", "afr"}, ["vie", "afr"]) == [
        "vie",
        "afr",
        "aaa",
        "zzz",
    ]
    assert list(load_pairs()) == [*sorted(load_pairs().keys() - {TOTAL}), TOTAL]
    assert in_table_one_order({"zh", "aa", "af", "yo"}) == ["af", "yo", "zh", "aa"]
