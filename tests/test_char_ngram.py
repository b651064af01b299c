"""Laws of character n-grams, against plain loops."""

import math

import numpy as np
import pytest
from made.ngram_reference import grams, place, plain_vector

from ems.bench.retrieval import normalised, precision_at_1
from ems.config.model import NgramSettings
from ems.model import char_ngrams as module
from ems.model.char_ngrams import PLACES, NgramEncoder, count_idf, features, words_of

LINES = [
    "Café am See, am See!",
    "Москва 2024",
    "東京へ",
    "",
    "a",
    "\u00adx\u00ad y",
    "(a) ?! (a) ?!",
]
FORMS = [
    NgramSettings(),
    NgramSettings(least=1, most=1, buckets=16),
    NgramSettings(least=3, most=5, romanise=False, buckets=100),
    NgramSettings(least=16, most=16),
]


ROMAN = {  # of LINES, word by word, as anyascii writes it
    "Café am See, am See!": "cafe am see , am see !",
    "Москва 2024": "moskva 2024",
    "東京へ": "dongjinghe",
    "": "",
    "a": "a",
    "\u00adx\u00ad y": "x y",
    "(a) ?! (a) ?!": "( a ) ?! ( a ) ?!",
}
PLAIN = {**ROMAN, LINES[0]: "café am see , am see !", LINES[1]: "москва 2024", LINES[2]: "東京へ"}


def plain_words(line, settings):
    return (ROMAN if settings.romanise else PLAIN)[line].split()


def test_words_are_runs_of_letters_marks_and_digits_or_of_other_characters():
    words = ["don", "'", "t", "(", "stop", ")...", "12", ",", "5"]
    assert words_of("Don't (stop)... 12,5") == words
    assert words_of("हिन्दी ﬁn") == ["हिन्दी", "fin"]  # vowel signs are marks; a ligature is letters
    assert words_of("") == []


@pytest.mark.parametrize("settings", FORMS, ids=str)
def test_the_features_of_a_line_are_its_distinct_words_and_their_ngrams(settings):
    matrix = features(LINES, settings)
    assert matrix.shape == (len(LINES), PLACES)
    assert set(matrix.data.tolist()) <= {1.0}
    for row, line in enumerate(LINES):
        expected = {place(gram) for gram in grams(plain_words(line, settings), settings)}
        assert set(matrix[[row]].indices.tolist()) == expected
    assert features(["<"], settings).nnz


def test_a_word_that_cannot_be_romanised_is_itself():
    private = "\ue000\ue001"
    assert module.anyascii(private) == ""
    settings = NgramSettings()
    (row,) = features([private], settings).toarray()
    assert set(np.flatnonzero(row).tolist()) == {place(g) for g in grams([private], settings)}


@pytest.mark.parametrize("settings", FORMS, ids=str)
def test_a_vector_has_the_signed_weight_of_each_feature_in_its_bucket(settings):
    weights = np.random.default_rng(1).random(PLACES).astype(np.float32)
    encoder = NgramEncoder(settings, weights)
    vectors = encoder.encode(LINES, "xx")
    assert vectors.dtype == np.float32
    counts = encoder.vectors(LINES)[1].tolist()
    for vector, count, line in zip(vectors, counts, LINES, strict=True):
        places = {place(gram) for gram in grams(plain_words(line, settings), settings)}
        assert count == len(places)
        expected = plain_vector(places, weights, settings.buckets)
        np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_a_feature_weighs_the_root_of_its_inverse_document_frequency():
    lines = ["der see", "der berg", "der der", "das haus", "x"]
    settings = NgramSettings()
    weights, count = count_idf(iter(lines), settings)
    assert (weights.shape, weights.dtype, count) == ((PLACES,), np.float32, 5)
    of_lines = [{place(gram) for gram in grams(line.split(), settings)} for line in lines]
    for at in set.union(*of_lines):
        having = sum(at in places for places in of_lines)
        assert weights[at] == pytest.approx(math.sqrt(math.log(6 / (1 + having)) + 1))
    unknown = next(at for at in range(PLACES) if not any(at in places for places in of_lines))
    assert weights[unknown] == pytest.approx(math.sqrt(math.log(6) + 1))


def test_batches_and_the_cache_of_words_change_no_vector(monkeypatch):
    lines = [f"{line} {at}" for at in range(40) for line in LINES]
    whole = NgramEncoder(NgramSettings()).encode(lines, "xx")
    monkeypatch.setattr("ems.model.char_ngrams.BATCH", 7)
    module._marked.cache_clear()
    assert np.array_equal(NgramEncoder(NgramSettings()).encode(lines, "xx"), whole)
    assert np.array_equal(NgramEncoder(NgramSettings()).encode(lines[5:6], "xx"), whole[5:6])


@pytest.mark.parametrize(("romanise", "least", "most"), [(True, 95, 100), (False, 0, 10)])
def test_romanised_ngrams_find_lines_in_another_script(romanise, least, most):
    latin, greek = "abdegiklmnoprst", "αβδεγικλμνοπρστ"
    random, encoder = np.random.default_rng(1), NgramEncoder(NgramSettings(romanise=romanise))
    lines = ["".join(random.choice([*latin, " ", " "], 30)) for _ in range(80)]
    other = [line.translate(str.maketrans(latin, greek)) for line in lines]
    one, two = (normalised(encoder.encode(part, "xx"), "x") for part in (lines, other))
    assert least <= precision_at_1(one, two) <= most
