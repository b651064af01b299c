"""Laws of every table that a paper prints: its rows, columns, bold and italics are the paper's.

Each is made twice. Beside scores of ours the paper's rows must come out as its CSV has them; and
scores of ours that are the paper's own numbers must come out as the paper's table. The CSVs are
read here without ems.
"""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from conftest import ROOT, SHARED, needs
from tables_made import csv_rows, write_report, write_scores
from test_tables_ablation import times_file
from test_tables_documents import write_file
from test_tables_flores import MUSE, write_cosine, write_flores
from test_tables_mining import EUROPARL, PAPER, RETRIEVAL, bucc, retrieval
from test_tables_models import write_model

from ems.tables.ablation import write_ablation_table
from ems.tables.bucc import write_bucc_table
from ems.tables.case_study import write_wordorder_table
from ems.tables.corpora import write_corpora_table
from ems.tables.documents import write_accuracy_table
from ems.tables.flores import write_flores_table
from ems.tables.models import write_models_table
from ems.tables.tatoeba import write_tatoeba_table, write_unseen_table
from ems.tables.xsr import write_europarl_table, write_paracrawl_table

COPIES = ROOT / "ems" / "tables" / "printed"
PAPERS = SHARED.parent / "reference" / "paper-tables"
AVERAGE = "Avg."
OURS = ["zz", "yy"]
RICH, POOR, SEEN = ">300k (43)", "<300k (15)", "Avg. (58)"


def read(name, kept=lambda row: True):
    """The rows of a CSV that `kept` keeps."""
    with open(COPIES / f"{name}.csv", encoding="utf-8", newline="") as handle:
        return [row for row in csv.DictReader(handle) if kept(row)]


def named(row):
    """The model of a row without authors; the papers' "ours" has another name here."""
    name = (row.get("model") or row["method"]).split(" (")[0]
    return "Lightweight" if name == "Ours" else name


def arrow(row):
    """en->de is en-de here, en<-de is de-en; a language alone is learnt in English."""
    text = row.get("direction") or row["language"]
    if text in (AVERAGE, "overall"):
        return AVERAGE
    if "language" in row:
        return row["language"]
    first, sign, second = re.fullmatch("(..)(->|<-|-)(..)", text).groups()
    turned = f"{second}-{first}" if sign == "<-" else f"{first}-{second}"
    return f"{turned} {row['domain']}" if row.get("domain") else turned


@dataclass
class Cells:
    """A printed table: model -> column -> cell, as text, and the cells that are best."""

    rows: dict[str, dict[str, str]]
    best: set[tuple[str, str]]

    @property
    def columns(self):
        return list(dict.fromkeys(column for row in self.rows.values() for column in row))


def cells(rows, column):
    found = Cells({}, set())
    for row in rows:
        found.rows.setdefault(named(row), {})[column(row)] = row["value"]
        if row.get("best") == "1":
            found.best.add((named(row), column(row)))
    return found


def of_file(name, column, kept=lambda row: True):
    return lambda: cells(read(name, kept), column)


def language(row):
    return row["language"]


def tatoeba_cells():
    """Tables IV and V in one: mUSE, which only V has, comes first there."""
    order = cells(read("ems-v2-table05-tatoeba-groups"), lambda row: row["group"])
    values = cells(read("ems-v2-table04-tatoeba"), language)
    blank = dict.fromkeys(values.columns, "")
    rows = {name: values.rows.get(name, blank) | of for name, of in order.rows.items()}
    return Cells(rows, values.best | order.best)


def reimers(task, column):
    """Rows of Lightweight Table 10, which repeats that of "Ours" from Tables 3 and 4."""
    new = lambda row: row["group"] == task and named(row) != "Lightweight"  # noqa: E731
    return cells(read("lightweight-table10-reimers", new), column).rows


def lightweight(name, task, column):
    def made():
        found = cells(read(name), column)
        return Cells(found.rows | reimers(task, column), set())

    return made


# --- score files that hold the cells of one row


def numbers(row):
    return {name: float(value) for name, value in row.items() if value and name != AVERAGE}


def of_tatoeba(folder, system, row):
    values = {name: value for name, value in numbers(row).items() if "(" not in name}
    return [write_scores(folder, system, values)] if values else []


def of_unseen(folder, system, row):
    return [write_scores(folder, system, numbers(row), dict.fromkeys(numbers(row), "und"))]


def of_flores(folder, system, row):
    """The pairs of the paper, and all other directions such that the means of the groups fit."""
    values, low = numbers(row), 16 * 15
    pairs = {name: value for name, value in values.items() if "(" not in name}
    rest = (low * values["<300k (240)"] - 2 * sum(pairs.values())) / (low - 2 * len(pairs))

    def of(query, other):
        if query in MUSE and other in MUSE:
            return values["mUSE (182)"]
        return pairs.get(f"{query}-{other}", pairs.get(f"{other}-{query}", rest))

    languages = [*MUSE, *(code for pair in pairs for code in pair.split("-"))]
    return [write_flores(folder, system, languages, of)]


def of_bucc(folder, system, row):
    return [bucc(folder, system, {name[3:]: value for name, value in numbers(row).items()}, PAPER)]


def of_paracrawl(folder, system, row):
    both = {name: (value, value) for name, value in numbers(row).items()}
    return [retrieval(folder, system, "paracrawl", both, RETRIEVAL)]


def of_europarl(folder, system, row):
    codes = dict.fromkeys(name[-2:] for name in numbers(row))
    both = {code: (float(row[f"en<-{code}"]), float(row[f"en->{code}"])) for code in codes}
    return [retrieval(folder, system, "europarlxsr", both, EUROPARL)]


def of_accuracy(benchmark):
    def made(folder, system, row):
        values = {
            name if "-" in name else f"en-{name}": [value] for name, value in numbers(row).items()
        }
        return [write_file(folder, benchmark, system, values)]

    return made


def of_ablation(folder, system, row):
    kept = {group: [] for group in (RICH, POOR)}
    for entry in read("groups", lambda row: row["group"].startswith("XIV ")):
        if entry["averaged"] == "1":
            kept[entry["group"].removeprefix("XIV ")].append(entry["tatoeba_code"])
    values = numbers(row)
    tatoeba = {code: values[f"Tatoeba {name}"] for name, codes in kept.items() for code in codes}
    pairs = dict.fromkeys(LOW_PAIRS, row["Flores <300k (240)"])
    flores = {name.removeprefix("Flores "): row[name] for name in row if name.startswith("Flores")}
    codes = ("de", "es", "fr", "it", "ja", "ru", "zh")
    there = {f"en-{code}": [values["MLDoc en->X Avg."]] for code in codes}
    back = {f"{code}-en": [values["MLDoc X->en Avg."]] for code in codes}
    return [
        write_scores(folder, system, tatoeba),
        *of_flores(folder, system, flores | pairs),
        write_file(folder, "mldoc", system, there | back),
    ]


def of_cosine(folder, system, row):
    return [write_cosine(folder, system, float(row["Cosine"]))]


LOW_PAIRS = ["af-gu", "hi-hy", "jv-ka", "kk-mr", "my-nb", "sw-ta", "te-tl", "ur-yo"]


@dataclass
class Paper:
    """A table of a paper: its cells, what makes our score files and our table, what the note names.

    `columns` are those of ours without the ones that no paper has; `every` tells that the paper's
    rows are shown whole, whatever is named.
    """

    cells: Callable
    scores: Callable
    write: Callable
    where: str
    every: str = ""
    own_columns: tuple[str, ...] = ()


def accuracy(table, name, where, column=arrow, cells_of=None):
    def write(scores, out, printed, order):
        write_accuracy_table(table, scores, out, printed, order)

    benchmark = "mldoc" if table == "mldoc_bilingual" else table
    return Paper(cells_of or of_file(name, column), of_accuracy(benchmark), write, where)


def without_seconds(row):
    return not row["column"].startswith("Sec.")


XIV = of_file("ems-v2-table14-ablation", lambda row: row["column"], without_seconds)
V_H = "ems-v2-section5h-similarity"
TABLES = {
    "IV, V": Paper(
        tatoeba_cells, of_tatoeba, write_tatoeba_table, "EMS v2, Table IV (v1: 4), Table V (v1: 6)"
    ),
    "VI": Paper(
        of_file("ems-v2-table06-tatoeba-unseen", language),
        of_unseen,
        write_unseen_table,
        "EMS v2, Table VI (v1: 5)",
    ),
    "VII": Paper(
        of_file("ems-v2-table07-flores", lambda row: row["pair"]),
        of_flores,
        write_flores_table,
        "EMS v2, Table VII;",
        own_columns=("All (870)",),
    ),
    "IX": Paper(
        of_file("ems-v2-table09-bucc", lambda row: row["pair"]),
        of_bucc,
        write_bucc_table,
        "EMS v2, Table IX (v1: 8)",
    ),
    "X": Paper(
        of_file("ems-v2-table10-paracrawl", language),
        of_paracrawl,
        write_paracrawl_table,
        "EMS v2, Table X (v1: 9)",
    ),
    "XI": accuracy("mldoc", "ems-v2-table11-mldoc", "EMS v2, Table XI (v1: 10)"),
    "XII": accuracy("cls", "ems-v2-table12-amazon-v1", "EMS v2, Table XII (v1: 11)"),
    "XIII": accuracy("marc", "ems-v2-table13-amazon-v2", "EMS v2, Table XIII (v1: 12)"),
    "XIV": Paper(XIV, of_ablation, write_ablation_table, "EMS v2, Table XIV (v1: 13)", every="EMS"),
    "V-H": Paper(
        lambda: Cells({named(r): {"Cosine": r["cosine_similarity"]} for r in read(V_H)}, set()),
        of_cosine,
        write_wordorder_table,
        "EMS v2, section V-H",
    ),
    "Lightweight 3": accuracy(
        "mldoc_bilingual",
        "",
        "Lightweight, Tables 3 and 10",
        cells_of=lightweight("lightweight-table03-mldoc", "MLDoc", arrow),
    ),
    "Lightweight 4": Paper(
        lightweight("lightweight-table04-xsr", "XSR", lambda row: row["direction"]),
        of_europarl,
        write_europarl_table,
        "Lightweight, Tables 4 and 10",
    ),
    "monolingual 1": accuracy("xnli", "monolingual-table01-xnli", "the monolingual paper, Table 1"),
    "monolingual 2": accuracy("rcv2", "monolingual-table02-rcv2", "the monolingual paper, Table 2"),
}
EMS = ["IV, V", "VI", "VII", "IX", "X", "XI", "XII", "XIII", "XIV", "V-H"]
# Means that do not follow from the cells of their row: the two slips that the README names, and
# those of 58 languages, made here of the rounded means of 43 and 15.
SLIPS = {
    "IV, V": {("LASER2", "<300k (11)")},
    "VI": {("LASER2", AVERAGE)},
    "XIV": {
        (model, "Tatoeba Avg. (58)")
        for model in ("- L_XTR", "- L_cntrs_mlp", "replace XTR with UGT")
    },
}


def marked(out):
    """The cells of a table as the .md has them, marks and all: row -> column -> text."""
    found, heads = {}, []
    for line in out.with_suffix(".md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("| "):
            continue
        texts = [re.sub(r"\\(.)", r"\1", text) for text in line[2:-2].split(" | ")]
        if texts[0] == "Model":
            heads = texts
        elif set(line) - set("| -:"):
            label = texts[0].strip("*") if texts[0].endswith("*") else texts[0]
            row = found.setdefault(label, {})
            row |= dict(zip(heads[1:], texts[1:], strict=True)) | {"": texts[0]}
    return found


def values_of(rows, suffix=""):
    """Label -> cells of the rows whose labels end in `suffix`, without the suffix and the label."""
    return {
        label.removesuffix(suffix): {name: row[name] for name in list(row)[1:]}
        for label, row in rows.items()
        if label.endswith(suffix)
    }


def ours_of(paper, folder):
    """Scores of two systems of ours, the one as good as the other, with all of the columns."""
    row = {column: "50.0" for column in paper.cells().columns if column != AVERAGE}
    row = dict.fromkeys(row, "0.5") if "Cosine" in row else row
    return [path for system in OURS for path in paper.scores(folder, system, row)]


@pytest.mark.parametrize("name", list(TABLES))
def test_beside_ours_the_papers_rows_and_columns_are_its_own_and_marked_as_printed(name, tmp_path):
    paper, out = TABLES[name], tmp_path / "t.tex"
    expected = paper.cells()
    printed = [paper.every] if paper.every else list(expected.rows)
    paper.write(ours_of(paper, tmp_path), out, printed, OURS)
    found = values_of(csv_rows(out), " (printed)")
    blank = dict.fromkeys([*expected.columns, *paper.own_columns], "")
    wanted = {model: blank | row for model, row in expected.rows.items()}
    if name == "monolingual 2":  # the paper prints no average of its own
        wanted = {model: {**row, AVERAGE: found[model][AVERAGE]} for model, row in wanted.items()}
    assert list(found) == list(wanted)
    for model, row in found.items():
        assert list(row.items()) == list(wanted[model].items())
    marks = marked(out)
    for model in found:
        texts = marks[f"{model} (printed)"]
        assert not any("**" in text for text in texts.values())
        italic = {text.startswith("*") for text in texts.values() if text != "–"}
        assert italic == {model == "LaBSE"}
    assert list(marks)[:2] == OURS
    assert paper.where in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EMS)
def test_scores_that_are_the_papers_make_its_table_with_its_bold_and_its_italics(name, tmp_path):
    paper, out = TABLES[name], tmp_path / "t.tex"
    expected = paper.cells()
    models = [model for model, row in expected.rows.items() if any(numbers(row).values())]
    models = [model for model in models if model != "mUSE" or name == "IX"]
    paths = [
        path for model in models for path in paper.scores(tmp_path, model, expected.rows[model])
    ]
    paper.write(paths, out, [], models)
    found, marks = values_of(csv_rows(out)), marked(out)
    assert list(found) == models
    columns = [*expected.columns, *paper.own_columns]
    off, bold = set(), set()
    for model, row in found.items():
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


def test_seconds_of_steps_are_those_of_the_paper_beside_ours(tmp_path):
    paper, out = TABLES["XIV"], tmp_path / "t.tex"
    times = {name: times_file(tmp_path, name, 100, 50.0) for name in OURS}
    write_ablation_table(ours_of(paper, tmp_path), out, ["EMS"], OURS, times=times)
    rows = read("ems-v2-table14-ablation", lambda row: not without_seconds(row))
    wanted = {named(row): f"{float(row['value']):.1f}" if row["value"] else "" for row in rows}
    found = values_of(csv_rows(out), " (printed)")
    assert {model: row["Sec./1k Steps"] for model, row in found.items()} == wanted


def test_table_one_has_the_papers_languages_counts_and_totals_in_its_order(tmp_path):
    *rows, total = read("ems-v2-table01-pairs")
    pairs = ["-".join(sorted(("en", row["language"]))) for row in reversed(rows)]
    entries = [("Demo", "train", pair, 10, {}, {}) for pair in pairs]
    out = tmp_path / "t.tex"
    write_corpora_table(write_report(tmp_path / "r.json", entries), out)
    found = csv_rows(out)
    assert list(found) == [*(row["language"] for row in rows), "Total"]
    for row in rows:
        for model in ("LASER", "EMS"):
            shown = row[f"{model.lower()}_printed"]
            assert found[row["language"]][f"{model} (printed)"] == shown.replace("-", "")
    text = out.read_text(encoding="utf-8")
    printed = f"{total['laser_printed']} for LASER and {total['ems_printed']} for EMS"
    assert "EMS v2, Table I (v1: 1)" in text
    assert printed in text


def test_table_three_has_the_papers_rows_and_columns(tmp_path):
    report = write_report(tmp_path / "r.json", [("Demo", "train", "en-fr", 10, {}, {})])
    model = write_model(tmp_path, "zz", ["en", "fr"])
    rows = read("ems-v2-table03-models")
    out = tmp_path / "t.tex"
    write_models_table([model], report, [named(row) for row in rows], out)
    found = values_of(csv_rows(out), " (printed)")
    assert list(found) == [named(row) for row in rows]
    columns = {"Langs": "langs", "Paral.": "paral", "Archit.": "archit", "#Param.": "param_v2"}
    for row in rows:
        shown = found[named(row)]
        assert list(shown) == ["Langs", "Paral.", "Mono", "Archit.", "#Param.", "to encode"]
        assert {name: shown[name] for name in columns} == {n: row[c] for n, c in columns.items()}
        assert shown["Mono"] == (row["mono_v2"] or row["mono_v1"])  # v2's OCR may have lost a tick
    assert "EMS v2, Table III (v1: 3)" in out.read_text(encoding="utf-8")


def test_the_copies_of_the_printed_numbers_are_those_of_the_reference():
    needs(PAPERS.is_dir(), "the reference is not beside the project")
    for path in sorted(COPIES.glob("*.csv")):
        theirs = (PAPERS / path.name).read_text(encoding="utf-8").splitlines()
        ours = path.read_text(encoding="utf-8").splitlines()
        if "grid" in path.name:  # with our names of the settings
            ours = [",".join([*line.split(",")[:1], *line.split(",")[2:]]) for line in ours]
            theirs = [",".join(line.split(",")[: len(ours[0].split(","))]) for line in theirs]
        assert ours == theirs
