"""Tables of score files: each form of table as a golden file."""

import csv
import io
from typing import get_args

import pytest
from made import golden
from made.scores import (
    EUROPARL,
    GERMAN,
    RETRIEVAL,
    both_measures,
    fives,
    value_of,
    write_accuracies,
    write_bucc,
    write_cosine,
    write_errors,
    write_flores,
    write_noisy,
    write_retrieval,
    write_scores,
)
from made.tables import DECLARED, SEVEN, times_file, write_table

from ems.bench.scores import UNSEEN
from ems.benchmarks.bucc2018.table import write_missed_table
from ems.config.tables import Printed
from ems.tables.printed import AVERAGE, load_accuracies, load_groups, load_pairs, tatoeba_codes
from ems.tables.registry import outputs
from ems.tables.study import write_ablation_table
from ems.tables.table import Table, comma_separated, rounded

SEEN, NEVER_SEEN = tatoeba_codes("IV"), tatoeba_codes("VI")
RICH, POOR = load_groups("XIV").values()
CLS = [name for name in load_accuracies("ems-v2-table12-amazon-v1")["EMS"] if name != AVERAGE]
CHINESE = GERMAN | {
    "id": "zh-7",
    "sentence": "2013年3月,潘基文也向理事会建议",
    "english": "In March 2013, Ban Ki-moon had also recommended to the Council “this”.",
}


# --- score files of the golden tables


def of_tatoeba(folder):
    """Write two systems with a tie in `deu`, one without `spa`, and a LaBSE of ours."""
    first = {code: (70.1 + step, 72.2 - 2 * step) for step, code in enumerate(SEVEN)}
    second = {**dict.fromkeys(SEVEN[:-1], 60.0), "deu": first["deu"][0] / 2 + first["deu"][1] / 2}
    systems = {"A": first, "B": second, "labse": dict.fromkeys(SEVEN, 99.0)}
    return [write_scores(folder, name, values) for name, values in systems.items()]


def of_unseen_languages(folder):
    """Write two systems; the second scores no unseen language."""
    values = {"isl": 10.0, "yid": 20.0, "deu": 80.0, "fra": 90.0}
    first = write_scores(folder, "A", values, dict.fromkeys(["isl", "yid"], UNSEEN))
    return [first, write_scores(folder, "B", {"deu": 1.0})]


def of_two_languages(folder):
    return [write_scores(folder, "A", {"deu": 40.0, "isl": 1.0})]


def of_families(folder):
    values = {
        "ugt-fr": {"fra": (80.0, 82.0)},
        "both": {"fra": 70.0, "deu": 60.0},
        "ugt-de": {"deu": 50.0},
        "xtr-de": {"deu": 90.0},
    }
    return [write_scores(folder, name, each) for name, each in values.items()]


def of_ntrex(folder):
    values = {code: float(number) for number, code in enumerate(reversed(list(load_pairs())[:-1]))}
    return [
        write_scores(folder, name, {"xx": 61.0 + step, **values}, benchmark="ntrex")
        for step, name in enumerate("AB")
    ]


def of_part_of_flores(folder):
    languages = {"A": ["en", "de", "fr", "ja", "hi", "hy"], "B": ["de", "fr"]}
    return [write_flores(folder, name, own) for name, own in languages.items()]


def of_other_sentences(folder):
    return [write_flores(folder, "A", ["de", "fr"], value_of, 30)]


def of_cosines(folder):
    return [write_cosine(folder, "A", 0.964), write_cosine(folder, "B", -0.5)]


def of_noisy(folder):
    """Write two systems; a damage counts for one language of two, or for none."""
    thai = {"clean": 60.0, "5 % typos": 40.0}
    first = {"de": {"clean": 80.0, "5 % typos": 60.0, "upper case": 77.0}, "th": thai}
    second = {code: {name: v - 5.5 for name, v in own.items()} for code, own in first.items()}
    return [write_noisy(folder, "A", first), write_noisy(folder, "B", second)]


def of_xsim(folder):
    return [*both_measures(folder, "A", 1.5, 40), *both_measures(folder, "B", 2.5, 30)]


def of_xsim_families(folder):
    return [
        write_errors(folder, f"C-{name}", "xsimpp", {name: 10.0}, {name: {kind: 20}})
        for name, kind in (("de", "x"), ("fr", "y"))
    ]


def of_seeds(benchmark, directions, **systems):
    """Return a writer of the accuracies of five seeds, and of the most frequent class."""

    def write(folder):
        frequent = {"most frequent class": dict.fromkeys(directions, 80.0)}
        return [
            write_accuracies(folder, benchmark, name, fives(directions, start), frequent)
            for name, start in systems.items()
        ]

    return write


def of_sib(folder):
    values = {"en-fr": [50.0, 60.0], "en-en": [90.0, 90.0], "en-de": [70.0, 80.0]}
    return [write_accuracies(folder, "sib200", "ems", values | {"en-af": [10.0, 20.0]})]


def of_paws(folder):
    precision = {"average precision": {"en-en": 50.0, "en-de": 51.0}}
    values = {"en-en": 70.0, "en-de": 60.0}
    return [write_accuracies(folder, "pawsx", "ems", values, precision, protocol={"part": "test"})]


def of_bilingual(*codes):
    """Return a writer of models for English and one other language."""
    return lambda folder: [
        write_accuracies(folder, "mldoc", f"ugt-{code}", fives([f"en-{code}", f"{code}-en"]))
        for code in codes
    ]


def of_retrieval(benchmark, protocol):
    values = {"de": (5.0, 6.0), "fr": (7.0, 8.5)}
    return lambda folder: [write_retrieval(folder, "a", benchmark, values, protocol)]


def of_bucc(folder):
    return [write_bucc(folder, "a", {"zh": 40.0, "de": 50.0})]


UGT = {"ugt": ["ugt-fr", "ugt-de", "ugt-it", "ugt-es"]}
BILINGUAL = {"printed": ["Lightweight"], "families": UGT}
MIXED = {"ugt": ("ugt-fr", "ugt-de"), "xtr": ("xtr-fr", "xtr-de"), "mixed": ("xtr-de", "both")}


CASES = {  # golden file -> table, what writes its score files, how it is asked for
    "tatoeba": (
        *("tatoeba", of_tatoeba),
        {"printed": ["LaBSE", "LASER2", "EMS", "mUSE"], "order": ["B", "A"]},
    ),
    "tatoeba_alone": ("tatoeba", of_two_languages, {"printed": ["LASER"]}),
    "tatoeba_seen": ("tatoeba", of_unseen_languages, {}),
    "tatoeba_unseen": ("tatoeba_unseen", of_unseen_languages, {"printed": ["EMS", "LASER"]}),
    "tatoeba_families": (
        *("tatoeba", of_families),
        {"order": ["xtr-de", "ugt-de", "ugt-fr", "both"], "families": MIXED},
    ),
    "ntrex": ("ntrex", of_ntrex, {}),
    "flores": ("flores", of_part_of_flores, {"printed": ["EMS", "LASER2"]}),
    "flores_other": ("flores", of_other_sentences, {"printed": ["EMS"]}),
    "noisy": ("noisy", of_noisy, {"order": ["B"]}),
    "xsim": ("xsim", of_xsim, {"order": ["B"]}),
    "xsim_families": ("xsim", of_xsim_families, {"families": {"C": ("C-de", "C-fr")}}),
    "wordorder": ("wordorder", of_cosines, {"printed": ["EMS", "LASER2", "LaBSE", "LASER"]}),
    "mldoc": (
        *("mldoc", of_seeds("mldoc", ["en-de", "de-en"], ems=70.0, other=60.0)),
        {"printed": ["EMS"]},
    ),
    "cls": ("cls", of_seeds("cls", CLS, ems=70.0), {}),
    "sib200": ("sib200", of_sib, {"printed": ["EMS"]}),
    "counterfactual": ("counterfactual", of_seeds("counterfactual", ["en-de"], ems=70.0), {}),
    "pawsx": ("pawsx", of_paws, {}),
    "bilingual": ("mldoc_bilingual", of_bilingual("it", "es", "de", "fr"), BILINGUAL),
    "bilingual_fewer": ("mldoc_bilingual", of_bilingual("fr", "de"), BILINGUAL),
    "bucc2018": ("bucc2018", of_bucc, {"printed": ["EMS"]}),
    "paracrawl": ("paracrawl", of_retrieval("paracrawl", RETRIEVAL), {"printed": ["EMS"]}),
    "europarlxsr": (
        *("europarlxsr", of_retrieval("europarlxsr", EUROPARL)),
        {"printed": ["Lightweight"]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_tables_are_the_golden_ones(name, tmp_path):
    table, scores, options = CASES[name]
    write_table(table, scores(tmp_path), tmp_path / "t.tex", **options)
    golden.check_table(name, tmp_path / "t.tex")


def test_the_ablation_table_is_the_golden_one(tmp_path):
    """The table has parts of groups, a system without times, and one trained for fewer steps."""
    codes, steps = [*RICH[:3], POOR[0]], {"ems": 1000, "slow": 762, "untrained": 1000}
    scores = [write_scores(tmp_path, name, dict.fromkeys(codes, 50.0)) for name in steps]
    cost = {"ems": (500, 100.0), "slow": (2000, 900.0)}
    times = {name: times_file(tmp_path, name, *of) for name, of in cost.items()}
    out = tmp_path / "t.tex"
    write_ablation_table(scores, out, ["EMS"], list(steps), times=times, steps=steps)
    golden.check_table("ablation", out)


def missed_table(folder, missed):
    path = write_bucc(folder, "a", dict.fromkeys(missed, 50.0), missed=missed)
    write_missed_table([path], out := folder / "t.tex")
    return out


def test_the_table_of_pairs_that_gold_lacks_is_the_golden_one(tmp_path):
    """pdflatex cannot set Chinese, so the .tex has a dash; three pairs of a language are shown."""
    missed = {"zh": [CHINESE], "de": [{**GERMAN, "id": f"de-{at}"} for at in range(5)]}
    golden.check_table("bucc_missed", missed_table(tmp_path, missed))
    golden.check_table("bucc_missed_none", missed_table(tmp_path / "other", {"de": []}))


# --- values that a golden file could have wrong


FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "＝1+1", "- langs tok", "-1+1|cmd"]
NUMBERS = ["-1.5", "+0.3", "-1,234", "+50%", "80.0", "EMS", "a=b", " =1", "", "–"]


def test_only_text_that_a_spreadsheet_would_compute_has_an_apostrophe():
    cells = [*FORMULAS, *NUMBERS, -1.5, -2, None]
    text = comma_separated(Table(["=Model", "-1.5"], [[cell, "-1"] for cell in cells]))
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head == ["'=Model", "-1.5"]
    expected = [*(f"'{cell}" for cell in FORMULAS), *NUMBERS, "-1.5", "-2", ""]
    assert rows == [[cell, "-1"] for cell in expected]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(80.25, "80.3"), (80.15, "80.2"), ((80.1 + 80.2) / 2, "80.2"), (100.0, "100.0"), (0.0, "0.0")],
)
def test_scores_are_rounded_half_up_in_decimal(value, shown):
    assert rounded(value) == shown


# --- layout


@pytest.mark.parametrize(
    ("table", "codes", "widths"),
    [
        ("tatoeba", SEEN, [15, 15, 15, 14, 5]),  # LASER2 has a dash for the group of mUSE
        ("tatoeba_unseen", NEVER_SEEN, [14, 14, 14, 13]),  # 54 languages and the average
    ],
)
def test_languages_stand_in_blocks_of_at_most_fifteen(table, codes, widths, tmp_path):
    languages = dict.fromkeys(codes, UNSEEN) if table == "tatoeba_unseen" else None
    path = write_scores(tmp_path, "A", dict.fromkeys(reversed(codes), 50.0), languages)
    write_table(table, [path], tmp_path / "t.tex", ["LASER2"])
    lines = (tmp_path / "t.tex").read_text().splitlines()
    assert [line.count("&") for line in lines if line.startswith("Model &")] == widths
    assert lines.count(r"\begin{tabular}{l" + "r" * max(widths) + "}") == 1


def test_an_experiment_may_ask_for_every_printed_model_and_for_no_other():
    printed = [table.printed for table in DECLARED.values() if table.printed]
    models = {name for paper in printed if not paper.all_rows for name in paper.models()}
    assert set(get_args(Printed)) == models | {"Reimers and Gurevych"}


# --- captions

CLASSIFIED = ["mldoc", "cls", "marc", "rcv2", "xnli", "sib200", "counterfactual"]  # share a text


def test_every_table_and_figure_has_a_caption_and_a_text_of_its_own():
    listed = [item for members in outputs().values() for item in members.items()]
    captions = [output.shown.paragraph for name, output in listed if name not in CLASSIFIED[1:]]
    assert all(captions)
    assert len(set(captions)) == len(captions)
    assert len({outputs()["table"][name].shown.paragraph for name in CLASSIFIED}) == 1
    assert all(output.shown.caption.endswith(".") for output in outputs()["table"].values())
