"""Laws of comparing two systems: its statistics equal loops and scipy."""

import csv
import math
from itertools import chain, permutations, takewhile
from unittest.mock import Mock

import numpy as np
import pytest
from made import golden
from made.scores import edit, row, write_bucc, write_cosine, write_file
from scipy.stats import binomtest

from ems.base.errors import EmsError
from ems.bench.scores import packed
from ems.bench.significance import holm, mean_change, sign_test
from ems.commands.cli import main
from ems.tables import compare as module
from ems.tables.compare import write_comparison

WAYS = ("to_english", "from_english")


def bits(count, share, seed):
    return np.random.default_rng(seed).random(count) < share


# --- McNemar


def mcnemar(first, second):
    return sign_test([second.astype(float) - first])


def naive_mcnemar(first, second):
    """Sum the chances of outcomes of a fair coin that are as improbable as the one seen."""
    better = worse = 0
    for one, other in zip(first, second, strict=True):
        better += other and not one
        worse += one and not other
    tosses = better + worse
    chances = [math.comb(tosses, heads) / 2**tosses for heads in range(tosses + 1)]
    return min(1.0, sum(c for c in chances if c <= chances[better] * (1 + 1e-9)))


@pytest.mark.parametrize("count", [1, 5, 40, 300])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.6])
def test_mcnemar_is_the_exact_binomial_test_of_the_sentences_that_differ(count, share):
    first, second = bits(count, 0.5, 1), bits(count, share, 2)
    p_value = mcnemar(first, second)
    assert p_value == pytest.approx(naive_mcnemar(first.tolist(), second.tolist()))
    assert p_value == pytest.approx(mcnemar(second, first))
    better, worse = sum(second & ~first), sum(first & ~second)
    if better + worse:
        assert p_value == pytest.approx(binomtest(int(better), int(better + worse)).pvalue)
    assert mcnemar(first, first) == 1


# --- Holm


def naive_holm(values):
    """Return for each value the least level at which Holm's steps reject it."""
    count, ordered = len(values), sorted(values)
    levels = sorted({min(1.0, k * value) for value in values for k in range(1, count + 1)} | {1.0})

    def rejected(level):
        limits = [level / (count - rank) * (1 + 1e-12) for rank in range(count)]
        steps = takewhile(lambda step: step[0] <= step[1], zip(ordered, limits, strict=True))
        return [value for value, _ in steps]

    return [next((x for x in levels if value in rejected(x)), 1.0) for value in values]


@pytest.mark.parametrize("seed", range(8))
def test_holm_gives_the_least_level_at_which_its_steps_reject(seed):
    draw = np.random.default_rng(seed)
    values = (draw.random(draw.integers(1, 7)) ** 3).tolist()
    assert holm(values) == pytest.approx(naive_holm(values))
    assert holm([]) == []


# --- bootstrap


def naive_bootstrap(gains, together, draws=2000):
    draw, means = np.random.default_rng(77), []
    for _ in range(draws):
        parts = [draw.integers(0, len(each), len(each)) for each in gains]
        parts = parts[:1] * len(gains) if together else parts
        means.append(np.mean([each[c].mean() for each, c in zip(gains, parts, strict=True)]))
    return 100 * np.quantile(means, [0.025, 0.975])


def made_gains(languages, count, shared):
    """Return the gain of each sentence, in halves; `shared`: equal in all languages."""
    base = np.random.default_rng(3).choice(
        [-1, -0.5, 0, 0.5, 1], count, p=[0.1, 0.1, 0.4, 0.2, 0.2]
    )
    other = np.random.default_rng(4)
    return [base if shared else other.permutation(base) for _ in range(languages)]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_the_interval_is_that_of_resampled_sentences(together, shared):
    gains = made_gains(4, 120, shared)
    interval = mean_change(gains, [not together and at for at in range(4)])
    low, high = naive_bootstrap(gains, together)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1.0)
    assert interval.delta == pytest.approx(100 * np.mean(gains))


def test_no_difference_at_all_has_p_1_and_a_clear_one_a_small_one():
    assert mean_change([np.zeros(50)], [""]).p == 1
    clear = mean_change([np.ones(50)], [""])
    assert (clear.delta, clear.low, clear.high) == (100, 100, 100)
    assert 0 < clear.p < 0.001


# --- score files


def write_scores(folder, system, hits, /, benchmark="tatoeba", **changes):
    """Write a score file of P@1; hits: code -> (to English, from English), bool[N] each."""
    ways = [(scored(c, "en", to), scored("en", c, back)) for c, (to, back) in hits.items()]
    rows = list(chain.from_iterable(ways))
    return write_file(folder, system, benchmark, "P@1", rows, [*hits], **changes)


def scored(source, target, hits, **others):
    share = 100 * hits.sum() / len(hits)
    return row(source, target, share, len(hits), hits=packed(hits), **others)


HITS = {
    "one": {"deu": (bits(200, 0.5, 1), bits(200, 0.5, 2)), "fra": (bits(90, 0.4, 3),) * 2},
    "two": {
        "deu": (bits(200, 0.5, 1) | bits(200, 0.5, 9), bits(200, 0.5, 2) | bits(200, 0.4, 8)),
        "fra": (bits(90, 0.45, 5), bits(90, 0.4, 3)),
    },
}


@pytest.fixture
def both(tmp_path):
    return [write_scores(tmp_path, name, hits).parent for name, hits in HITS.items()]


@pytest.fixture
def compared(tmp_path):
    """Compare two folders; return the rows of the table by benchmark and language."""

    def compare(one, two):
        write_comparison(one, two, tmp_path / "out.tex")
        with open(tmp_path / "out.csv", encoding="utf-8", newline="") as reader:
            return {(row["Benchmark"], row["Language"]): row for row in csv.DictReader(reader)}

    return compare


def test_p_of_a_language_is_mcnemars_corrected_over_the_languages_of_its_way(both, compared):
    rows = compared(*both)
    assert list(rows) == [("tatoeba", "deu"), ("tatoeba", "fra"), ("tatoeba", "mean")]
    for at, way in enumerate(WAYS):
        raw = [naive_mcnemar(HITS["one"][code][at], HITS["two"][code][at]) for code in HITS["one"]]
        for code, expected in zip(HITS["one"], naive_holm(raw), strict=True):
            p = rows["tatoeba", code][f"p {way.replace('_', ' ')}"]
            assert p == ("<0.001" if expected < 0.001 else f"{expected:.3f}")
    low, high = map(float, rows["tatoeba", "mean"]["95 %"].split(" to "))
    assert low < float(rows["tatoeba", "mean"]["Difference"]) < high


CODES = ["aa", "bb", "cc", "dd"]


def write_others(folder, name, better):
    """Write score files of every other form; `better` shifts the share of hits."""
    matrix = [
        scored(CODES[x], CODES[y], bits(60, 0.4 + better, int(50 * better) + 3 * x + y))
        for x, y in permutations(range(4), 2)
    ]
    languages = dict.fromkeys(CODES, "x")
    write_file(folder, name, "flores200", "P@1", matrix, languages, label="source")
    seeds = [
        scored("en", "de", bits(80, 0.5 + better / 2, seed + int(200 * better)), seed=seed)
        for seed in range(1, 6)
    ]
    write_file(folder, name, "mldoc", "accuracy", seeds, {"de": "de"}, label="direction")
    wrong = bits(120, 0.4, 1) & ~(bits(120, 0.5, 2) & bool(better))
    rows = [scored("deu", "en", wrong), row("fra", "en", 50.0, 120)]  # without hits: no test
    write_file(folder, name, "xsim", "error rate", rows, {"deu": "de", "fra": "fr"})
    write_bucc(folder, name, {"de": 50.0 + 50 * better})
    write_cosine(folder, name, 0.5)  # no percentage, so it is not compared


def test_a_comparison_is_the_golden_one(both, tmp_path):
    """Labels with many ways are judged as their mean; a language that one lacks is in no mean."""
    for name, better in (("one", 0), ("two", 0.2)):
        write_others(tmp_path, name, better)
    write_scores(tmp_path, "two", {**HITS["two"], "spa": HITS["two"]["fra"]})
    write_scores(tmp_path, "two", HITS["two"], "extra")
    shown = write_comparison(*both, tmp_path / "out.tex", every_row=True)
    assert shown == (tmp_path / "out.md").read_text()
    golden.check_table("compare", tmp_path / "out.tex")
    golden.check("tables/compare_summary.md", write_comparison(*both))


def test_two_files_are_compared_like_their_folders_and_runs_of_one_name_have_letters(
    both, tmp_path
):
    files = [folder / "tatoeba.json" for folder in both]
    assert write_comparison(*files) == write_comparison(*both)
    for path in files:
        edit(path, lambda data: data.update(system="ems"))
    assert "| Benchmark | Mean of | ems (A) | ems (B) | Difference |" in write_comparison(*files)


def test_means_are_those_of_the_tables_without_unseen_languages_and_english_itself(
    compared, tmp_path
):
    """Rows have the experiment's codes; an unseen language has a mean of its own."""
    for name, hits in HITS.items():
        values = hits | {"ita": hits["fra"]}
        languages = {"deu": "de", "fra": "fr", "ita": "und"}
        path = write_scores(tmp_path, name, values)
        edit(path, lambda data: data.update(languages=languages))  # noqa: B023
        ways = ("en-en", "en-de", "en-fr")
        accuracies = [
            row(*way.split("-"), 10.0 * at, 100, seed=1) for at, way in enumerate(ways, 1)
        ]
        codes = {"en": "en", "de": "de", "fr": "fr"}
        write_file(tmp_path, name, "xnli", "accuracy", accuracies, codes, label="direction")
    rows = compared(tmp_path / "one", tmp_path / "two")
    tatoeba = {label: row for (benchmark, label), row in rows.items() if benchmark == "tatoeba"}
    assert list(tatoeba) == ["de", "fr", "ita", "mean", "mean of 1 unseen"]
    mean = (float(tatoeba["de"]["one"]) + float(tatoeba["fr"]["one"])) / 2
    assert float(tatoeba["mean"]["one"]) == pytest.approx(mean, abs=0.1)
    assert tatoeba["mean of 1 unseen"]["one"] == tatoeba["ita"]["one"]
    assert rows["xnli", "mean"]["one"] == "25.0"
    summary = write_comparison(tmp_path / "one", tmp_path / "two")
    assert "| xnli accuracy | 2 | 25.0 |" in summary
    assert "| tatoeba P@1 | mean of 1 unseen |" in summary


def test_a_lower_error_rate_is_better(tmp_path):
    for name, value in (("one", 40.0), ("two", 30.0)):
        rows = [row("deu", "en", value, 100), row("fra", "en", 10.0, 100)]
        write_file(tmp_path, name, "xsim", "error rate", rows, {"deu": "de", "fra": "fr"})
    summary = write_comparison(tmp_path / "one", tmp_path / "two")
    assert "two is better: xsim de -10.0." in summary
    assert "two is worse: nowhere." in summary
    assert "| 1 (0) | 0 (0) |" in summary


def test_parallel_sets_are_resampled_together(both, tmp_path, monkeypatch):
    spy = Mock(wraps=module.mean_change)
    monkeypatch.setattr(module, "mean_change", spy)
    for name, hits in HITS.items():
        alike = {code: tuple(each[:90] for each in sides) for code, sides in hits.items()}
        write_scores(tmp_path, name, alike, "flores200", parallel=True)
    write_comparison(*both)
    keys = [call.args[1] for call in spy.call_args_list if len(call.args[1]) == 2]
    assert [len({*own}) for own in keys] == [1, 2]  # of flores200, of tatoeba


# --- what cannot be compared


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hits": "AAAA"}, r"two/tatoeba\.json: the hits of fra are damaged"),
        ({"value": 1.0}, r"the hits of fra are damaged .they are .* the file says"),
        ({"count": 80}, "fra has 90 and 80 sentences"),
    ],
)
def test_damaged_hits_are_an_error_that_names_file_and_language(both, change, message):
    edit(both[1] / "tatoeba.json", lambda data: data["rows"][2].update(change))  # fra, to English
    with pytest.raises(EmsError, match=message):
        write_comparison(*both)


def test_the_command_prints_the_table_and_writes_its_files(both, tmp_path, capfd):
    assert main(["compare", *map(str, both), "--out", str(tmp_path / "x" / "out.tex")]) == 0
    assert capfd.readouterr().out.startswith("| Benchmark | Mean of | one | two | Difference |")
    assert main(["compare", *map(str, both), "--all"]) == 0
    assert capfd.readouterr().out == (tmp_path / "x" / "out.md").read_text()
    made = {path.suffix for path in (tmp_path / "x").iterdir()}
    assert made == {".tex", ".md", ".csv", ".svg", ".png", ".pdf"}
