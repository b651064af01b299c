"""Segmenters keep every line and change white space only; Juman++ as a stand-in misbehaves."""

import random
import unicodedata
from dataclasses import replace
from functools import partial

import pytest
from conftest import SHARED, needs
from made import golden
from made.text import (
    assert_nothing_is_lost,
    characters,
    put_jumanpp,
    runs,
    segment_alone,
    usable,
)

from ems.base.errors import EmsError
from ems.config.languages import load_languages
from ems.text.segmenters import mecab_jumandic
from ems.text.segmenters.base import LONGEST_RUN, cut_runs, load, names, segmenter, warn_of_marks

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


EVERY = [(name, code) for name in names() for code in LANGUAGES.get(name, ["ja"])]
EVERY.remove(("jumanpp", "ja"))  # below, as a stand-in


@pytest.mark.parametrize(("name", "language"), EVERY)
def test_every_segmenter_keeps_every_line_and_every_character(name, language):
    segment = usable(name, language)
    assert_nothing_is_lost(segment, name)
    assert segment([]) == []


def test_a_tool_that_cuts_marks_off_is_named_for_each_script_that_has_them(caplog):
    languages = load_languages()
    lines = {"hi": "हिन्दी", "th": "ที่นี่", "my": "မြန်မာ", "ta": "தமிழ்", "de": "für", "ko": "한국어"}
    for name in ("moses-fast", "sacremoses", "moses", "unicode"):
        caplog.clear()
        warn_of_marks(dict.fromkeys(lines, name), languages)
        for code, line in lines.items():
            cut = usable(name, code)([line]) != [line]
            assert f"{code}: unicode" in caplog.text or not cut
        assert ("de: " in caplog.text, "hi: " in caplog.text) == (False, name != "unicode")


def test_moses_splits_by_its_flags_and_the_rules_of_the_language():
    def words(line):
        name, language, text = line.split(" ", 2)
        return usable(name, language)([text])[0]

    golden.replay("moses.txt", words)


CHINESE = ["自然语言处理很有趣。", "我来到北京清华大学", "他来到了网易杭研大厦"]


def test_jieba_has_the_words_of_lcut():
    import jieba

    lines = [*CHINESE, "Python 3.11 版本"]
    expected = [" ".join(" ".join(jieba.lcut(line)).split()) for line in lines]
    assert segmenter("jieba", "zh")(lines) == expected
    assert "清华大学" in expected[1].split()


def test_rjieba_segments_nearly_all_real_lines_like_jieba():
    assert usable("rjieba", "zh")(CHINESE) == segmenter("jieba", "zh")(CHINESE)
    needs(SHARED.is_dir(), "no real corpora in ../shared")
    path = SHARED / "tatoeba_v1" / "tatoeba.cmn-eng.cmn"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    pairs = zip(usable("rjieba", "zh")(lines), segmenter("jieba", "zh")(lines), strict=True)
    assert sum(one == other for one, other in pairs) > 0.99 * len(lines) > 900


def test_unicode_splits_off_punctuation_and_symbols_only():
    def category(c):
        return unicodedata.category(c)[0]

    draw = random.Random(1)
    planes = [chr(code) for code in range(0x20000) if category(chr(code)) not in "CZ"]
    lines = ["".join(draw.choices(planes, k=8)) for _ in range(3000)]
    segment = segmenter("unicode", "xx")
    words = " ".join(segment(lines)).split()
    assert all(len(word) == 1 or not any(category(c) in "PS" for c in word) for word in words)
    letters = ["".join(c for c in planes[:5000] if category(c) in "LN" and c.isascii())]
    assert segment(letters) == letters
    assert segment(["a_b ½ (c)…"]) == ["a _ b 1 \u2044 2 ( c ) . . ."]


@pytest.mark.parametrize("name", ["fugashi", "mecab-jumandic"])
def test_japanese_becomes_words(name):
    line, empty = usable(name, "ja")(["私は日本語を勉強します。", ""])
    assert empty == ""
    words = line.replace("日本語", "日本 語").split()
    assert {"私", "は", "日本", "を", "勉強", "。"} <= set(words)


@pytest.mark.slow
def test_a_line_that_mecab_would_split_stays_one_or_is_an_error(monkeypatch):
    lines = ["あ" * 400_000, "い"]  # 1.2 MB
    assert [characters(line) for line in usable("mecab-jumandic", "ja")(lines)] == lines
    whole = replace(mecab_jumandic.SEGMENTER, limit=2_000_000)
    monkeypatch.setattr(mecab_jumandic, "SEGMENTER", whole)
    with pytest.raises(EmsError, match=r"2 lines went in and 3 came out, .*be aligned"):
        usable("mecab-jumandic", "ja")(lines)


# --- missing tools
TOOLS = {"jumanpp": r"Juman\+\+ 2", "moses": "`perl`", "mecab-jumandic": "`mecab-jumandic-utf8`"}


@pytest.mark.parametrize("name", TOOLS)
def test_a_missing_tool_is_an_error_that_names_the_package(tmp_path, monkeypatch, name):
    message = rf"{name}: .*{TOOLS[name]}"
    monkeypatch.setenv("PATH", str(tmp_path))
    source = tmp_path / "en-ja.tsv"
    source.write_text("a\tb\t1\n")
    with pytest.raises(EmsError, match=message):
        segmenter(name, "ja")
    with pytest.raises(EmsError, match=message):  # no other segmenter is used instead
        segment_alone(source, tmp_path / "out.tsv", ("en", "ja"), ("none", name))
    assert not (tmp_path / "out.tsv").exists()
    with pytest.raises(EmsError, match=r"found 'juman'; allowed values: .*jieba, jumanpp"):
        segmenter("juman", "ja")


# --- pair files
def test_a_pair_file_keeps_its_alignment_and_becomes_lower_case(tmp_path):
    pairs = [(f"Satz {at}, ÄÖ.", f"{at}号は日本です") for at in range(4_321)]  # three batches
    pairs[7] = ("# X", "#")
    source = tmp_path / "de-ja.tsv"
    source.write_text("".join(f"{a}\t{b}\t{at}\n" for at, (a, b) in enumerate(pairs)))
    segment_alone(source, tmp_path / "out.tsv", ("de", "ja"), ("sacremoses", "fugashi"))
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().split("\n")[:-1]]
    lower = [(a.lower(), b.lower(), str(at)) for at, (a, b) in enumerate(pairs)]
    assert [[*map(characters, row)] for row in rows] == [[*map(characters, row)] for row in lower]
    assert rows[0][0] == "satz 0 , äö ."


@pytest.mark.parametrize("name", ["moses", "sacremoses"])
def test_abbreviations_are_recognised_before_lower_casing(tmp_path, name):
    needs(runs(name), f"the segmenter {name} cannot run here")
    source = tmp_path / "en-fr.tsv"
    source.write_text("Mr. 5 came\tB\t3\n")
    segment_alone(source, tmp_path / "out.tsv", ("en", "fr"), (name, "none"))
    assert (tmp_path / "out.tsv").read_text() == "mr. 5 came\tb\t3\n"


# --- Juman++: nothing is lost


@pytest.fixture
def jumanpp(tmp_path, monkeypatch):
    """Put a `jumanpp` on PATH."""
    return partial(put_jumanpp, tmp_path, monkeypatch)


def test_text_that_jumanpp_drops_is_not_given_to_it(jumanpp):
    jumanpp()
    segment = segmenter("jumanpp", "ja")
    assert_nothing_is_lost(segment, "jumanpp")
    assert segment(["# 日本", "", "日 本"]) == ["# 日 本", "", "日 本"]
    lines = ["ﾊﾝｶｸ", "ｶﾞｷﾞ ﾊﾟ", "ＡＢ１ ﾊﾝｶｸハンカク", "ｱｰ。"]  # a token each, to Juman++
    assert segment(lines) == ["ハンカク", "ガギ パ", "Ａ Ｂ １ ハンカクハンカク", "アー 。"]
    lines = ["a" * shift + "日本" * 2_000 for shift in range(7)]  # cut wherever the limit falls
    assert [characters(line) for line in segment(lines)] == lines


@pytest.mark.parametrize("run", ["ー", "가", "กิ", ".", "。"])
def test_a_long_run_is_cut_for_tools_that_take_the_square_of_its_time(run):
    lines = [f"a {run * 20_000} b", run * 100, "日本語の文、" * 1_000, "some words " * 900]
    cut = list(map(cut_runs, lines))
    assert [characters(line) for line in cut] == [characters(line) for line in lines]
    assert max(map(len, cut[0].split())) <= LONGEST_RUN
    assert cut[1:] == lines[1:]
    assert {name for name in names() if load(name).prepare} >= {"fugashi", "moses", "moses-fast"}


FAULTS = [
    ({"drop": "number == 0"}, "3 lines went in and 2 came out"),
    ({"drop": "number == 2"}, "3 lines went in and 2 came out"),
    ({"drop": "line == b''"}, "3 lines went in and 2 came out.*be aligned"),
    ({"end": "sys.exit('no model here')"}, "jumanpp: exit status 1: no model here"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_a_tool_that_drops_a_line_or_fails_is_an_error(jumanpp, fault, message):
    jumanpp(**fault)
    with pytest.raises(EmsError, match=message):
        segmenter("jumanpp", "ja")(["日", "", "本"])
