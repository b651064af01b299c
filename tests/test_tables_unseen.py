"""Laws of the tables of other languages and data: Tatoeba's unseen languages, and NTREX."""

import csv
from importlib.resources import files

import pytest
from scores_made import edit, row, write_scores
from tables_made import csv_rows, tex_line, write_table

from ems.benchmarks.tatoeba.table import plot_tatoeba
from ems.errors import EmsError
from ems.scores import UNSEEN
from ems.tables.printed import load_models, load_pairs
from ems.tables.table import rounded

ALL = list(load_models()["EMS"].unseen)


def unseen_scores(folder, system, values, /, seen=None, **changes):
    """Scores of languages never trained on, `values`, and of others, `seen`."""
    languages = dict.fromkeys(values, UNSEEN)
    return write_scores(folder, system, {**values, **(seen or {})}, languages, **changes)


def unseen_rows(tmp_path, scores, printed=(), order=None):
    write_table("tatoeba_unseen", scores, tmp_path / "unseen.tex", list(printed), order)
    return csv_rows(tmp_path / "unseen.tex")


def printed_order():
    """The columns of EMS v2 Table VI as the copied file has them."""
    path = files("ems.tables").joinpath("printed", "ems-v2-table06-tatoeba-unseen.csv")
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return [row["language"] for row in rows if row["model"] == "LASER"]


# --- EMS v2 Table VI


def test_columns_are_those_of_table_six_in_its_order_and_without_groups(tmp_path):
    path = unseen_scores(tmp_path, "A", dict.fromkeys(reversed(ALL), 50.0), seen={"deu": 90.0})
    rows = unseen_rows(tmp_path, [path])
    assert list(rows["A"]) == ["Model", *printed_order()]
    assert len(printed_order()) == 55  # 54 languages and the average
    blocks = [tex_line(tmp_path / "unseen.tex", "Model", block) for block in range(4)]
    assert [len(block) for block in blocks] == [14, 14, 14, 13]


@pytest.mark.parametrize(("name", "average"), [("EMS", "47.1"), ("LASER2", "38.3")])
def test_over_all_unseen_languages_a_printed_row_is_exactly_as_printed(tmp_path, name, average):
    rows = unseen_rows(tmp_path, [unseen_scores(tmp_path, "A", dict.fromkeys(ALL, 50.0))], [name])
    row = rows[f"{name} (printed)"]
    assert row["Avg."] == average  # LASER2's row gives 38.35: what is printed stays
    assert {code: float(row[code]) for code in ALL} == load_models()[name].unseen
    assert "dagger" not in (tmp_path / "unseen.tex").read_text()


def test_over_fewer_unseen_languages_a_printed_mean_is_recomputed_with_a_dagger(tmp_path):
    some, printed = ALL[:5], load_models()["EMS"].unseen
    rows = unseen_rows(tmp_path, [unseen_scores(tmp_path, "A", dict.fromkeys(some, 9.0))], ["EMS"])
    assert rows["EMS (printed)"]["Avg."] == rounded(sum(printed[code] for code in some) / 5)
    assert tex_line(tmp_path / "unseen.tex", "EMS (printed)")[-1].endswith(r"\rlap{$^{\dagger}$}")


def test_each_language_is_in_the_one_table_or_the_other_and_so_is_its_mean(tmp_path):
    path = unseen_scores(tmp_path, "A", {"isl": 10.0, "yid": 20.0}, seen={"deu": 80.0, "fra": 90.0})
    unseen = unseen_rows(tmp_path, [path])["A"]
    write_table("tatoeba", [path], tmp_path / "seen.tex", [])
    seen = csv_rows(tmp_path / "seen.tex")["A"]
    assert list(unseen) == ["Model", "isl", "yid", "Avg."]
    assert list(seen)[:4] == ["Model", "deu", "fra", "Avg."]
    assert (unseen["Avg."], seen["Avg."]) == ("15.0", "85.0")
    assert not {"isl", "yid"} & set(seen)


def test_the_figure_shows_the_languages_of_the_first_table(tmp_path):
    seen = {"deu": 80.0, "fra": 90.0}
    both = unseen_scores(tmp_path / "both", "A", {"isl": 10.0}, seen=seen)
    plot_tatoeba([both], tmp_path / "both.svg")
    plot_tatoeba([write_scores(tmp_path / "seen", "A", seen)], tmp_path / "seen.svg")
    drawn = (tmp_path / "both.svg").read_bytes()
    assert drawn == (tmp_path / "seen.svg").read_bytes()
    assert b"<!-- deu -->" in drawn


def test_bold_and_order_are_of_our_rows_as_in_the_first_table(tmp_path):
    paths = [unseen_scores(tmp_path, name, {"isl": 1.0 + n}) for n, name in enumerate("AB")]
    rows = unseen_rows(tmp_path, paths, ["LaBSE"], ["B"])
    assert list(rows) == ["B", "A", "LaBSE (printed)"]
    assert tex_line(tmp_path / "unseen.tex", "B")[0] == r"\textbf{2.0}"
    labse = tex_line(tmp_path / "unseen.tex", r"\textit{LaBSE (printed)}")
    assert labse[0] == r"\textit{96.2}"


def test_a_note_says_who_was_trained_on_languages_that_ours_never_saw(tmp_path):
    path = unseen_scores(tmp_path, "A", {"isl": 1.0})
    unseen_rows(tmp_path, [path], ["LASER", "EMS"])
    assert "of Table VI, says the paper: LASER." in (tmp_path / "unseen.tex").read_text()
    unseen_rows(tmp_path, [path], ["EMS"])
    assert "says the paper" not in (tmp_path / "unseen.tex").read_text()


def test_notes_name_the_tables_that_the_printed_rows_are_from(tmp_path):
    path = unseen_scores(tmp_path, "A", {"isl": 1.0}, seen={"deu": 2.0})
    unseen_rows(tmp_path, [path], ["EMS"])
    write_table("tatoeba", [path], tmp_path / "seen.tex", ["EMS"])
    assert "EMS v2, Table VI (v1: 5); they" in (tmp_path / "unseen.tex").read_text()
    assert "EMS v2, Table IV (v1: 4), Table V (v1: 6); they" in (tmp_path / "seen.tex").read_text()


def test_printed_rows_are_absent_beside_unseen_languages_of_another_version(tmp_path):
    path = unseen_scores(tmp_path, "A", {"isl": 1.0}, version="demo-v1")
    assert list(unseen_rows(tmp_path, [path], ["EMS"])) == ["A"]
    assert "Printed rows left out (EMS)" in (tmp_path / "unseen.tex").read_text()


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


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ({"languages": {"deu": ""}}, r"expected text under `languages\.deu`"),
        ({"languages": {}}, "expected the language deu under `languages`"),
        ({"rows": [row("deu", "en", 1.0, 0)]}, r"a count above 0 under `rows\.0\.count`"),
        ({"rows": [row("deu", "en", 1.0, "many")]}, r"rows\.0\.count`, found 'many'"),
    ],
)
def test_a_score_without_its_language_or_its_sentences_is_an_error(tmp_path, spoilt, message):
    path = edit(write_scores(tmp_path, "A", {"deu": 1.0}), lambda data: data.update(spoilt))
    with pytest.raises(EmsError, match=message) as error:
        write_table("tatoeba", [path], tmp_path / "t.tex")
    assert str(path) in str(error.value)


# --- NTREX


def ntrex_scores(folder, system, values, /, **changes):
    return write_scores(folder, system, values, benchmark="ntrex", **changes)


def test_ntrex_has_the_languages_of_table_one_in_its_order_and_their_mean(tmp_path):
    values = {code: float(number) for number, code in enumerate(reversed(list(load_pairs())))}
    path = ntrex_scores(tmp_path, "A", {"xx": 61.0, **values})
    write_table("ntrex", [path], tmp_path / "ntrex.tex")
    row = csv_rows(tmp_path / "ntrex.tex")["A"]
    assert list(row) == ["Model", *load_pairs(), "xx", "Avg."]
    assert (row["zh"], row["af"], row["xx"]) == ("0.0", "60.0", "61.0")
    assert row["Avg."] == "30.5"  # of 0 to 61


def test_ntrex_says_how_many_sentences_of_which_documents_it_ranks(tmp_path):
    paths = [
        ntrex_scores(tmp_path, name, {"de": 5.0 + n, "fr": 7.0}) for n, name in enumerate("AB")
    ]
    write_table("ntrex", paths, tmp_path / "ntrex.tex", order=["B"])
    assert list(csv_rows(tmp_path / "ntrex.tex")) == ["B", "A"]
    text = (tmp_path / "ntrex.tex").read_text()
    assert "among 1,000 sentences of each language" in text
    assert "documents of NTREX that neither training nor validation holds" in text
    assert tex_line(tmp_path / "ntrex.tex", "B")[0] == r"\textbf{6.0}"
    assert "printed" not in text


def test_scores_of_one_benchmark_are_an_error_in_the_table_of_the_other(tmp_path):
    ntrex = ntrex_scores(tmp_path, "A", {"de": 5.0})
    tatoeba = write_scores(tmp_path, "A", {"deu": 5.0})
    with pytest.raises(EmsError, match=r"found 'tatoeba'; expected a file ntrex\.json"):
        write_table("ntrex", [tatoeba], tmp_path / "t.tex")
    with pytest.raises(EmsError, match=r"found 'ntrex'; expected a file tatoeba\.json"):
        write_table("tatoeba", [ntrex], tmp_path / "t.tex", [])
    with pytest.raises(EmsError, match=r"no score files.*ntrex\.json"):
        write_table("ntrex", [], tmp_path / "t.tex")
