"""Laws of character n-grams: what two lines share by their spelling, as plain loops count it."""

import math

import numpy as np
import pytest

from ems.bench.retrieval import normalised, precision_at_1
from ems.config.model import NgramSettings
from ems.model import char_ngrams as module
from ems.model.char_ngrams import PLACES, NgramEncoder, count_idf, features, hashing, words_of

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

# --- plain loops


def murmur(data, seed):
    """MurmurHash3_x86_32 of bytes (Appleby, public domain)."""

    def turned(x, by):
        return (x << by | x >> (32 - by)) & 0xFFFFFFFF

    def scrambled(k):
        return turned(k * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    h, whole = seed, len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little")
        h = (turned(h ^ scrambled(k), 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    if data[whole:]:
        h ^= scrambled(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def number(value, seed):
    """The hash of a number of 32 bits."""
    return murmur(value.to_bytes(4, "little"), seed)


def grams(words, settings):
    """The set of n-grams of words, with their marks, and of whole words, ("whole", word)."""
    found = set()
    for word in words:
        marked = f"<{word}>"
        found.add(("whole", marked))
        for n in range(settings.least, settings.most + 1):
            for at in range(len(marked) - n + 1):
                found.add(("gram", marked[at : at + n]))
    return found


def place(gram):
    kind, text = gram
    if kind == "whole":
        return murmur(text.encode(), 0) % PLACES
    polynomial = 0
    for letter in text:
        polynomial = (polynomial * 2654435761 + ord(letter)) % 2**32
    return number(polynomial, len(text)) % PLACES


def plain_vector(places, weights, buckets):
    vector = [0.0] * buckets
    for at in places:
        of_place = number(at, 0)
        sign = -1 if of_place >= 2**31 else 1
        vector[of_place % 2**31 % buckets] += sign * weights[at]
    return vector


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


# --- features


def test_words_are_runs_of_letters_marks_and_digits_or_of_other_visible_characters():
    assert words_of("Don't (stop)... 12,5") == [
        "don",
        "'",
        "t",
        "(",
        "stop",
        ")...",
        "12",
        ",",
        "5",
    ]
    assert words_of("हिन्दी ﬁn") == ["हिन्दी", "fin"]  # vowel signs are marks; a ligature is letters
    assert words_of("") == []


@pytest.mark.parametrize("settings", FORMS, ids=str)
def test_the_features_of_a_line_are_the_distinct_ngrams_of_its_words_and_the_words(settings):
    matrix = features(LINES, settings)
    assert matrix.shape == (len(LINES), PLACES)
    assert set(matrix.data.tolist()) <= {1.0}
    for row, line in enumerate(LINES):
        expected = {place(gram) for gram in grams(plain_words(line, settings), settings)}
        assert set(matrix[[row]].indices.tolist()) == expected
    assert features(["<"], settings).nnz


def test_a_word_that_no_latin_letter_says_is_itself():
    private = "\ue000\ue001"
    assert module.anyascii(private) == ""
    settings = NgramSettings()
    (row,) = features([private], settings).toarray()
    assert set(np.flatnonzero(row).tolist()) == {place(g) for g in grams([private], settings)}


@pytest.mark.parametrize("settings", FORMS, ids=str)
def test_a_vector_has_the_weight_of_each_feature_with_its_sign_in_its_bucket(settings):
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


# --- what lines share


def made_up(count, alphabet, seed, length=6):
    """`count` distinct sentences of `length` made-up words."""
    random = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        words = [
            "".join(random.choice(list(alphabet), random.integers(2, 7))) for _ in range(length)
        ]
        lines.append(" ".join(words))
    return lines


def p1_of_ngrams(first, second, **settings):
    encoder = NgramEncoder(NgramSettings(**settings))
    one = normalised(encoder.encode(first, "xx"), "one")
    return precision_at_1(one, normalised(encoder.encode(second, "yy"), "other"))


def test_character_ngrams_find_every_identical_line_whatever_its_case():
    lines = made_up(80, "abcdefghijklm", seed=1)
    assert p1_of_ngrams(lines, lines) == 100
    assert p1_of_ngrams(lines, [line.upper() for line in lines]) == 100


LATIN, GREEK = "abdegiklmnoprst", "αβδεγικλμνοπρστ"


def test_ngrams_see_through_a_script_only_when_it_is_romanised():
    latin = made_up(80, LATIN, seed=1)
    greek = [line.translate(str.maketrans(LATIN, GREEK)) for line in latin]
    assert p1_of_ngrams(latin, greek) > 95
    assert p1_of_ngrams(latin, greek, romanise=False) < 10  # chance: 1.25
    names = made_up(80, "nopqrstuvwxyz", seed=2)  # a guard: names that both sides share are seen
    first, second = (
        [f"{line} {name}" for line, name in zip(lines, names, strict=True)]
        for lines in (latin, greek)
    )
    assert p1_of_ngrams(first, second, romanise=False) > 80


def test_character_ngrams_find_two_shared_names_among_words_of_the_same_letters():
    letters = "abcdefghij"
    first, second = (made_up(150, letters, seed, length=12) for seed in (1, 2))
    names = made_up(150, "uvwxyz", seed=3, length=2)
    pairs = zip(first, second, names, strict=True)
    sides = zip(*((f"{one} {name}", f"{other} {name}") for one, other, name in pairs), strict=True)
    assert p1_of_ngrams(*map(list, sides)) > 80


def test_ngrams_say_which_there_are_not_how_many():
    one, other = NgramEncoder(NgramSettings()).encode(["Café am See", "cafe  am see am am"], "xx")
    assert np.array_equal(one, other)


def test_signs_keep_inner_products_in_few_buckets():
    """Without signs all products would grow by what shares a bucket."""
    lines = made_up(60, "abcdefghijklmnop", seed=4, length=20)
    found, signed = features(lines, NgramSettings()), hashing(np.ones(PLACES, np.float32), 256)
    exact = (found @ found.T).toarray()

    def mean_error(matrix):
        hashed = (found @ matrix).toarray()
        return (hashed @ hashed.T - exact)[np.triu_indices(60, 1)].mean()

    assert abs(mean_error(signed)) < 10
    assert mean_error(abs(signed)) > 50
