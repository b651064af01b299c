"""Laws of filters, of tidy text and of keys: each takes what it says and nothing else, and the fast
ways give what the plain ones give."""

import random
import unicodedata
from collections import Counter

import numpy as np
import pytest
import regex
from made.text import filtered, reasons, tiny

from ems.config.text import CleanSettings
from ems.text import filters as module
from ems.text.duplicates import Seen
from ems.text.normalise import KEYS, folded_keys, plain_key, tidier, tidy, tidy_lines


def clean(pairs, keys=None, **settings):
    """((first, second) that stay, report) of pairs that may hold None."""
    return filtered(pairs, known=keys, **settings)


# --- what each filter takes

PAIRS = [("ja", "yes"), ("eins zwei", "one two"), ("a", "b"), ("gleich", "gleich")]
CASES = [
    ("max_bytes", 9, [("ééééé", "x")], [("éééé ", "x"), ("x", "123456789")]),
    ("identical", "drop", [("eins", "eins"), (" eins", "eins\t")], [("Eins", "eins")]),
    ("min_characters", 3, [("ab", "abc"), ("日本", "abc")], [("abc", "日本語")]),
    ("max_characters", 5, [("ab", "abcdef")], [("abcde", "日本語日本")]),
    ("min_words", 2, [("a b", "ab")], [("a b", " c  d e ")]),
    ("max_words", 3, [("a b c d", "x")], [("a b c", "x")]),
    ("max_ratio", 2.5, [("ab", "abcdef"), ("a b c d", "ab")], [("ab", "abcde")]),
    ("duplicates", "drop", [("eins", "one"), ("eins ", "one")], [("eins", "One"), ("one", "eins")]),
    ("undecodable", "drop", [(None, "x"), ("x", None), (None, None)], [("\ufffd", "x")]),
]


@pytest.mark.parametrize(("name", "value", "gone", "stays"), CASES)
def test_a_filter_takes_what_it_says_counts_it_and_leaves_the_rest(name, value, gone, stays):
    first = [("eins", "one")] if name == "duplicates" else []  # the first one stays
    kept, report = clean([*first, *stays, *gone], **{name: value})
    assert kept == [(tidy(one), tidy(other)) for one, other in [*first, *stays]]
    assert report.removed == Counter({name: len(gone)})
    if name != "undecodable":
        assert len(clean([*first, *stays, *gone])[0]) == len([*first, *stays, *gone])


def test_every_filter_of_the_schema_has_its_law_here_and_is_off_by_default():
    elsewhere = {"format_characters", "language", "similarity", "commands"}  # test_noise.py
    assert {case[0] for case in CASES} | elsewhere == set(CleanSettings.model_fields)
    assert tiny().clean == CleanSettings()
    assert reasons(CleanSettings()) == ["both_empty", "one_empty", "evaluation"]
    assert reasons(tiny(clean={"max_words": 3}).clean)[-1] == "max_words"
    assert clean(PAIRS)[0] == PAIRS


def test_a_pair_counts_under_the_first_reason_that_it_has():
    every = {"identical": "drop", "max_characters": 9, "max_words": 1, "duplicates": "drop"}
    pairs = [(None, ""), ("", ""), ("", "leak"), ("Leak!", "leak"), ("a b c d e f", "a b c d e f")]
    pairs += [("a b c d e f", "x"), ("a b", "x"), ("y", "x"), ("y", "x")]
    kept, report = clean(pairs, {"leak": ("tatoeba",)}, undecodable="drop", **every)
    assert kept == [("y", "x")]
    empty = ["both_empty", "one_empty", "evaluation"]
    assert report.removed == Counter(["undecodable", *empty, *every])
    assert report.by_benchmark == {"tatoeba": Counter(pairs=1, de=1, en=1)}


@pytest.mark.parametrize("seed", range(3))
def test_filters_together_leave_what_a_loop_over_the_pairs_leaves(seed, monkeypatch):
    monkeypatch.setattr(
        module, "batched", lambda pairs, _: (pairs[at : at + 7] for at in range(0, 2000, 7))
    )
    draw = random.Random(seed)

    def side():
        return " ".join(draw.choices(["a", "bé", "日本語", ""], k=draw.randint(1, 3)))

    pairs = [(side(), side()) for _ in range(2000)]
    limits = {"max_bytes": 14, "min_characters": 2, "max_characters": 7, "max_words": 2}
    settings = {**limits, "max_ratio": 2, "identical": "drop", "duplicates": "drop"}
    expected, seen = [], set()
    for pair in pairs:
        one, other = (" ".join(text.split()) for text in pair)
        sizes = sorted([len(one), len(other)])
        stays = [one != "" != other, one != other, (one, other) not in seen]
        stays += [len(text.encode()) <= 14 and len(text.split()) <= 2 for text in (one, other)]
        if all(stays) and 2 <= sizes[0] <= sizes[1] <= min(7, 2 * sizes[0]):
            seen.add((one, other))
            expected.append((one, other))
    kept, report = clean(pairs, **settings)
    assert kept == expected
    assert len(expected) > 20
    assert all(report.removed[name] for name in settings)


# --- format characters

FORMAT = {
    "\u202aabc\u202c": "abc",  # bidi embedding
    "\u200fشلوم\u200e": "شلوم",
    "co\u00adoperate": "cooperate",
    "a\u200bb": "ab",
    "e\u200b\u0301": "é",  # NFC comes after it
    "می‌خواهم": "می‌خواهم",  # Persian, with a non-joiner
    "क्‍ष": "क्‍ष",
    "ශ්‍රී": "ශ්‍රී",
    "അവന്‍": "അവന്‍",
    "👩‍👩‍👧 👍🏽‍❤️‍🔥": "👩‍👩‍👧 👍🏽‍❤️‍🔥",
    "a\u200cb\u200d": "ab",  # Latin script needs no joiner
    "क\u200d\u200d": "क\u200d",
    "\u06dd٣": "\u06dd٣",  # it is seen
    "辻\U000e0100": "辻\U000e0100",  # a variation selector is no format character
}


@pytest.mark.parametrize("text", FORMAT)
def test_format_characters_go_and_joiners_stay_where_they_are_written(text):
    assert tidier("drop")(text) == unicodedata.normalize("NFC", FORMAT[text])
    assert tidier("keep")(text) == tidy(text)
    kept, report = clean([(text, "x"), ("y", "z")], format_characters="drop")
    assert kept[0][0] == unicodedata.normalize("NFC", FORMAT[text])
    assert report.changed["format_characters"] == (text != FORMAT[text])
    assert clean([(text, "x")])[0] == [(tidy(text), "x")]


def test_a_side_of_format_characters_only_is_empty_once_they_are_dropped():
    assert clean([("\u200b", "x")], format_characters="drop")[1].removed["one_empty"] == 1
    assert clean([("\u200b", "x")])[0] == [("\u200b", "x")]


# --- tidy text and keys

SAME = ["Hello, World!|hello world", "Ｈｅｌｌｏ　１２３|hello 123", "Don't!|dont", "¿Qué?|QUÉ"]
SAME += ["cafe\u0301|CAF\u00c9", "日本。語「は」|日本語は", "ﾊﾝｶｸ|ハンカク", "ﬁne|fine"]
SAME += ["a\u200bb\ufeff|ab"]
APART = ["की|का", "มา|ม้า", "café|cafe", "が|か", "1|2", "क|क्"]


@pytest.mark.parametrize("texts", [*SAME, *APART])
def test_the_folded_key_sees_through_case_punctuation_spaces_and_width_and_keeps_marks(texts):
    first, second = folded_keys(texts.split("|"))
    assert "" not in (first, second)
    assert (first == second) == (texts in SAME)


def test_the_plain_key_sees_through_case_and_spaces_and_nothing_else():
    assert plain_key(" Cafe\u0301\t au\u3000lait ") == plain_key("CAFÉ AU LAIT") == "café au lait"
    for other in ("hello!", "ｈello", "hel lo"):
        assert plain_key("hello") != plain_key(other)
    assert folded_keys([" ... !? — 😀 ", "a"]) == ["", "a"]


def test_tidy_text_has_no_line_breaks_no_controls_and_no_double_spaces():
    draw = random.Random(1)
    odd = [chr(code) for code in (*range(32), *range(0x7F, 0xA1), 0x2028, 0x2029, 0xFEFF, 0x3000)]
    for _ in range(2000):
        text = "".join(
            draw.choice([*odd, *"abé \u0301가क्日😀"]) for _ in range(draw.randint(0, 12))
        )
        clean = tidy(text)
        assert clean == " ".join(clean.split())
        assert all(unicodedata.category(c) not in ("Cc", "Zl", "Zp") for c in clean)
        assert unicodedata.is_normalized("NFC", clean)
        assert tidy(clean) == clean
        # What carries meaning stays: the same letters in the same order.
        kept = [c for c in unicodedata.normalize("NFC", text) if not c.isspace()]
        assert [c for c in clean if c != " "] == [
            c for c in kept if unicodedata.category(c) != "Cc" and c != "\ufeff"
        ]


# --- the fast ways are the plain ones

RANGES = [(0, 0x80), (0, 0x250), (0x300, 0x370), (0x600, 0x700), (0x900, 0x0E80), (0x2000, 0x2070)]
RANGES += [(0x3000, 0x3100), (0xAC00, 0xAC80), (0xFE00, 0xFFFF), (0x1F300, 0x1FA00), (0, 0x110000)]


def random_text(draw, most=14):
    """Text of one or two ranges of Unicode; only LF, which ends a line, never occurs."""
    low, high = draw.choice(RANGES)
    letters = [chr(draw.randrange(low, high)) for _ in range(draw.randint(0, most))]
    letters += draw.choices(["a", "Σ", "İ", " ", "  ", "e\u0301", "ﬁ", "가"], k=draw.randint(0, 4))
    draw.shuffle(letters)
    text = "".join(letters).replace("\n", "")
    return "".join(c for c in text if not 0xD800 <= ord(c) < 0xE000)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("setting", ["keep", "drop"])
def test_tidying_many_lines_is_tidying_each(seed, setting):
    draw = random.Random(seed)
    texts = [random_text(draw) for _ in range(4000)]
    slow = tidier(setting)
    lines = tidy_lines(texts, slow)
    assert lines == [slow(text) for text in texts]
    assert lines == tidy_lines(lines, slow)  # once is enough
    assert lines != texts


def folded_key(text):
    """The plain way to the folded key of a text."""
    lower = unicodedata.normalize("NFKC", text).lower()
    return regex.sub(r"[^\p{L}\p{N}\p{M}]+", "", lower)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "plain"), [("folded", folded_key), ("plain", plain_key)])
def test_the_keys_of_many_lines_are_the_key_of_each(seed, name, plain):
    draw = random.Random(seed)
    texts = [random_text(draw) for _ in range(4000)]
    assert KEYS[name](texts) == [plain(text) for text in texts]
    ascii_only = [text for text in texts if text.isascii()]
    assert len(ascii_only) > 100
    assert KEYS[name](ascii_only) == [plain(text) for text in ascii_only]
    assert KEYS[name]([]) == []


def test_every_character_has_the_folded_key_that_the_plain_way_gives():
    codes = [*range(0x33480), *range(0xE0000, 0xE0200), *range(0x10FF00, 0x110000)]
    assert not [chr(code) for code in set(range(0x110000)) - {*codes} if chr(code).isalnum()]
    codes = [code for code in codes if code != 10 and not 0xD800 <= code < 0xE000]
    texts = [f"a{chr(code)}b" for code in codes]  # all that Unicode has given a meaning
    assert folded_keys(texts) == [folded_key(text) for text in texts]


# --- what was seen


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_a_text_is_new_once(batch):
    draw = random.Random(batch)
    texts = [str(draw.randrange(1500)) for _ in range(4000)]
    seen = Seen(len(texts))
    expected = [text not in texts[:at] for at, text in enumerate(texts)]
    new = [new for at in range(0, 4000, batch) for new in seen.add(texts[at : at + batch])]
    assert new == expected
    assert seen.add([]) == []
    assert seen.add(texts) == [False] * 4000


def test_texts_that_want_the_same_place_are_told_apart(monkeypatch):
    """Also when every hash falls on the last place of the table and goes round to its start."""
    seen = Seen(400)
    size = len(seen.table)
    hashes = np.arange(1, 201, dtype=np.uint64) * np.uint64(size) - np.uint64(1)
    assert set((hashes % np.uint64(size)).tolist()) == {size - 1}
    monkeypatch.setattr(
        "ems.text.duplicates.hashes_of", lambda texts: hashes[list(map(int, texts))]
    )
    texts = [str(at) for at in range(200)]
    assert all(seen.add(texts[:150]))
    assert seen.add(texts) == [False] * 150 + [True] * 50
    assert not any(seen.add(texts[::-1]))


def test_a_million_texts_take_twelve_bytes_each_and_no_hash_depends_on_the_process():
    assert Seen(1_000_000).table.nbytes == 12_000_000
    seen = Seen(10)
    seen.add(["a", "b"])
    hashes = [3405396810240292928, 8453121595177857668]
    assert sorted(seen.table[seen.table > 0].tolist()) == hashes


def test_more_texts_than_there_is_room_for_are_an_error_and_no_endless_search():
    seen = Seen(10)
    with pytest.raises(ValueError, match="17 texts in a set for 10"):
        seen.add([str(at) for at in range(17)])
