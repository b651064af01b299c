"""Laws of mining on BUCC 2018: its F1 is the one counted by hand, its threshold as it says."""

import math

import numpy as np
import pytest
from conftest import SHARED, needs
from made.bench import HashEncoder, Listed, at_cosine, error_of, naive_f1, naive_mine, scored, unit
from made.corpora import write_lines
from made.scores import means

from ems.bench import task as embedded
from ems.benchmarks.bucc2018.data import part_files, read_part
from ems.benchmarks.families.mining import best_threshold
from ems.config.model import NgramSettings
from ems.model.char_ngrams import NgramEncoder

WIDTH = 5
GERMAN = {f"de-{at}": f"Satz {at}" for at in range(WIDTH)}
ENGLISH = {f"en-{at}": f"line {at}" for at in range(WIDTH)}
COSINES = [0.9, 0.8, 0.7, 0.6, 0.5]  # of the pairs de-0 en-0, de-1 en-1, ...
GOLD = [("de-0", "en-0"), ("de-2", "en-2"), ("de-3", "en-1")]
# By hand, absolute margin. 1 pair: 1 right, F1 2/(1+3); 2: 1, 2/5; 3: 2, 4/6; 4: 2, 4/7; 5: 2, 4/8
SAMPLE = {"de": {"de-8": "Probe 0", "de-9": "Probe 1"}, "en": {"en-8": "try 0", "en-9": "try 1"}}
SAMPLE_COSINES, SAMPLE_GOLD = [1.0, 1.0], [("de-8", "en-8")]
RATES = ("f1", "precision", "recall", "extracted")


def vectors(german, english, cosines):
    """The vectors of sentences, pair by pair at these cosines and else at right angles."""
    axes = np.eye(2 * WIDTH).tolist()
    by_text = {text: axes[at] for at, text in enumerate(german)}
    return by_text | {text: at_cosine(cosines[at], at, WIDTH) for at, text in enumerate(english)}


def write_part(folder, part, sentences, english, gold, code="de"):
    """The three files of one part."""
    sides = [[f"{name}\t{text}" for name, text in side.items()] for side in (sentences, english)]
    lines = [*sides, ["\t".join(pair) for pair in gold]]
    for name, rows in zip(part_files(code, part), lines, strict=True):
        write_lines(folder / name, rows)


@pytest.fixture
def folder(tmp_path):
    """BUCC as published, five sentences of German and two in its sample."""
    write_part(tmp_path / "bucc", "training", GERMAN, ENGLISH, GOLD)
    write_part(tmp_path / "bucc", "sample", *SAMPLE.values(), SAMPLE_GOLD)
    return tmp_path / "bucc"


@pytest.fixture
def encoder():
    training = vectors(GERMAN.values(), ENGLISH.values(), COSINES)
    return Listed(training | vectors(SAMPLE["de"].values(), SAMPLE["en"].values(), SAMPLE_COSINES))


def changes_of(folder, languages=("de",), **protocol):
    """BUCC as the one benchmark of an experiment, a copy of which is in `folder`."""
    entry = {"version": "v2018", "languages": list(languages), "protocol": protocol}
    return {"evalsets": {"bucc2018": entry | {"path": str(folder)}}, "benchmarks": ["bucc2018"]}


def run(folder, tmp_path, encoder, languages=("de",), **protocol):
    changes = changes_of(folder, languages, **protocol)
    return scored(tmp_path, "bucc2018", folder, encoder, **changes)


def values_of(scores, code="de"):
    """All that a score file says of a language, in its rows and besides."""
    rates = {name or "f1": means(scores, name)[code] for name in ("", "precision", "recall")}
    return {**scores.details[code], **rates}


def test_the_scores_are_the_ones_counted_by_hand(folder, tmp_path, encoder):
    scores = run(folder, tmp_path, encoder, margin="absolute")
    assert (scores.metric, scores.version) == ("F1", "v2018")
    assert scores.languages == {"de": "de"}
    assert (scores.higher_is_better, scores.parallel) == (True, False)
    assert [(row.direction, row.count, row.hits) for row in scores.rows] == [("de-en", 3, "")] * 3
    protocol = {"k": 4, "margin": "absolute", "threshold": "oracle", "missed": 10}
    assert scores.protocol == protocol | {"part": "training"}
    values = values_of(scores)
    missed = values.pop("missed")
    counted = {"sentences": 5, "english": 5, "gold": 3, "extracted": 3, "correct": 2}
    rates = dict.fromkeys(("precision", "recall", "f1"), 200 / 3)
    assert values == pytest.approx(counted | rates | {"threshold": 0.65})
    assert [pair.pop("score") for pair in missed] == pytest.approx([0.8])
    assert missed == [
        {"id": "de-1", "english_id": "en-1", "sentence": "Satz 1", "english": "line 1"}
    ]
    # with the oracle the sample part is not even encoded
    assert encoder.asked == [("de", list(GERMAN.values())), ("en", list(ENGLISH.values()))]


def test_a_threshold_above_every_score_extracts_nothing_and_scores_zero(folder, tmp_path, encoder):
    values = values_of(run(folder, tmp_path, encoder, margin="absolute", threshold="sample"))
    assert [values[name] for name in RATES] == [0, 0, 0, 0]


def test_as_many_pairs_that_gold_lacks_are_kept_as_the_setting_says(folder, tmp_path, encoder):
    write_part(folder, "training", GERMAN, ENGLISH, [("de-4", "en-4")])
    for most in (0, 1, 3):
        scores = run(folder, tmp_path, encoder, margin="absolute", missed=most)
        missed = scores.details["de"]["missed"]
        assert [pair["id"] for pair in missed] == ["de-0", "de-1", "de-2"][:most]


# --- against plain loops, with the settings of the paper


@pytest.fixture
def random_folder(tmp_path):
    """Sentences of which about half have a translation, for HashEncoder: the same last word."""
    draw = np.random.default_rng(8)
    for part, count in (("training", 60), ("sample", 40)):
        german = {f"de-{at}": f"Satz {part} w{at}" for at in range(count)}
        words = draw.permutation(count + count // 2)[:count].tolist()
        english = {f"en-{at}": f"line {part} w{word}" for at, word in enumerate(words)}
        gold = [(f"de-{word}", f"en-{at}") for at, word in enumerate(words) if word < count]
        write_part(tmp_path / "bucc", part, german, english, gold)
    return tmp_path / "bucc"


def naive_part(folder, part):
    """[(score, id, id), ...] and the gold pairs of one part, by plain loops."""
    texts = read_part(folder, "de", part)
    sides = (texts.sentences, texts.english)
    encoded = [unit(HashEncoder().encode(list(side.values()), "de")).tolist() for side in sides]
    mined = naive_mine(*encoded, 4, "ratio")
    first, second = map(list, sides)
    return [(score, first[one], second[other]) for score, one, other in mined], set(texts.gold)


def test_f1_with_the_oracle_is_the_best_of_all_cuts_of_plain_loops(random_folder, tmp_path):
    values = values_of(run(random_folder, tmp_path, HashEncoder()))
    *rates, extracted = naive_f1(*naive_part(random_folder, "training"))
    expected = [*(100 * rate for rate in rates), extracted]
    assert [values[name] for name in RATES] == pytest.approx(expected)
    assert 30 < values["f1"] < 98  # a guard: neither trivial nor hopeless


def test_f1_with_the_samples_threshold_is_that_of_plain_loops(random_folder, tmp_path):
    values = values_of(run(random_folder, tmp_path, HashEncoder(), threshold="sample"))
    sample, gold = naive_part(random_folder, "sample")
    count = naive_f1(sample, gold)[3]
    threshold = (sample[count - 1][0] + sample[count][0]) / 2
    assert values["threshold"] == pytest.approx(threshold, abs=1e-5)
    training, gold = naive_part(random_folder, "training")
    extracted = {(one, other) for score, one, other in training if score >= threshold}
    assert values["extracted"] == len(extracted)
    assert values["f1"] == pytest.approx(200 * len(extracted & gold) / (len(extracted) + len(gold)))


BELOW, ABOVE = math.nextafter(0.5, 0), math.nextafter(0.5, 1)


@pytest.mark.parametrize(
    ("scores", "correct", "gold", "expected"),
    [
        # cut after the first alone would be best, but never between equal scores
        ([0.9, 0.9, 0.5, 0.4], [True, False, False, False], 1, pytest.approx(0.7)),
        ([0.9, 0.5], [True, True], 2, 0.5),  # after the last pair it is its score
        ([0.3], [False], 2, 0.3),
        ([0.5, BELOW], [True, False], 1, 0.5),  # nothing lies between neighbouring numbers
        ([ABOVE, 0.5], [True, False], 1, ABOVE),
    ],
)
def test_a_threshold_extracts_what_was_counted(scores, correct, gold, expected):
    assert best_threshold(np.array(scores), np.array(correct), gold) == expected


def test_the_same_inputs_give_the_same_bytes_in_memory_and_mapped(
    random_folder, tmp_path, monkeypatch
):
    def content():
        return run(random_folder, tmp_path, HashEncoder()).path.read_bytes()

    first = content()
    assert content() == first
    monkeypatch.setattr(embedded, "LINES_AT_ONCE", 7)
    assert content() == first
    monkeypatch.setattr(embedded, "MEMORY_LIMIT", 0)
    assert content() == first
    assert [path.name for path in (tmp_path / "scores").iterdir()] == ["bucc2018.json"]


# --- bad input


def test_a_vector_that_is_not_finite_is_an_error_that_names_the_sentence(
    folder, tmp_path, encoder, monkeypatch
):
    encoder.vectors["Satz 3"] = [math.nan] * (2 * WIDTH)
    arguments = (tmp_path, "bucc2018", folder, encoder)
    message = error_of(*arguments, **changes_of(folder))
    assert message == "bucc2018 de training: the embedding of sentence 4 is zero or not finite"
    monkeypatch.setattr(embedded, "LINES_AT_ONCE", 2)
    message = error_of(*arguments, **changes_of(folder))
    expected = "bucc2018 de training, after 2 sentences: the embedding of sentence 2"
    assert message.startswith(expected)


# --- the files beside the project


def test_pairs_of_the_published_format_are_found_by_shared_words(tmp_path):
    needs((SHARED / "bucc_mini").is_dir(), "the benchmarks do not lie beside the project")
    for threshold in ("oracle", "sample"):
        arguments = (SHARED / "bucc_mini", tmp_path, NgramEncoder(NgramSettings()), ("de", "fr"))
        scores = run(*arguments, threshold=threshold)
        for values in (values_of(scores, code) for code in ("de", "fr")):
            assert (values["sentences"], values["english"], values["gold"]) == (476, 476, 240)
            assert 5 < values["f1"] < 95
            assert values["missed"] or values["correct"] == values["extracted"]
