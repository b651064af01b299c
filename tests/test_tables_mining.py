"""Laws of the tables of BUCC and of retrieval: the papers' columns, printed rows only beside scores
made as theirs, a dash where a score is missing."""

import shutil

import pytest
from conftest import needs
from scores_made import BUCC, EUROPARL, GERMAN, RETRIEVAL, write_bucc, write_retrieval
from tables_made import SUFFIXES, csv_rows, tex_line, write_table

from ems.benchmarks.bucc2018.missed import write_missed_table
from ems.errors import EmsError
from ems.tables.pdf import compile_pdf
from ems.tables.printed import load_table

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


def test_the_columns_of_bucc_are_the_papers_and_its_rows_stand_below(tmp_path):
    values = {"zh": 40.0, "de": 50.06, "fr": 60.0, "ru": 70.0}
    scores = [
        write_bucc(tmp_path, "a", values),
        write_bucc(tmp_path, "b", dict.fromkeys(values, 45.0)),
    ]
    out = tmp_path / "bucc.tex"
    write_table("bucc2018", scores, out, ["EMS", "LASER2", "mUSE"], ["b", "a"])
    rows = csv_rows(out)
    assert list(rows) == ["b", "a", "EMS (printed)", "mUSE (printed)"]
    assert rows["a"] == {
        "Model": "a",
        "en-de": "50.1",
        "en-fr": "60.0",
        "en-ru": "70.0",
        "en-zh": "40.0",
        "Avg.": "55.0",
    }
    assert rows["EMS (printed)"]["Avg."] == "91.7"
    assert tex_line(out, "a")[3] == "40.0"
    assert tex_line(out, "b")[3] == r"\textbf{45.0}"  # printed rows do not compete
    assert "best F1 on these same gold pairs (oracle)" in notes_of(out)
    assert "ratio margin, 4 neighbours" in notes_of(out)


@pytest.mark.parametrize(
    "other",
    [
        {"protocol": BUCC | {"threshold": "sample"}},
        {"protocol": BUCC | {"margin": "distance"}},
        {"protocol": BUCC | {"k": 8}},
        {"version": "mini"},
    ],
)
def test_beside_other_data_or_another_protocol_the_printed_rows_are_left_out(other, tmp_path):
    out = tmp_path / "bucc.tex"
    write_table("bucc2018", [write_bucc(tmp_path, "a", {"de": 50.0}, **other)], out, ["EMS"])
    assert list(csv_rows(out)) == ["a"]
    assert "Printed rows left out (EMS)" in notes_of(out)
    if other.get("protocol", {}).get("threshold") == "sample":
        assert "best F1 on its sample part" in notes_of(out)


def test_a_language_that_a_system_lacks_is_a_dash_that_a_note_names(tmp_path):
    scores = [
        write_bucc(tmp_path, "a", {"de": 50.0, "zh": 30.0}),
        write_bucc(tmp_path, "b", {"de": 45.0}),
    ]
    out = tmp_path / "bucc.tex"
    write_table("bucc2018", scores, out, ["EMS"])
    assert csv_rows(out)["b"] == {"Model": "b", "en-de": "45.0", "en-zh": "", "Avg.": ""}
    assert "b has no score for en-zh" in notes_of(out)
    # two of four pairs: the printed mean is of these two
    assert csv_rows(out)["EMS (printed)"]["Avg."] == "92.7"
    assert "†" in notes_of(out)


def test_a_file_without_its_protocol_is_an_error_that_names_it(tmp_path):
    path = write_bucc(tmp_path, "a", {"de": 5.0}, {"k": 4})
    with pytest.raises(EmsError, match=r"a/bucc2018.json: expected text under `protocol.margin`"):
        write_table("bucc2018", [path], tmp_path / "bucc.tex", [])
    path = write_bucc(tmp_path, "a", {"de": 5.0}, ["k"])
    with pytest.raises(EmsError, match=r"a/bucc2018.json: expected a JSON object under `protocol`"):
        write_table("bucc2018", [path], tmp_path / "bucc.tex", [])


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
    assert [line.partition(",")[0] for line in lines] == [
        "Pair",
        "en-de",
        "en-de",
        "en-de",
        "en-zh",
    ]
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
    languages = list(load_table("ems-v2-table10-paracrawl", "language")["EMS"])[:-1]
    values = dict.fromkeys(languages, (50.0, 60.0))
    out = tmp_path / "paracrawl.tex"
    scores = write_retrieval(tmp_path, "a", "paracrawl", values, RETRIEVAL)
    write_table("paracrawl", [scores], out, ["EMS", "LaBSE", "mUSE"])
    rows = csv_rows(out)
    assert list(rows) == ["a", "EMS (printed)", "LaBSE (printed)"]
    assert list(rows["a"]) == ["Model", *sorted(languages), "Avg."]
    assert (rows["a"]["fr"], rows["a"]["Avg."]) == ("55.0", "55.0")
    assert (rows["EMS (printed)"]["fr"], rows["EMS (printed)"]["Avg."]) == ("91.6", "87.3")
    text = notes_of(out)
    assert "mean of both directions, of 2,000 queries among 200,000 candidates" in text
    assert "by the ratio margin with 4 neighbours" in text
    assert "of other sentences drawn from ParaCrawl" in text


@pytest.mark.parametrize(
    "other", [{"candidates": 2000}, {"queries": 100}, {"margin": "absolute"}, {"version": "v9"}]
)
def test_scores_of_another_size_measure_or_release_stand_without_printed_rows(other, tmp_path):
    version = {"version": other.pop("version")} if "version" in other else {}
    protocol = RETRIEVAL | other
    scores = write_retrieval(tmp_path, "a", "paracrawl", {"de": (5.0, 6.0)}, protocol, **version)
    out = tmp_path / "paracrawl.tex"
    write_table("paracrawl", [scores], out, ["EMS"])
    assert list(csv_rows(out)) == ["a"]
    assert "Printed rows left out (EMS): they are of ParaCrawl v5, 2,000 queries" in notes_of(out)


def test_each_direction_of_europarl_has_a_column_as_in_the_lightweight_paper(tmp_path):
    values = {"de": (10.0, 20.0), "es": (30.0, 40.0), "fr": (50.0, 60.0), "it": (70.0, 80.0)}
    out = tmp_path / "europarlxsr.tex"
    scores = write_retrieval(tmp_path, "a", "europarlxsr", values, EUROPARL)
    write_table("europarlxsr", [scores], out, ["Lightweight", "EMS"])
    rows = csv_rows(out)
    printed = load_table("lightweight-table04-xsr", "direction")["Lightweight"]
    assert list(rows["a"]) == ["Model", *printed]
    assert list(rows["a"].values()) == [
        *("a", "60.0", "50.0", "20.0", "10.0", "40.0", "30.0", "80.0", "70.0", "45.0")
    ]
    assert rows["Lightweight (printed)"]["en<-fr"] == "90.8"
    assert "by cosine" in notes_of(out)
    assert "en->fr queries are English" in out.read_text()


def test_the_same_pairs_give_the_same_bytes(tmp_path):
    outs = [missed_table(tmp_path / name, {"de": [GERMAN]}) for name in ("one", "two")]
    one, two = ([out.with_suffix(each).read_bytes() for each in SUFFIXES] for out in outs)
    assert one == two
