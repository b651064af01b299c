"""Laws of the character n-gram baseline: what two lines share by their spelling, and no more."""

import numpy as np

from ems.bench.baselines import FEATURES, CharNgramEncoder
from ems.retrieval import normalised, precision_at_1


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


def p1_of_ngrams(first, second):
    encoder = CharNgramEncoder()
    one = normalised(encoder.encode(first, "xx"), "one")
    return precision_at_1(one, normalised(encoder.encode(second, "yy"), "other"))


def test_character_ngrams_find_every_identical_line_whatever_its_case():
    lines = made_up(80, "abcdefghijklm", seed=1)
    assert p1_of_ngrams(lines, lines) == 100
    assert p1_of_ngrams(lines, [line.upper() for line in lines]) == 100


def test_character_ngrams_are_near_chance_between_unrelated_scripts():
    latin = made_up(80, "abcdefghijklm", seed=1)
    greek = [line.translate(str.maketrans("abcdefghijklm", "αβγδεζηθικλμν")) for line in latin]
    assert p1_of_ngrams(latin, greek) < 10  # chance: 1.25
    names = made_up(80, "nopqrstuvwxyz", seed=2)  # a guard: names that both sides share are seen
    first, second = (
        [f"{line} {name}" for line, name in zip(lines, names, strict=True)]
        for lines in (latin, greek)
    )
    assert p1_of_ngrams(first, second) > 80


def test_character_ngrams_find_two_shared_names_among_words_of_the_same_letters():
    """Counts of single letters, alike in all sentences, would hide them: 21 percent."""
    letters = "abcdefghij"
    first, second = (made_up(150, letters, seed, length=12) for seed in (1, 2))
    names = made_up(150, "uvwxyz", seed=3, length=2)
    pairs = zip(first, second, names, strict=True)
    sides = zip(*((f"{one} {name}", f"{other} {name}") for one, other, name in pairs), strict=True)
    assert p1_of_ngrams(*map(list, sides)) > 80


def test_character_ngrams_say_which_there_are_not_how_many_and_ignore_accents():
    one, other = CharNgramEncoder().encode(["Café am See", "cafe  am see am am"], "xx")
    assert np.array_equal(one, other)
    assert one.shape == (FEATURES,)
    assert one.dtype == np.float32
