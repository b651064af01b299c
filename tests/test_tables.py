"""Laws of the tables: printed numbers agree among themselves, ours keep apart, bytes repeat."""

import csv
import json
import re
import shutil
import struct
from pathlib import Path

import pytest
from conftest import needs

from ems.errors import EmsError
from ems.languages import load_languages
from ems.tables.corpora import human, write_corpora_table, write_decontamination_table
from ems.tables.figures import plot_tatoeba
from ems.tables.latex import escape
from ems.tables.pdf import PACKAGES, compile_pdf
from ems.tables.printed import (
    in_paper_order,
    load_groups,
    load_models,
    load_pair_totals,
    load_pairs,
)
from ems.tables.table import one_decimal
from ems.tables.tatoeba import write_tatoeba_table

SHA = "d" * 64
SEVEN = ["cmn", "deu", "fra", "ita", "jpn", "rus", "spa"]
MUSE = {*SEVEN, "ara", "kor", "nld", "pol", "por", "tha", "tur"}
SUFFIXES = (".tex", ".md", ".csv")


def write_scores(folder, system, values, /, **changes):
    """A score file; `values`: language -> P@1 of both directions, or a pair of numbers."""
    pairs = {code: v if isinstance(v, tuple) else (v, v) for code, v in values.items()}
    data = {
        "benchmark": "tatoeba",
        "version": "v1",
        "system": system,
        "system_hash": "ab12",
        "data_sha256": SHA,
        "metric": "P@1",
        "directions": {
            code: {"language": code, "sentences": 1000, "to_english": to, "from_english": back}
            for code, (to, back) in pairs.items()
        },
    }
    path = folder / system / "tatoeba.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**data, **changes}), encoding="utf-8")
    return path


def csv_rows(path):
    """Rows of a written table by their label."""
    with open(path.with_suffix(".csv"), encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    return {next(iter(row.values())): row for row in rows}


def tatoeba_rows(tmp_path, scores, printed=(), order=None):
    write_tatoeba_table(scores, tmp_path / "tatoeba.tex", list(printed), order)
    return csv_rows(tmp_path / "tatoeba.tex")


def tex_line(path, label, block=0):
    """The cells of the row `label` in the given block of a .tex table."""
    lines = path.with_suffix(".tex").read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith(label + " &")]
    return [cell.strip() for cell in found[block].removesuffix(r"\\").split("&")][1:]


# --- the printed numbers


@pytest.mark.parametrize("name", list(load_models()))
def test_each_printed_average_is_the_mean_of_its_row_but_the_one_named(name):
    model = load_models()[name]
    assert (len(model.seen), len(model.unseen)) == (58, 54)
    off = set()
    for table, values, average in (
        ("IV", model.seen, model.seen_average),
        ("VI", model.unseen, model.unseen_average),
    ):
        if abs(sum(values.values()) / len(values) - average) > 0.05 + 1e-9:
            off.add(table)
    assert off == ({"VI"} if name == "LASER2" else set())


def test_each_printed_group_mean_is_the_mean_of_its_languages_but_the_one_named():
    off, checked = set(), 0
    for model in load_models().values():
        for group in load_groups():
            printed = model.groups[group.heading]
            if printed is not None:
                mean = sum(model.seen[code] for code in group.languages) / len(group.languages)
                checked += 1
                if abs(mean - printed) > 0.05 + 1e-9:
                    off.add((model.name, group.heading))
    assert checked == 43  # 48 cells less the 5 dashes of models of Table IV
    assert off == {("LASER2", "<300k (11)")}


def test_groups_have_the_members_that_the_printed_means_average():
    groups = {group.name: set(group.languages) for group in load_groups()}
    sizes = {name: len(codes) for name, codes in groups.items()}
    assert sizes == {
        "mUSE": 14,
        "XTREME": 37,
        "SBERT-distill": 45,
        "<LASER": 43,
        ">300k": 42,
        "<300k": 11,
    }
    assert groups["mUSE"] == MUSE
    assert not {"kur", "max"} & groups["SBERT-distill"]
    assert {"max"} <= groups["XTREME"]


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
    groups = {group.name: set(group.languages) for group in load_groups()}
    assert (groups["<LASER"], groups[">300k"], groups["<300k"]) == (less, large, small)


def test_table_one_agrees_with_itself_and_with_the_language_table():
    languages = load_languages()
    assert len(load_pairs()) == 61
    for name, pairs in load_pairs().items():
        assert languages[name].ems_pairs == pairs.ems_printed
        for text, number in ((pairs.laser_printed, pairs.laser), (pairs.ems_printed, pairs.ems)):
            factor = {"k": 1000, "M": 1_000_000}.get(text[-1])
            assert number == (round(float(text[:-1]) * factor) if factor else None)
    totals = load_pair_totals()
    assert (totals.laser_printed, totals.ems_printed) == ("204M", "143M")


def test_paper_order_is_table_four_then_six_then_the_alphabet():
    assert in_paper_order({"zzz", "aaa", "amh", "vie", "afr"}) == [
        "afr",
        "vie",
        "amh",
        "aaa",
        "zzz",
    ]


# --- numbers of the Tatoeba table


def test_a_value_is_the_mean_of_both_directions_and_means_are_over_unrounded_values(tmp_path):
    values = {code: (70.1 + step, 72.2 - 2 * step) for step, code in enumerate(SEVEN)}
    rows = tatoeba_rows(tmp_path, [write_scores(tmp_path, "EMS", values)])
    means = {code: (to + back) / 2 for code, (to, back) in values.items()}
    assert [rows["EMS"][code] for code in SEVEN] == [one_decimal(means[code]) for code in SEVEN]
    assert rows["EMS"]["Avg."] == one_decimal(sum(means.values()) / 7)
    less_than_laser = [code for code in SEVEN if code != "spa"]  # Table I: LASER has fewer there
    expected = one_decimal(sum(means[code] for code in less_than_laser) / 6)
    assert rows["EMS"]["<LASER 6/43"] == expected != rows["EMS"]["Avg."]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(80.25, "80.3"), (80.15, "80.2"), ((80.1 + 80.2) / 2, "80.2"), (100.0, "100.0"), (0.0, "0.0")],
)
def test_scores_are_rounded_half_up_in_decimal(value, shown):
    assert one_decimal(value) == shown


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
    assert re.search(r"\nB & [^\n]*\n\\midrule\nLaBSE \(printed\)", text)


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


# --- printed rows


def test_printed_rows_are_absent_beside_another_version(tmp_path):
    path = write_scores(tmp_path, "A", dict.fromkeys(SEVEN, 50.0), version="demo-v1")
    rows = tatoeba_rows(tmp_path, [path], ["EMS", "LASER"])
    assert list(rows) == ["A"]
    text = (tmp_path / "tatoeba.tex").read_text()
    assert "Printed rows left out (EMS, LASER)" in text.splitlines()[2]
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
    assert rows["EMS (printed)"]["Avg."] == one_decimal(mean)
    out = tmp_path / "tatoeba.tex"
    assert tex_line(out, "EMS (printed)")[-1].endswith(r"\rlap{$^{\dagger}$}")
    assert r"\footnotesize $^{\dagger}$ mean of the printed values" in out.read_text()
    assert not any("dagger" in cell for cell in tex_line(out, "A"))


def test_unseen_languages_take_their_printed_values_from_table_six(tmp_path):
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
        write_tatoeba_table(paths, folder / "t.tex", ["EMS"], None)
        plot_tatoeba(paths, folder / "f.svg")
        names = [*(f"t{suffix}" for suffix in SUFFIXES), "f.svg", "f.png"]
        written.append([(folder / name).read_bytes() for name in names])
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in b"".join(written[0])


def test_a_figure_grows_with_its_languages_and_continues_in_a_second_row(tmp_path):
    sizes = []
    for count in (7, 25, 58):
        codes = list(load_models()["EMS"].seen)[:count]
        paths = [write_scores(tmp_path, name, dict.fromkeys(codes, 50.0)) for name in "ABC"]
        plot_tatoeba(paths, tmp_path / "f.png")
        sizes.append(struct.unpack(">II", (tmp_path / "f.png").read_bytes()[16:24]))
    (few, low), (more, same), (most, high) = sizes
    assert few < more < most < 3000
    assert low == same < high


# --- errors


def test_an_empty_list_of_scores_is_an_error(tmp_path):
    with pytest.raises(EmsError, match="no score files"):
        write_tatoeba_table([], tmp_path / "t.tex", [], None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "demo-v1"}, "version"),
        ({"data_sha256": "e" * 64}, "data_sha256"),
        ({"benchmark": "bucc"}, "expected benchmark tatoeba"),
        ({"metric": "F1"}, "expected benchmark tatoeba with metric P@1"),
        ({"system": "A"}, "two score files"),
        ({"directions": {}}, "at least one language"),
        ({"directions": {"deu": {"to_english": 50.0}}}, "deu.from_english"),
        ({"directions": {"deu": {"to_english": 101, "from_english": 1}}}, "deu.to_english"),
    ],
)
def test_scores_that_cannot_share_a_table_are_an_error_that_names_the_file(
    tmp_path, changes, message
):
    first = write_scores(tmp_path, "A", {"deu": 50.0})
    second = write_scores(tmp_path, "B", {"deu": 50.0}, **changes)
    for write in (
        lambda: write_tatoeba_table([first, second], tmp_path / "t.tex", [], None),
        lambda: plot_tatoeba([first, second], tmp_path / "f.svg"),
    ):
        with pytest.raises(EmsError, match=message) as error:
            write()
        assert str(second) in str(error.value)
    assert not list(tmp_path.glob("*.*"))


def test_names_that_nobody_knows_are_errors_that_list_the_known_ones(tmp_path):
    path = write_scores(tmp_path, "A", {"deu": 50.0}, version="demo-v1")
    with pytest.raises(EmsError, match=r"LASER3.*LaBSE-EMS-joint"):
        write_tatoeba_table([path], tmp_path / "t.tex", ["LASER3"], None)
    with pytest.raises(EmsError, match="names B, but"):
        write_tatoeba_table([path], tmp_path / "t.tex", [], ["B"])


def test_a_system_named_like_a_printed_row_is_an_error(tmp_path):
    path = write_scores(tmp_path, "EMS (printed)", {"deu": 50.0})
    with pytest.raises(EmsError, match="named alike"):
        write_tatoeba_table([path], tmp_path / "t.tex", ["EMS"], None)


# --- training data


def write_report(path, entries, against=("tatoeba",)):
    """A decontamination report; entries: (corpus, role, pair, read, removed, by_benchmark)."""
    corpora = [
        {
            "corpus": corpus,
            "version": "v1",
            "role": role,
            "pair": pair,
            "read": read,
            "removed": removed,
            "by_benchmark": by_benchmark,
            "kept": read - sum(removed.values()),
        }
        for corpus, role, pair, read, removed, by_benchmark in entries
    ]
    report = {"key": "folded", "against": list(against), "corpora": corpora}
    path.write_text(json.dumps(report), encoding="utf-8")
    return path


@pytest.fixture
def report(tmp_path):
    found = {"tatoeba": {"en": 100, "fr": 90, "pairs": 120}, "flores200": {"en": 1, "pairs": 1}}
    german = {"tatoeba": {"en": 7, "de": 8, "pairs": 9}}
    entries = [
        ("Demo", "train", "en-fr", 18120, {"empty": 0, "evaluation": 120, "cap": 0}, found),
        ("TED", "train", "en-fr", 1000, {"empty": 5, "evaluation": 0}, {}),
        ("Demo", "train", "de-en", 2000, {"evaluation": 9, "cap": 91}, german),
        ("TED", "train", "de-fr", 50, {}, {}),
        ("Demo", "validation", "en-fr", 500, {"evaluation": 3}, {"tatoeba": {"pairs": 3}}),
    ]
    return write_report(tmp_path / "decontamination.json", entries, ("tatoeba", "flores200"))


def test_the_corpora_table_counts_training_pairs_per_language_over_all_corpora(tmp_path, report):
    write_corpora_table(report, tmp_path / "corpora.tex")
    rows = {label: list(row.values())[1:] for label, row in csv_rows(tmp_path / "corpora").items()}
    assert rows == {
        "de": ["2000", "9", "91", "1900", "8.7M", "5.6M"],
        "fr": ["19120", "120", "5", "18995", "8.8M", "8.7M"],
        "de-fr": ["50", "0", "0", "50", "", ""],
        "Total": ["21170", "129", "96", "20945", "17.5M", "14.3M"],
        "Validation": ["500", "3", "0", "497", "", ""],
    }
    text = (tmp_path / "corpora.tex").read_text()
    assert "fr & 19,120 & 120 & 5 & 18,995 & 8.8M & 8.7M" in text
    assert "204M for LASER and 143M for EMS" in text
    assert "add up to 206.6M and 143.6M" in text


def test_the_decontamination_table_counts_each_benchmark_and_a_pair_once_in_all(tmp_path, report):
    out = tmp_path / "decontamination.tex"
    write_decontamination_table(report, out)
    with open(out.with_suffix(".csv"), encoding="utf-8", newline="") as handle:
        rows = [row for row in csv.reader(handle) if row[:2] == ["Demo v1", "train"]]
    assert [row[2:] for row in rows] == [
        ["tatoeba", "20120", "107", "98", "129"],
        ["flores200", "20120", "1", "0", "1"],
        ["any of them", "20120", "", "", "129"],
    ]
    assert "folded" in out.read_text()


def test_counts_that_do_not_add_up_are_an_error(tmp_path, report):
    data = json.loads(report.read_text())
    data["corpora"][0]["kept"] += 1
    report.write_text(json.dumps(data))
    for write in (write_corpora_table, write_decontamination_table):
        with pytest.raises(EmsError, match=r"corpora\[0\] \(Demo v1, en-fr\)"):
            write(report, tmp_path / "t.tex")


@pytest.mark.parametrize("spoil", ["key", "against", "corpora"])
def test_a_report_that_lacks_something_is_an_error_that_names_it(tmp_path, report, spoil):
    data = json.loads(report.read_text())
    del data[spoil]
    report.write_text(json.dumps(data))
    with pytest.raises(EmsError, match=spoil):
        write_corpora_table(report, tmp_path / "t.tex")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(300, "0.3k"), (50_000, "50k"), (999_499, "999k"), (999_500, "1.0M"), (4_900_000, "4.9M")],
)
def test_large_counts_read_as_table_one_prints_them(count, shown):
    assert human(count) == shown


# --- LaTeX

NASTY = r'*[x] <LASER & 100% #1 {a_b} ~^\ $x$ |"'


def test_escaping_leaves_no_character_that_latex_takes_for_itself():
    escaped = escape(NASTY + "\nnext")
    assert "\n" not in escaped
    assert escape("<LASER") == "$<$LASER"
    assert escape(">300k") == "$>$300k"
    assert escape("*[x]|") == r"{*}{[}x{]}\textbar{}"  # a row may begin with either
    assert escape("EMS - L_cntrs") == r"EMS - L\_cntrs"
    assert not re.search(r"(?<!\\)[&%#_]", escaped)


@pytest.fixture
def latex():
    needs(shutil.which("latexmk"), f"latexmk is missing; install {PACKAGES}")


def test_all_tables_compile_and_the_same_tables_give_the_same_pdf(tmp_path, report, latex):
    paths = [
        write_scores(tmp_path, name, dict.fromkeys(load_models()["EMS"].seen, 50.0 + step))
        for step, name in enumerate(("EMS", "named"))
    ]
    nasty = write_scores(tmp_path, "nasty", dict.fromkeys(SEVEN, 50.0), system=NASTY)
    write_tatoeba_table(paths, tmp_path / "whole.tex", list(load_models()), None)
    write_tatoeba_table([nasty], tmp_path / "nasty.tex", ["EMS"], None)
    write_corpora_table(report, tmp_path / "corpora.tex")
    write_decontamination_table(report, tmp_path / "decontamination.tex")
    tables = [tmp_path / f"{n}.tex" for n in ("whole", "nasty", "corpora", "decontamination")]
    made = []
    for name in ("one.pdf", "two.pdf"):
        compile_pdf(tables, {"nasty": NASTY}, tmp_path / name)
        made.append((tmp_path / name).read_bytes())
    assert made[0].startswith(b"%PDF")
    assert made[0] == made[1]


def test_a_latex_error_is_shown_with_the_line_of_the_log_that_tells_it(tmp_path, latex):
    table = tmp_path / "broken.tex"
    table.write_text("\\begin{tabular}{l}\n\\nosuchcommand \\\\\n\\end{tabular}\n")
    with pytest.raises(EmsError, match=r"! Undefined control sequence[\s\S]*nosuchcommand"):
        compile_pdf([table], {}, tmp_path / "t.pdf")
    assert not (tmp_path / "t.pdf").exists()


def test_without_latex_the_error_names_the_packages(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmsError, match=PACKAGES):
        compile_pdf([tmp_path / "t.tex"], {}, tmp_path / "t.pdf")


def test_nothing_to_set_is_an_error(tmp_path, latex):
    with pytest.raises(EmsError, match="no tables"):
        compile_pdf([], {}, tmp_path / "t.pdf")
    with pytest.raises(EmsError, match="no such file"):
        compile_pdf([Path(tmp_path / "t.tex")], {}, tmp_path / "t.pdf")
