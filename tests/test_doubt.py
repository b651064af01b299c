"""Laws of `tables.intervals`: intervals cover, and only a significant best is bold."""

import csv
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from made import golden
from made.scores import edit, row, write_bucc, write_cosine, write_file
from made.tables import DECLARED

from ems.base.errors import Damaged
from ems.base.schema import plain
from ems.bench import significance
from ems.bench.scores import Score, packed, read_score_file
from ems.bench.significance import Sample, f1_interval, sampled, sign_test, surely_best
from ems.config.tables import TablesSettings
from ems.tables.engine import write_systems

SETS = 500


def some(draw, count, easy, shape=()):
    """Hits of sentences that are easy or hard for all: bool[*shape, count], `easy` on average."""
    ease = draw.beta(easy, 1 - easy, count)
    return draw.random((*shape, count)) < ease


# --- intervals


def one_direction(draw):
    return [[Score.from_hits("de", "en", some(draw, 300, 0.7))]], False


def both_directions(draw):
    there, back = some(draw, 300, 0.7, (2,))
    return [[Score.from_hits("de", "en", there), Score.from_hits("en", "de", back)]], False


def other_sentences(draw):
    return [[Score.from_hits(code, "en", some(draw, 200, 0.7))] for code in "abcde"], False


def parallel(draw):
    hits = some(draw, 300, 0.7, (5,))
    return [[Score.from_hits(c, "en", own)] for c, own in zip("abcde", hits, strict=True)], True


def seeds_into_english(draw):
    """Classifiers of three sources and two seeds, on the same English documents."""
    hits = some(draw, 300, 0.7, (3, 2))
    return [
        [Score.from_hits(c, "en", one, seed=seed) for seed, one in enumerate(own)]
        for c, own in zip("abc", hits, strict=True)
    ], False


FORMS = [one_direction, both_directions, other_sentences, parallel, seeds_into_english]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_an_interval_holds_the_truth_in_95_percent_of_made_sets(form):
    """Taking rows of the same sentences for others, it would be in 75 percent of the last two."""
    draw, held = np.random.default_rng(5), 0
    for _ in range(SETS):
        low, high = sampled(*form(draw)).interval
        held += low <= 70 <= high
    assert 0.92 <= held / SETS <= 0.98


def test_the_interval_of_f1_holds_the_truth_and_is_that_of_resampled_pairs():
    draw, held = np.random.default_rng(6), 0
    for _ in range(SETS):
        right, found, gold = draw.multinomial(400, [0.6, 0.15, 0.25])
        low, high = f1_interval(int(right), int(right + found), int(right + gold))
        held += low <= 100 * 1.2 / 1.6 <= high
    assert 0.92 <= held / SETS <= 0.98
    kinds = np.repeat([0, 1, 2], [60, 15, 25])
    drawn = [np.bincount(draw.choice(kinds, 100), minlength=3) for _ in range(4000)]
    naive = np.quantile([200 * a / (2 * a + b + c) for a, b, c in drawn], [0.025, 0.975])
    assert f1_interval(60, 75, 85) == pytest.approx(tuple(naive), abs=1)
    assert f1_interval(5, 5, 5) == (100, 100)
    assert f1_interval(0, 0, 5) == (0, 0)


def test_the_order_of_languages_changes_no_interval():
    labels, _ = other_sentences(np.random.default_rng(1))
    assert sampled(labels, False).interval == sampled(labels[::-1], False).interval
    alike, _ = parallel(np.random.default_rng(1))
    assert sampled(alike, True).interval == sampled(alike[::-1], True).interval


def test_unknown_hits_have_no_interval_and_stored_ones_are_independent():
    bare, known = Score("de", "en", 50.0, 9), Score("fr", "en", 70.0, 9, interval=(66.0, 72.0))
    assert sampled([[known]], False) == Sample(70.0, (66.0, 72.0), [])
    assert sampled([[known], [known]], False).interval == pytest.approx((70 - 8**0.5, 70 + 2**0.5))
    assert sampled([[known], [bare]], False) == Sample(60.0, None, [])


# --- tests


@pytest.mark.parametrize("seed", range(6))
def test_the_sign_test_counts_the_flips_that_differ_as_much(seed):
    draw = np.random.default_rng(seed)
    gains = draw.choice([-1, -0.5, 0, 0.5, 1], 12)
    moved = gains[gains != 0]
    sums = [abs(np.dot(signs, np.abs(moved))) for signs in product([-1, 1], repeat=len(moved))]
    naive = np.mean([each >= abs(moved.sum()) - 1e-9 for each in sums])
    assert sign_test([gains]) == pytest.approx(naive, abs=0.05)
    assert sign_test([gains]) == pytest.approx(sign_test([-gains]))
    assert sign_test([gains, gains]) <= sign_test([gains])


def test_equal_systems_are_bold_in_at_most_5_percent_of_made_tables():
    """Of four equal systems; a copy of the best one takes its bold away."""
    draw, bold = np.random.default_rng(7), 0
    for _ in range(SETS):
        hits = some(draw, 200, 0.7, (4,))
        column = {
            at: sampled([[Score.from_hits("de", "en", own)]], False) for at, own in enumerate(hits)
        }
        found = surely_best({"de": column})
        assert len(found) <= 1
        bold += bool(found)
        copied = column | {5: max(column.values(), key=lambda sample: sample.value)}
        assert not surely_best({"de": copied})
    assert bold / SETS <= 0.05


def pretend(monkeypatch, p):
    """Let the p of the best system, whose value is 9, be the one of the other's value."""
    monkeypatch.setattr(significance, "p_value", lambda best, other: p[other.value])
    return lambda *values: {value: Sample(value, None, []) for value in (9.0, *values)}


def test_holm_by_hand(monkeypatch):
    """Of 0.01, 0.04, 0.03 Holm makes 0.03, 0.06, 0.06; of 0.01, 0.02, 0.03 it makes 0.03, 0.04,
    0.04. Two columns of the second and of 0.001 share four comparisons: 0.03, 0.04, 0.04, 0.004.
    With 0.02 in the other one, four make 0.04, 0.06, 0.06, 0.06, so that no column is sure.
    """
    column = pretend(monkeypatch, {1.0: 0.01, 2.0: 0.04, 3.0: 0.03, 4.0: 0.02, 5.0: 0.001})
    assert surely_best({"Avg.": column(1.0, 2.0, 3.0)}) == set()
    assert surely_best({"Avg.": column(1.0, 4.0, 3.0)}) == {(9.0, "Avg.")}
    both = {"de": column(1.0, 4.0, 3.0), "fr": column(5.0)}
    assert surely_best(both) == {(9.0, "de"), (9.0, "fr")}
    assert surely_best({"de": column(1.0, 4.0, 3.0), "fr": column(4.0)}) == set()
    assert surely_best({"de": column()}) == set()  # alone


def test_the_lowest_error_rate_is_the_best():
    low, high = (
        sampled([[Score.from_hits("de", "en", np.arange(99) < n)]], False) for n in (9, 60)
    )
    assert surely_best({"de": {"a": low, "b": high}}, lowest=True) == {("a", "de")}


# --- tables


def tatoeba(folder, system, shares, seed):
    draw, rows = np.random.default_rng(seed), []
    ease = np.random.default_rng(1).random(400)
    for code, share in shares.items():
        for pair in ((code, "en"), ("en", code)):
            hits = ease + draw.normal(0, 0.02, 400) < share
            rows.append(row(*pair, 100 * float(hits.mean()), 400, hits=packed(hits)))
    return write_file(folder, system, "tatoeba", "P@1", rows, [*shares])


@pytest.fixture
def three(tmp_path):
    """A is better than B in German and French, and equal in Spanish; LaBSE does not compete."""
    shares = {"A": (0.9, 0.85, 0.8), "B": (0.8, 0.8, 0.8), "labse": (0.97, 0.97, 0.97)}
    codes = ("deu", "fra", "spa")
    return [
        tatoeba(tmp_path, name, dict(zip(codes, own, strict=True)), seed)
        for seed, (name, own) in enumerate(shares.items())
    ]


def written(table, paths, out, intervals=True, printed=()):
    write_systems(replace(DECLARED[table], intervals=intervals), paths, out, printed)
    return out.with_suffix(".md").read_text()


def test_a_table_with_intervals_is_the_golden_one(three, tmp_path):
    """Bold: German, French and the mean of A; the printed row and LaBSE have no bold."""
    written("tatoeba", three, tmp_path / "t.tex", printed=["EMS"])
    golden.check_table("tatoeba_intervals", tmp_path / "t.tex")
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as handle:
        first, *_, printed = csv.DictReader(handle)
    assert float(first["deu low"]) < float(first["deu"]) < float(first["deu high"])
    assert printed["Model"] == "EMS (printed)"
    assert printed["deu low"] == ""


def test_a_significant_difference_is_bold_and_an_insignificant_one_is_not(three, tmp_path):
    bold = {
        line.split("|")[1]: line.count("**") // 2
        for line in written("tatoeba", three, tmp_path / "t.tex").splitlines()
        if "±" in line and line.startswith("|")
    }
    assert bold == {" A ": 3, " B ": 0, " *labse* ": 0}
    plain_bold = written("tatoeba", three, tmp_path / "t.tex", intervals=False)
    assert "±" not in plain_bold
    assert plain_bold.count("**") == 2 * 4  # German, French, Spanish (of either) and the mean


def test_seeds_have_rows_of_their_own_and_wide_tables_more_blocks(tmp_path):
    draw, codes = np.random.default_rng(2), [f"{a}{b}" for a in "abc" for b in "abc"]
    rows = []
    for code, seed in product(codes, (1, 2)):
        hits = draw.random(80) < 0.7
        rows.append(row("en", code, 100 * float(hits.mean()), 80, seed=seed, hits=packed(hits)))
    languages = {code: code for code in codes}
    path = write_file(tmp_path, "A", "sib200", "accuracy", rows, languages, label="direction")
    text = written("sib200", [path], tmp_path / "t.tex")
    assert text.count("| A, s.d. |") == 2
    assert text.count("| Model |") == 2
    assert "mean of 2 seeds." in text
    assert "standard deviation" not in text


def test_measures_without_hits_say_so_and_mining_is_judged_by_its_intervals(tmp_path):
    paths = [write_bucc(tmp_path, name, {"de": f1}) for name, f1 in (("A", 90.0), ("B", 80.0))]
    text = written("bucc2018", paths, tmp_path / "t.tex")
    assert "Without an interval, so never bold: en-de, Avg." in text.replace("\\", "")
    assert "**" not in text
    for path, f1 in zip(paths, (90.0, 80.0), strict=True):
        edit(path, lambda data: data["rows"][0].update(interval=[f1 - 2, f1 + 2]))  # noqa: B023
    text = written("bucc2018", paths, tmp_path / "t.tex")
    assert "| A | **90.0** ± 2.0 | **90.0** ± 2.0 |" in text
    assert "as if the sentences were others" in text
    edit(paths[1], lambda data: data["rows"][0].update(value=88.0, interval=[86, 90]))
    assert "**" not in written("bucc2018", paths, tmp_path / "t.tex")
    cosines = [write_cosine(tmp_path, name, value) for name, value in (("A", 0.9), ("B", 0.1))]
    assert "**" not in written("wordorder", cosines, tmp_path / "t.tex")


def test_stored_intervals_are_read_unless_hits_say_it(tmp_path):
    hits = packed(np.arange(10) < 5)
    rows = [row("de", "en", 50.0, 10, interval=[40.0, 60.0]), row("fr", "en", 50.0, 10)]
    rows[1] |= {"hits": hits, "interval": [20.0, 80.0]}
    path = write_file(tmp_path, "A", "tatoeba", "P@1", rows, ["de", "fr"])
    assert [each.interval for each in read_score_file(path).rows] == [(40.0, 60.0), None]


def test_damaged_hits_are_an_error_that_names_the_file(three, tmp_path):
    edit(three[0], lambda data: data["rows"][0].update(hits="AAAA"))
    with pytest.raises(Damaged, match=r"A/tatoeba\.json: the hits are damaged"):
        written("tatoeba", three, tmp_path / "t.tex")


def test_the_default_leaves_the_settings_of_tables_as_they_were():
    assert "intervals" not in plain(TablesSettings())
    assert plain(TablesSettings(intervals=True))["intervals"] is True
