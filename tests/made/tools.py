"""Which segmenters can run here, lines that have broken them, and what each must keep of a line."""

import html
import unicodedata

import pytest
from conftest import needs

from ems.base.errors import EmsError
from ems.text.segmenters.base import check_available, segmenter


@pytest.fixture(autouse=True)
def _look_for_the_tools_anew():
    check_available.cache_clear()
    yield
    check_available.cache_clear()


def usable(name, language):
    """The segmenter `name`, or a skip where it cannot run."""
    needs(runs(name), f"the segmenter {name} cannot run here")
    return segmenter(name, language)


def runs(name):
    """Whether the segmenter `name` can run here."""
    try:
        check_available(name)
    except EmsError:
        return False
    return True


NASTY = [
    "",
    " ",
    "   ",
    "\u3000",
    "# x",
    "#",
    "# ",
    "#  x",
    "## # x",
    "EOS",
    "EOS EOS",
    "*",
    "\"double\" 'single' «guillemets» “curly”",
    "[b] {c} (d) <e> & | ; &amp; &#91; &apos;",
    "<tag>",
    "state-of-the-art it's l'eau @-@",
    "Mr. Smith of the U.S.A. paid 3.14 or 1,000... no..",
    "http://a.example/b?c=d&e=f#g h@i.example",
    "emoji 😀👩‍👩‍👧 x",
    "mixed日本語のテキスト и русский 한국어 हिन्दी ไทย العربية",
    "全角　スペース、ＡＢＣ１２３",
    "cafe\u0301 café",
    "\\ \\n \\t %s $x `y`",
    "_ a__b",
    "zero\u200bwidth\u200cjoiner\ufeff",
    "x" * 10_000,
    "some words " * 10_000,  # 110 kB
    "これは長い行です。" * 4_000,  # 108 kB
    "# " + "長い " * 10_000,
    "last",
]


def characters(line):
    return "".join(line.split())


def assert_nothing_is_lost(segment, name):
    words = segment(NASTY)
    assert len(words) == len(NASTY)
    for line, segmented in zip(NASTY, words, strict=True):
        plain = html.unescape(segmented) if "escaped" in name else segmented
        assert comparable(plain, name) == comparable(line, name)
        assert segmented == " ".join(segmented.split())


def comparable(line, name):
    """What a segmenter must keep of a line."""
    text = characters(line)
    if "aggressive" in name:
        text = text.replace("@-@", "-")
    if name in ("jumanpp", "mecab-jumandic", "unicode"):  # half-width kana become full-width ones
        text = unicodedata.normalize("NFKC", text)
    if name == "unicode":  # it normalises as SentencePiece does
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return text
