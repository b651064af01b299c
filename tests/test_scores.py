"""The score file: written and read back, refused with one line, grouped for comparisons."""

import json
from dataclasses import replace
from itertools import permutations
from typing import Literal

import numpy as np
import pytest
from made import golden
from made.scores import hits, row, values, write_file
from scipy.stats import binom

from ems.base.errors import EmsError
from ems.base.records import NonBlank
from ems.bench.scores import (
    Result,
    Score,
    interval,
    packed,
    read_score_file,
    unpacked,
    write_scores,
)

HEADER = {"benchmark": "made", "version": "v1+test", "system": "ems"}
HEADER |= {"system_hash": "ab12", "data_sha256": "cd34"}
LANGUAGES = {"deu": "de", "fra": "fr", "gsw": "und"}


def drawn(count, seed, share=0.6):
    return np.random.default_rng(seed).random(count) < share


def both(code, seed, count=33):
    return [
        Score.from_hits(code, "en", drawn(count, 2 * seed)),
        Score.from_hits("en", code, drawn(count, 2 * seed + 1)),
    ]


def plain(source, target, value, **others):
    return Score(source, target, value, 10, **others)


SEARCH = Result("P@1", [*both("deu", 0), *both("fra", 1), *both("gsw", 2)], LANGUAGES)
ERRORS = Result(
    "error rate",
    [
        Score.from_hits("deu_Latn", "eng_Latn", drawn(12, 5)),
        plain("deu_Latn", "eng_Latn", 100 / 3, measure="misaligned"),
    ],
    {"deu_Latn": "de", "eng_Latn": "en"},
    higher_is_better=False,
    parallel=True,
    protocol={"k": 4, "margin": "ratio", "exact": True, "part": None},
)
CLASSES = Result(
    "accuracy",
    [
        *(Score.from_hits("en", "de", drawn(20, at), split="books", seed=at) for at in (1, 2)),
        *(Score.from_hits("en", "de", drawn(20, at), split="dvd", seed=at) for at in (3, 4)),
        Score.from_hits("de", "de", drawn(20, 5)),
        plain("en", "de", 50.0, split="books", measure="most frequent class"),
    ],
    {"en": "en", "de": "und"},
    label="direction",
    details={"en-de books": {"epochs": [3, 4]}, "missed": [{"sentence": "Maß „50 %“"}]},
)
CODES = ("eng_Latn", "deu_Latn", "fra_Latn")
MATRIX = Result(
    "P@1",
    [plain(one, other, 10.0 * CODES.index(one)) for one, other in permutations(CODES, 2)],
    dict(zip(CODES, ("en", "de", "fr"), strict=True)),
    label="source",
)
COSINE = Result(
    "cosine",
    [Score("en", "en", -0.125, 2)],
    {"en": "en"},
    higher_is_better=False,
    data={"version": "of the paper", "data_sha256": "ef56"},
)
RESULTS = {"search": SEARCH, "errors": ERRORS, "classes": CLASSES, "matrix": MATRIX}
RESULTS |= {"cosine": COSINE}


@pytest.mark.parametrize("name", RESULTS)
def test_a_written_file_is_read_back(tmp_path, name):
    result = RESULTS[name]
    path = tmp_path / "made.json"
    write_scores(path, HEADER, result)
    golden.check(f"scores/written/{name}.json", path.read_text(encoding="utf-8"))
    scores = read_score_file(path, "made", result.metric)
    assert scores.rows == [replace(each, interval=None) for each in result.rows]  # as hits say
    for key in ("metric", "label", "higher_is_better", "parallel", "languages"):
        assert getattr(scores, key) == getattr(result, key)
    assert (scores.protocol, scores.details) == (result.protocol, result.details)
    for key in ("benchmark", "system", "version", "data_sha256"):
        assert getattr(scores, key) == {**HEADER, **result.data}[key]
    assert scores.path == path
    assert values(scores) == values(result)
    assert scores.means() == result.means()


# --- hits


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
def test_packed_bits_are_text_that_json_does_not_escape(count):
    text = packed(drawn(count, 1))
    assert np.array_equal(unpacked(text, count), drawn(count, 1))
    assert json.dumps(text) == f'"{text}"'


@pytest.mark.parametrize("count", [*range(1, 40), 204, 1000, 200_000])
def test_the_interval_has_the_quantiles_of_scipys_binomial(count):
    for right in range(0, count + 1, -(-count // 40)):
        expected = binom.ppf([0.025, 0.975], count, right / count)
        assert interval(right, count) == tuple(100 * expected / count), right


@pytest.mark.parametrize("count", [1, 8, 33])
def test_hits_whose_share_is_not_the_value_are_refused(count):
    score = Score.from_hits("de", "en", drawn(count, 1))
    for value in (score.value + 1, 100 - score.value + 0.5, score.value + 1e-5):
        with pytest.raises(ValueError, match=rf"they are {score.value:.2f} %, the file says"):
            replace(score, value=value).bits()
    assert replace(score, value=score.value + 1e-9).bits().tolist() == hits(score)


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [
        (packed(drawn(8, 1)), 9, "expected 2 bytes"),
        (packed(drawn(8, 1)) * 2, 8, "expected 1 bytes"),
        *((text, 8, message) for text, message in (("", "found 0"), ("ß", "ASCII"))),
        ("not hits", 8, "base85"),
    ],
)
def test_hits_of_another_number_of_sentences_are_refused(text, count, message):
    with pytest.raises(ValueError, match=message):
        replace(Score.from_hits("de", "en", drawn(8, 1)), hits=text, count=count).bits()


# --- groups and means


def test_rows_are_grouped_by_label_and_means_are_over_labels():
    """The measures of a row stand apart; seeds and directions of a label count once."""
    trained = replace(SEARCH, languages={**LANGUAGES, "gsw": "gsw"})  # nothing is unseen
    lines = []
    for name, result in {**RESULTS, "trained": trained}.items():
        for measure in dict.fromkeys(["", *(entry.measure for entry in result.rows)]):
            for label, ways in values(result, measure).items():
                shown = ", ".join(f"{way} {value:.2f}" for way, value in ways.items())
                lines.append(f"{name} {measure}, {label}: {shown}\n")
        lines += [f"{name}, mean {group}: {mean:.2f}\n" for group, _, mean in result.means()]
    golden.check("scores/groups.txt", "".join(lines))


# --- what is valid; tests/refused/scores.yaml has malformed files

ROWS = [row("deu", "en", 10), row("en", "deu", 20.5), row("fra", "en", 30), row("en", "fra", 40)]
COSINES = [row("en", "en", 0.5), row("en", "en", 70.0, measure="share")]


@pytest.mark.parametrize(
    ("metric", "rows"),
    [
        ("cosine", [row("en", "en", -1)]),
        ("cosine", [row("en", "en", 1.0005)]),
        ("cosine", COSINES),  # another measure is a percentage
        *(("P@1", [*ROWS, {**ROWS[3], key: v}]) for key, v in (("split", "x"), ("measure", "x"))),
        ("P@1", [*ROWS, {**ROWS[3], "seed": 1}]),
        ("error rate", ROWS[::2]),  # one direction, of every language
    ],
)
def test_a_valid_file_is_read(tmp_path, metric, rows):
    path = write_file(tmp_path, "A", "a", metric, rows, {"deu": "de", "fra": "fr"})
    assert [read.value for read in read_score_file(path).rows] == [row["value"] for row in rows]


def test_a_setting_of_the_protocol_is_checked(tmp_path):
    protocol = {"k": 4, "margin": "ratio"}
    path = write_file(tmp_path, "A", "bucc2018", "F1", ROWS[:1], {"deu": "de"}, protocol=protocol)
    file = read_score_file(path)
    assert (file.setting("k"), file.setting("margin", NonBlank)) == (4, "ratio")
    assert file.setting("margin", Literal["ratio", "distance"]) == "ratio"
    for key, shape, message in (
        ("seed", NonBlank, "expected text under `protocol.seed`, found nothing"),
        ("margin", Literal["a", "b"], "expected a or b under `protocol.margin`, found 'ratio'"),
    ):
        with pytest.raises(EmsError, match=message):
            file.setting(key, shape)
