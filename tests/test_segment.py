"""Laws of segmentation: as many lines as went in, nothing but white space changed, no silent
substitute."""

import random
import unicodedata
from dataclasses import replace

import pytest
from conftest import SHARED, needs
from made.segmenters import (
    _look_for_the_tools_anew,  # noqa: F401
    assert_nothing_is_lost,
    characters,
    runs,
    usable,
)

from ems.base.errors import EmsError
from ems.text.bulk import segment_tsv
from ems.text.segmenters import mecab_jumandic
from ems.text.segmenters.base import names, segmenter

LANGUAGES = {  # languages that a segmenter is used for
    "moses": ["en", "fr", "hi", "th", "xx"],
    "moses-aggressive": ["en"],
    "moses-escaped": ["en"],
    "moses-aggressive-escaped": ["en", "fr"],
    "sacremoses": ["en", "hi", "xx"],
    "jieba": ["zh"],
    "rjieba": ["zh"],
    "none": ["en"],
    "unicode": ["en"],
}


@pytest.mark.parametrize(
    ("name", "language"),
    [
        (name, language)
        for name in names()
        if name != "jumanpp"  # test_jumanpp.py, against a stand-in
        for language in LANGUAGES.get(name, ["ja"])
    ],
)
def test_every_segmenter_keeps_every_line_and_every_character(name, language):
    segment = usable(name, language)
    assert_nothing_is_lost(segment, name)
    assert segment([]) == []


BOTH = ("moses", "sacremoses")
QUOTED = 'It\'s "a" state-of-the-art <b> & [c] | d.'
WORDS = 'It \'s " a " state-of-the-art < b > & [ c ] | d .'
ART = "It's a state-of-the-art [x] & y"
AGGRESSIVE = "It 's a state @-@ of @-@ the @-@ art [ x ] & y"
SPLIT = [
    *((name, "en", QUOTED, WORDS) for name in BOTH),
    *((name, "en", "Mr. Smith, e.g. to us.", "Mr. Smith , e.g. to us .") for name in BOTH),
    ("moses-aggressive", "en", ART, AGGRESSIVE),
    ("moses-escaped", "en", ART, "It &apos;s a state-of-the-art &#91; x &#93; &amp; y"),
    (
        *("moses-aggressive-escaped", "en", ART),
        "It &apos;s a state @-@ of @-@ the @-@ art &#91; x &#93; &amp; y",
    ),
    ("moses", "fr", "l'eau", "l' eau"),
    ("moses", "en", "l'eau", "l 'eau"),
]


@pytest.mark.parametrize(("name", "language", "line", "words"), SPLIT)
def test_moses_splits_by_its_flags_and_by_the_rules_of_the_language(name, language, line, words):
    assert usable(name, language)([line]) == [words]


CHINESE = ["自然语言处理很有趣。", "我来到北京清华大学", "他来到了网易杭研大厦"]


def test_jieba_joins_characters_to_words_as_its_lcut_does():
    import jieba

    lines = [*CHINESE, "Python 3.11 版本"]
    expected = [" ".join(" ".join(jieba.lcut(line)).split()) for line in lines]
    assert segmenter("jieba", "zh")(lines) == expected
    assert "清华大学" in expected[1].split()


def test_rjieba_segments_chinese_and_nearly_all_real_lines_as_jieba_does():
    assert usable("rjieba", "zh")(CHINESE) == segmenter("jieba", "zh")(CHINESE)
    needs(SHARED.is_dir(), "the real corpora do not lie beside the project")
    path = SHARED / "tatoeba_v1" / "tatoeba.cmn-eng.cmn"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    pairs = zip(usable("rjieba", "zh")(lines), segmenter("jieba", "zh")(lines), strict=True)
    assert sum(one == other for one, other in pairs) > 0.99 * len(lines) > 900


def test_unicode_puts_punctuation_and_symbols_apart_and_cuts_no_letter_digit_or_mark():
    draw = random.Random(1)
    planes = [chr(at) for at in range(0x20000) if unicodedata.category(chr(at))[0] not in "CZ"]
    lines = ["".join(draw.choices(planes, k=8)) for _ in range(3000)]
    segment = segmenter("unicode", "xx")
    for line, words in zip(lines, segment(lines), strict=True):
        for word in words.split():
            kinds = {unicodedata.category(c)[0] in "PS" for c in word}
            assert len(word) == 1 or kinds == {False}, (line, words)
    letters = ["".join(c for c in line if unicodedata.category(c)[0] in "LN") for line in lines]
    spaces = [nfkc(line).count(" ") for line in letters]
    cut = [words.count(" ") for words in segment(letters)]
    marks = [sum(unicodedata.category(c)[0] in "PS" for c in nfkc(line)) for line in letters]
    assert all(c <= s + 2 * m for c, s, m in zip(cut, spaces, marks, strict=True))
    assert sum(count == 0 for count in cut) > 1000
    assert segment(["a_b ½ (c)…"]) == ["a _ b 1 \u2044 2 ( c ) . . ."]


def nfkc(line):
    return unicodedata.normalize("NFKC", line)


@pytest.mark.parametrize("name", ["fugashi", "mecab-jumandic"])
def test_japanese_becomes_words(name):
    line, empty = usable(name, "ja")(["私は日本語を勉強します。", ""])
    assert empty == ""
    words = line.replace("日本語", "日本 語").split()
    assert {"私", "は", "日本", "を", "勉強", "。"} <= set(words)


def test_a_line_that_mecab_would_split_stays_one_and_else_is_an_error_and_no_shift(monkeypatch):
    lines = ["あ" * 400_000, "い"]  # 1.2 MB
    assert [characters(line) for line in usable("mecab-jumandic", "ja")(lines)] == lines
    whole = replace(mecab_jumandic.SEGMENTER, limit=2_000_000)
    monkeypatch.setattr(mecab_jumandic, "SEGMENTER", whole)
    with pytest.raises(EmsError, match=r"2 lines went in and 3 came out, .*be aligned"):
        segmenter("mecab-jumandic", "ja")(lines)


# --- missing tools


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jumanpp", r"jumanpp: .*Juman\+\+ 2"),
        ("moses", r"moses: .*`perl`"),
        ("mecab-jumandic", r"mecab-jumandic: .*`mecab-jumandic-utf8`"),
    ],
)
def test_a_missing_tool_is_an_error_that_names_the_package(tmp_path, monkeypatch, name, message):
    monkeypatch.setenv("PATH", str(tmp_path))
    source = tmp_path / "en-ja.tsv"
    source.write_text("a\tb\t1\n")
    with pytest.raises(EmsError, match=message):
        segmenter(name, "ja")
    with pytest.raises(EmsError, match=message):  # and no other segmenter steps in
        segment_tsv(source, tmp_path / "out.tsv", ("en", "ja"), ("none", name))
    assert not (tmp_path / "out.tsv").exists()


def test_an_unknown_segmenter_is_an_error_with_the_known_ones():
    with pytest.raises(EmsError, match=r"found 'juman'; allowed values: .*jieba, jumanpp"):
        segmenter("juman", "ja")


# --- pair files


def test_a_pair_file_keeps_its_alignment_and_becomes_lower_case(tmp_path):
    pairs = [(f"Satz {at}, ÄÖ.", f"{at}号は日本です") for at in range(4_321)]  # three batches
    pairs[7] = ("# X", "#")
    source = tmp_path / "de-ja.tsv"
    source.write_text("".join(f"{a}\t{b}\t{at}\n" for at, (a, b) in enumerate(pairs)))
    assert segment_tsv(source, tmp_path / "out.tsv", ("de", "ja"), ("sacremoses", "fugashi"))
    lines = (tmp_path / "out.tsv").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(pairs)
    for at, (line, (first, second)) in enumerate(zip(lines, pairs, strict=True)):
        one, other, number = line.split("\t")
        assert number == str(at)
        assert characters(one) == characters(first.lower())
        assert characters(other) == characters(second.lower())
    assert lines[0].split("\t")[0] == "satz 0 , äö ."


@pytest.mark.parametrize("name", BOTH)
def test_abbreviations_are_seen_before_the_case_goes(tmp_path, name):
    needs(runs(name), f"the segmenter {name} cannot run here")
    source = tmp_path / "en-fr.tsv"
    source.write_text("Mr. 5 came\tB\t3\n")
    assert segment_tsv(source, tmp_path / "out.tsv", ("en", "fr"), (name, "none")) == 1
    assert (tmp_path / "out.tsv").read_text() == "mr. 5 came\tb\t3\n"
