"""Laws of tidy text and of keys: what a key sees through, and what it keeps apart."""

import random
import unicodedata

import pytest

from ems.errors import EmsError
from ems.text.normalise import folded_keys, keys_function, plain_key, tidy

SAME = ["Hello, World!|hello world", "Ｈｅｌｌｏ　１２３|hello 123", "Don't!|dont", "¿Qué?|QUÉ"]
SAME += ["cafe\u0301|CAF\u00c9", "日本。語「は」|日本語は", "ﾊﾝｶｸ|ハンカク", "ﬁne|fine"]
SAME += ["a\u200bb\ufeff|ab"]


@pytest.mark.parametrize("texts", SAME)
def test_the_folded_key_sees_through_case_punctuation_spaces_and_width(texts):
    first, second = folded_keys(texts.split("|"))
    assert first == second != ""


@pytest.mark.parametrize("texts", ["की|का", "มา|ม้า", "café|cafe", "が|か", "1|2", "क|क्"])
def test_the_folded_key_keeps_marks_and_digits(texts):
    first, second = folded_keys(texts.split("|"))
    assert first != second


def test_the_plain_key_sees_through_case_and_spaces_and_nothing_else():
    assert plain_key(" Cafe\u0301\t au\u3000lait ") == plain_key("CAFÉ AU LAIT") == "café au lait"
    for other in ("hello!", "ｈello", "hel lo"):
        assert plain_key("hello") != plain_key(other)


def test_a_sentence_without_letters_and_digits_has_no_folded_key():
    assert folded_keys([" ... !? — 😀 ", "a"]) == ["", "a"]


def test_an_unknown_key_is_an_error_with_the_known_ones():
    with pytest.raises(EmsError, match=r"decontaminate\.key: found 'fold'.*plain, folded"):
        keys_function("fold")


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
