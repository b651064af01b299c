"""Laws of the tables of BUCC and of retrieval: the papers' columns, printed rows only beside scores
made as theirs, a dash where a score is missing."""

import shutil
from statistics import mean

import pytest
from conftest import needs
from made.scores import (
    BUCC,
    EUROPARL,
    GERMAN,
    RETRIEVAL,
    write_bucc,
    write_errors,
    write_retrieval,
)
from made.tables import DECLARED, SUFFIXES, csv_rows, tex_line, write_table

from ems.base.errors import EmsError
from ems.benchmarks.bucc2018.table import write_missed_table
from ems.tables.pdf import compile_pdf
from ems.tables.printed import AVERAGE, load_table
from ems.tables.table import rounded

CHINESE = {
    "score": 1.28,
    "id": "zh-7",
    "english_id": "en-9",
    "sentence": "2013年3月,潘基文也向理事会建议",
    "english": "In March 2013, Ban Ki-moon had also recommended to the Council “this”.",
}


def notes_of(out):
    return out.with_suffix(".md").read_text(encoding="utf-8")


# --- the printed numbers


def test_a_printed_model_is_named_without_its_authors_and_ours_is_not_ours():
    names = list(load_table("lightweight-table04-xsr", "direction"))
    assert names == ["Bi-Vec", "Bi-Sent2Vec", "Lightweight", "TransGram", "LASER"]
    assert "EMS" in load_table("ems-v2-table09-bucc", "pair")


# --- BUCC


def test_the_notes_of_bucc_say_its_margin_and_where_its_threshold_is_from(tmp_path):
    out = tmp_path / "bucc.tex"
    for protocol, where in (
        (BUCC, "best F1 on these same gold pairs (oracle)"),
        (BUCC | {"threshold": "sample"}, "best F1 on its sample part"),
    ):
        scores = write_bucc(tmp_path, "a", {"zh": 40.0, "de": 50.0}, protocol)
        write_table("bucc2018", [scores], out)
        assert where in notes_of(out)
        assert "ratio margin, 4 neighbours" in notes_of(out)


OF_PARACRAWL = "Printed rows left out (EMS): they are of ParaCrawl v5, 2,000 queries"


@pytest.mark.parametrize(
    ("benchmark", "other", "note"),
    [
        ("bucc2018", {"threshold": "sample"}, "Printed rows left out (EMS)"),
        ("bucc2018", {"margin": "distance"}, "Printed rows left out (EMS)"),
        ("bucc2018", {"k": 8}, "Printed rows left out (EMS)"),
        ("paracrawl", {"candidates": 2000}, OF_PARACRAWL),
        ("paracrawl", {"queries": 100}, OF_PARACRAWL),
        ("paracrawl", {"margin": "absolute"}, OF_PARACRAWL),
    ],
)
def test_beside_another_protocol_the_printed_rows_are_left_out(benchmark, other, note, tmp_path):
    if benchmark == "bucc2018":
        scores = write_bucc(tmp_path, "a", {"de": 50.0}, BUCC | other)
    else:
        scores = write_retrieval(tmp_path, "a", benchmark, {"de": (5.0, 6.0)}, RETRIEVAL | other)
    write_table(benchmark, [scores], tmp_path / "t.tex", ["EMS"])
    assert list(csv_rows(tmp_path / "t.tex")) == ["a"]
    assert note in notes_of(tmp_path / "t.tex")


TWO = {"de": (5.0, 6.0), "fr": (7.0, 8.0)}
FEWER = {  # table -> a score file of two of its languages, a model that the paper prints
    "bucc2018": (lambda folder: write_bucc(folder, "a", {"de": 5.0, "zh": 6.0}), "EMS"),
    "paracrawl": (lambda folder: write_retrieval(folder, "a", "paracrawl", TWO), "EMS"),
    "europarlxsr": (
        lambda folder: write_retrieval(folder, "a", "europarlxsr", TWO, EUROPARL),
        "Lightweight",
    ),
}


@pytest.mark.parametrize("table", FEWER)
def test_over_fewer_languages_a_printed_mean_is_of_these_with_a_dagger(table, tmp_path):
    made, model = FEWER[table]
    rows = write_table(table, [made(tmp_path)], tmp_path / "t.tex", [model])
    _, *values, average = rows[f"{model} (printed)"].values()
    paper = DECLARED[table].printed.models()[model][AVERAGE]
    assert average == rounded(mean(map(float, values))) != rounded(paper)
    assert f"{average}†" in notes_of(tmp_path / "t.tex")


WITH_PROTOCOL = {  # table -> a score file with this protocol
    "bucc2018": lambda folder, protocol: write_bucc(folder, "a", {"de": 5.0}, protocol),
    "xsim": lambda folder, protocol: write_errors(
        folder, "a", "xsim", {"de": 5.0}, protocol=protocol
    ),
}


@pytest.mark.parametrize("table", WITH_PROTOCOL)
@pytest.mark.parametrize(
    ("protocol", "message"),
    [({"k": 4}, "text under `protocol.margin`"), (["k"], "a JSON object under `protocol`")],
)
def test_a_file_without_its_protocol_is_an_error_that_names_it(table, protocol, message, tmp_path):
    path = WITH_PROTOCOL[table](tmp_path, protocol)
    with pytest.raises(EmsError, match=rf"a/{table}.json: expected {message}"):
        write_table(table, [path], tmp_path / "t.tex")


# --- pairs that gold lacks


def missed_table(tmp_path, missed):
    out = tmp_path / "bucc_missed.tex"
    path = write_bucc(tmp_path, "a", dict.fromkeys(missed, 50.0), missed=missed)
    write_missed_table([path], out)
    return out


def test_the_best_pairs_that_gold_lacks_stand_with_their_ids_three_of_each_language(tmp_path):
    missed = {"zh": [CHINESE], "de": [{**GERMAN, "id": f"de-{at}"} for at in range(5)]}
    out = missed_table(tmp_path, missed)
    lines = out.with_suffix(".csv").read_text(encoding="utf-8").splitlines()
    assert [line.partition(",")[0] for line in lines] == ["Pair", *["en-de"] * 3, "en-zh"]
    assert lines[1].startswith("en-de,1.350,de-0 en-2,Größe & Maß")
    assert CHINESE["sentence"] in notes_of(out)
    assert "system a" in notes_of(out)


def test_a_sentence_that_pdflatex_cannot_print_is_a_dash_in_the_tex_alone(tmp_path):
    out = missed_table(tmp_path, {"zh": [CHINESE], "de": [GERMAN]})
    tex = out.read_text(encoding="utf-8")
    assert tex_line(out, "en-zh")[2] == "--"
    assert "潘" not in tex
    assert "in the .md and the .csv" in tex
    assert "in the .md and the .csv" not in notes_of(out)
    assert r"Größe \& Maß: 50 \% „mehr“ – für alle\_" in tex


def test_a_system_that_misses_nothing_has_an_empty_table(tmp_path):
    out = missed_table(tmp_path, {"de": []})
    assert out.with_suffix(".csv").read_text() == "Pair,Score,Ids,Sentence,English\n"
    assert r"\bottomrule" in out.read_text()


@pytest.mark.parametrize("bad", [None, [{"id": "de-1"}], ["x"]])
def test_a_malformed_pair_is_an_error_that_names_the_file(bad, tmp_path):
    path = write_bucc(tmp_path, "a", {"de": 50.0}, missed={"de": bad})
    with pytest.raises(EmsError, match=r"a/bucc2018.json: expected .*details.de.missed"):
        write_missed_table([path], tmp_path / "bucc_missed.tex")


def test_latex_sets_the_sentences_in_lines(tmp_path):
    needs(shutil.which("latexmk") and shutil.which("pdflatex"), "LaTeX is not installed")
    long = {
        **GERMAN,
        "sentence": "Wort für Wort " * 30,
        "english": "word by word “and” — so on " * 20,
    }
    out = missed_table(tmp_path, {"zh": [CHINESE], "de": [GERMAN, long]})
    empty = missed_table(tmp_path / "other", {"de": []})
    europarl = tmp_path / "europarlxsr.tex"
    scores = write_retrieval(tmp_path, "a", "europarlxsr", {"fr": (80.0, 82.0)}, EUROPARL)
    write_table("europarlxsr", [scores], europarl, ["Lightweight"])
    compile_pdf([out, empty, europarl], {}, tmp_path / "tables.pdf")
    assert (tmp_path / "tables.pdf").stat().st_size > 10_000


# --- retrieval


def test_a_language_of_paracrawl_is_the_mean_of_both_directions(tmp_path):
    out = tmp_path / "paracrawl.tex"
    scores = write_retrieval(tmp_path, "a", "paracrawl", {"fr": (50.0, 60.0)}, RETRIEVAL)
    write_table("paracrawl", [scores], out, ["EMS"])
    assert csv_rows(out)["a"]["fr"] == "55.0"
    text = notes_of(out)
    assert "mean of both directions, of 2,000 queries among 200,000 candidates" in text
    assert "by the ratio margin with 4 neighbours" in text
    assert "of other sentences drawn from ParaCrawl" in text


def test_each_direction_of_europarl_has_a_column_as_in_the_lightweight_paper(tmp_path):
    values = {"de": (10.0, 20.0), "es": (30.0, 40.0), "fr": (50.0, 60.0), "it": (70.0, 80.0)}
    out = tmp_path / "europarlxsr.tex"
    scores = write_retrieval(tmp_path, "a", "europarlxsr", values, EUROPARL)
    write_table("europarlxsr", [scores], out, ["EMS"])
    assert list(csv_rows(out)["a"].values()) == [
        *("a", "60.0", "50.0", "20.0", "10.0", "40.0", "30.0", "80.0", "70.0", "45.0")
    ]
    assert "by cosine" in notes_of(out)
    assert "en->fr queries are English" in out.read_text()


def test_the_same_pairs_give_the_same_bytes(tmp_path):
    outs = [missed_table(tmp_path / name, {"de": [GERMAN]}) for name in ("one", "two")]
    one, two = ([out.with_suffix(each).read_bytes() for each in SUFFIXES] for out in outs)
    assert one == two
