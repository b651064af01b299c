"""Every table that a paper prints: its copy agrees with itself, its rows stand in our tables.

Each table is made twice. With scores of ours the paper's rows must come out as its CSV has them;
scores of ours that are the paper's own numbers must come out as the paper's table. The CSVs are
read here without ems.
"""

import re
from statistics import mean

import pytest
from conftest import SHARED, needs
from made.tables import AVERAGE, COPIES, TABLES, csv_rows, numbers, read, write_report

from ems.config.languages import load_languages
from ems.tables.corpora import write_corpora_table
from ems.tables.printed import (
    in_paper_order,
    in_table_one_order,
    load_accuracies,
    load_flores_groups,
    load_groups,
    load_models,
    load_pair_totals,
    load_pairs,
    load_table,
)

PAPERS = SHARED.parent / "reference" / "paper-tables"
OURS = ["zz", "yy"]
EMS = ["IV, V", "VI", "VII", "IX", "X", "XI", "XII", "XIII", "XIV", "V-H"]
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
        texts = [re.sub(r"\\(.)", r"\1", text) for text in line[2:-2].split(" | ")]
        if texts[0] == "Model":
            heads = texts
        elif set(line) - set("| -:"):
            label = texts[0].strip("*") if texts[0].endswith("*") else texts[0]
            row = marks.setdefault(label, {})
            row |= dict(zip(heads[1:], texts[1:], strict=True)) | {"": texts[0]}
    return marks


def values_of(rows, suffix=""):
    """Return label without `suffix` -> cells, for rows whose labels end in it."""
    return {
        label.removesuffix(suffix): {name: row[name] for name in list(row)[1:]}
        for label, row in rows.items()
        if label.endswith(suffix)
    }


def ours_of(paper, folder):
    """Write equal scores of two systems, with all columns of the paper."""
    row = {column: "50.0" for column in paper.cells().columns if column != AVERAGE}
    row = dict.fromkeys(row, "0.5") if "Cosine" in row else row
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
    if name == "monolingual 2":  # the paper prints no average of its own
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


@pytest.mark.parametrize("name", EMS)
def test_scores_equal_to_the_papers_make_its_table_with_bold_and_italics(name, tmp_path):
    paper, out = TABLES[name], tmp_path / "t.tex"
    expected = paper.cells()
    models = [model for model, row in expected.rows.items() if any(numbers(row).values())]
    models = [model for model in models if model != "mUSE" or name == "IX"]
    paths = [
        path for model in models for path in paper.scores(tmp_path, model, expected.rows[model])
    ]
    paper.write(paths, out, [], models)
    values, marks = values_of(csv_rows(out)), marked(out)
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
    assert bold == expected.best


def test_table_one_has_the_papers_languages_counts_and_totals_in_its_order(tmp_path):
    *rows, total = read("ems-v2-table01-pairs")
    pairs = ["-".join(sorted(("en", row["language"]))) for row in reversed(rows)]
    entries = [("Demo", "train", pair, 10, {}, {}) for pair in pairs]
    out = tmp_path / "t.tex"
    write_corpora_table(write_report(tmp_path / "r.json", entries), out)
    cells = csv_rows(out)
    assert list(cells) == [*(row["language"] for row in rows), "Total"]
    for row in rows:
        for model in ("LASER", "EMS"):
            shown = row[f"{model.lower()}_printed"]
            assert cells[row["language"]][f"{model} (printed)"] == shown.replace("-", "")
    text = out.read_text(encoding="utf-8")
    printed = f"{total['laser_printed']} for LASER and {total['ems_printed']} for EMS"
    assert "EMS v2, Table I (v1: 1)" in text
    assert printed in text


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


def off_by_more(name):
    """Return the models whose printed average differs from their row's, and the number checked."""
    values, averages = {}, {}
    for row in read(name, lambda row: row.get("value")):
        model = row.get("group", ""), row.get("model") or row.get("method")
        column = next((row[key] for key in ("language", "pair", "direction") if key in row), None)
        if column in ("Avg.", "overall"):
            averages[model] = float(row["value"])
        elif column and (column != "en" or "xnli" not in name):
            values.setdefault(model, []).append(float(row["value"]))
    off = {m for m, average in averages.items() if abs(mean(values[m]) - average) > 0.05 + 1e-9}
    return {model for _, model in off}, len(averages)


def test_each_printed_average_except_one_is_the_mean_of_its_row():
    """Tables that are not listed print no average of a row."""
    mistakes = {path.stem: off_by_more(path.stem) for path in sorted(COPIES.glob("*.csv"))}
    checked = {name: count for name, (_, count) in mistakes.items() if count}
    assert checked == {
        "ems-v2-table04-tatoeba": 8,
        "ems-v2-table06-tatoeba-unseen": 8,
        "ems-v2-table09-bucc": 7,
        "ems-v2-table10-paracrawl": 5,
        "ems-v2-table11-mldoc": 5,
        "ems-v2-table12-amazon-v1": 5,
        "ems-v2-table13-amazon-v2": 5,
        "lightweight-table03-mldoc": 6,
        "lightweight-table04-xsr": 5,
        "lightweight-table10-reimers": 4,
        "monolingual-table01-xnli": 6,
    }
    off = {name: models for name, (models, _) in mistakes.items() if models}
    assert off == {"ems-v2-table06-tatoeba-unseen": {"LASER2"}}


def test_the_means_of_table_fourteen_follow_from_other_tables():
    """The mean of 58 languages follows from the rounded means of 43 and 15, to 0.06; three rows are
    models of Tables IV, VII and XI.
    """
    rows = {}
    for row in read("ems-v2-table14-ablation"):
        if row["value"]:
            rows.setdefault(row["model"].split(" (")[0], {})[row["column"]] = float(row["value"])
    assert len(rows) == 10
    for row in rows.values():
        weighted = 43 * row["Tatoeba >300k (43)"] + 15 * row["Tatoeba <300k (15)"]
        assert weighted / 58 == pytest.approx(row["Tatoeba Avg. (58)"], abs=0.06)
    for name in ("EMS", "LaBSE-EMS-vanilla", "LaBSE-EMS-joint"):
        model = load_models()[name]
        assert model.seen_average == rows[name]["Tatoeba Avg. (58)"]
        for heading, codes in load_groups("XIV").items():
            expected = rows[name][f"Tatoeba {heading}"]
            values = [model.seen[code] for code in codes]
            assert mean(values) == pytest.approx(expected, abs=0.05)
    for name in ("EMS", "LaBSE-EMS-joint"):
        for heading in load_flores_groups():
            assert (
                rows[name][f"Flores {heading}"]
                == load_table("ems-v2-table07-flores", "pair")[name][heading]
            )
        documents = load_accuracies("ems-v2-table11-mldoc")[name]
        for side, column in ((0, "en->X"), (1, "X->en")):
            values = [v for k, v in documents.items() if [*k.split("-"), ""][side] == "en"]
            expected = rows[name][f"MLDoc {column} Avg."]
            assert sum(values) / 7 == pytest.approx(expected, abs=0.05 + 1e-9)


def test_each_printed_group_mean_except_one_is_the_mean_of_its_languages():
    off, checked = set(), 0
    for model in [model for model in load_models().values() if model.seen]:
        for heading, codes in load_groups().items():
            printed = model.groups[heading]
            if printed is not None:
                checked += 1
                if abs(mean(model.seen[code] for code in codes) - printed) > 0.05 + 1e-9:
                    off.add((model.name, heading))
    assert checked == 43  # 48 cells less the 5 dashes of models of Table IV
    assert off == {("LASER2", "<300k (11)")}


def test_the_groups_by_amount_of_data_follow_from_table_one():
    codes = {name: language.tatoeba_v1 for name, language in load_languages().items()}
    less, large, small = set(), set(), set()
    for name, pairs in load_pairs().items():
        if pairs.laser is None or pairs.ems is None or not codes[name]:
            continue
        if pairs.ems < pairs.laser:
            less.add(codes[name])
        if min(pairs.ems, pairs.laser) >= 300_000:
            large.add(codes[name])
        if max(pairs.ems, pairs.laser) < 300_000:
            small.add(codes[name])
    groups = {heading.split(" (")[0]: set(codes) for heading, codes in load_groups().items()}
    assert (groups["<LASER"], groups[">300k"], groups["<300k"]) == (less, large, small)


def test_table_one_agrees_with_itself_and_with_the_language_table():
    languages = load_languages()
    assert len(load_pairs()) == 61
    for name, pairs in load_pairs().items():
        assert languages[name].ems_pairs == pairs.ems_printed
        for text, number in ((pairs.laser_printed, pairs.laser), (pairs.ems_printed, pairs.ems)):
            factor = {"k": 1000, "M": 1_000_000}.get(text[-1])
            assert number == (round(float(text[:-1]) * factor) if factor else None)
    sums = [sum(getattr(of, key) or 0 for of in load_pairs().values()) for key in ("laser", "ems")]
    assert [total / 1e6 for total in sums] == pytest.approx([206.6, 143.6], abs=0.05)
    totals = load_pair_totals()  # not the sums of the rows (README)
    assert (totals.laser_printed, totals.laser) == ("204M", 204_000_000)
    assert (totals.ems_printed, totals.ems) == ("143M", 143_000_000)


def test_orders_are_the_papers_and_other_codes_come_last_alphabetically():
    codes = {"zzz", "aaa", "amh", "vie", "afr"}  # of neither, neither, VI, IV, IV
    assert in_paper_order(codes) == ["afr", "vie", "amh", "aaa", "zzz"]
    assert list(load_pairs()) == sorted(load_pairs())
    assert in_table_one_order({"zh", "aa", "af", "yo"}) == ["af", "yo", "zh", "aa"]
