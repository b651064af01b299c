"""Noisy FLORES-200: each damage by hand, its laws, and scores that equal plain loops."""

import unicodedata
from collections import Counter
from itertools import pairwise

import pytest
from made.bench import HashEncoder, naive_hits, scored
from made.corpora import write_flores
from made.experiments import shipped
from made.scores import check_golden, hits

from ems.base.files import read_table
from ems.bench.encoders import cached
from ems.benchmarks.noisy.damages import CLEAN, DAMAGES, neighbours
from ems.benchmarks.noisy.score import damaged_lines
from ems.config.plugins import folder

GERMAN = "Über 1.500 Menschen kamen am Montag nach Köln, sagte Frau Krüger-Lenz."
THAI = "เมื่อวันจันทร์ที่ผ่านมา ซาร่า แดเนียส ประกาศต่อสาธารณชน"
CHINESE = "周一，瑞典学院诺贝尔文学委员会常务秘书萨拉·丹尼尔斯"
TYPOS = ("5 % typos", "10 % typos")


def damaged(name, line, language="de", english="It is so."):
    return DAMAGES[name](line, language, english)


@pytest.mark.parametrize(
    ("name", "language", "line", "expected"),
    [
        ("lower case", "de", "Größe ÄNDERN", "größe ändern"),
        ("lower case", "tr", "Iğdır İLİ", "ığdır ili"),
        ("upper case", "de", "Größe, klein", "GRÖSSE, KLEIN"),
        ("upper case", "tr", "ılık istanbul", "ILIK İSTANBUL"),
        ("no diacritics", "pl", "Łódź, żółw", "Lodz, zolw"),
        ("no diacritics", "vi", "Việt Đức", "Viet Duc"),
        ("no diacritics", "tr", "İstanbul ılık", "Istanbul ilik"),
        ("no diacritics", "el", "Άθήνα ϊός", "Αθηνα ιος"),
        ("no diacritics", "ru", "йогурт, ещё", "йогурт, ещё"),
        ("no diacritics", "hi", "हिन्दी में", "हिन्दी में"),
        ("no diacritics", "ja", "がぎぐ", "がぎぐ"),
        ("no punctuation", "fr", "« L'eau », dit-il : 1,5 % !", " Leau  ditil  15  "),
        ("no punctuation", "zh", "他说：“是。”", "他说是"),
        ("no spaces", "de", "Er ist 30 Jahre alt.", "Erist30Jahrealt."),
        ("Latin letters", "ru", "Москва", "Moskva"),
        ("Latin letters", "de", "schon so", "schon so"),
    ],
)
def test_a_damage_by_hand(name, language, line, expected):
    assert damaged(name, line, language) == expected


@pytest.mark.parametrize(
    ("line", "english", "expected"),
    [
        ("Сара Даниус сказала.", "On Monday, Sara Danius said so.", "Sara Danius сказала."),
        ("साहित्य के लिए नोबेल समिति", "The Nobel committee", "साहित्य के लिए Nobel समिति"),
        ("عاد أوباما إلى كندا", "So Obama returned to Canada", "عاد أوباما إلى Canada"),
        ("Сара", "Sara said so.", "Сара"),  # the first word has a capital in any case
        ("Боря и сыр", "He met Boris in Syria.", "Боря и сыр"),  # too few consonants
    ],
)
def test_words_that_sound_like_a_name_of_the_english_line_become_it(line, english, expected):
    assert damaged("English names", line, "xx", english) == expected


def test_the_typos_of_a_line_never_change():
    """They depend on share, language and line alone: a new Python must draw the same."""
    shown = [damaged("10 % typos", *of) for of in ((GERMAN, "de"), (THAI, "th"), (CHINESE, "zh"))]
    assert shown == [
        "Öber 1.500 Mdnschen kamen am Monzag nach Köln, wagte Rrau Krüger-Lenz.",
        "เมืือวันจันทร์ที่ผ่ารมา ซาา่ม แดเนียส ประกาศต่อสาธ่รณชน",
        "周一，瑞典学院诺贝文尔委员会常务秘书萨拉·丹尼尔斯",
    ]
    assert damaged("5 % typos", GERMAN) != damaged("10 % typos", GERMAN)
    assert damaged("10 % typos", GERMAN, "sv") != damaged("10 % typos", GERMAN)
    lines = [GERMAN, "Noch eine Zeile mit vielen Buchstaben.", GERMAN + " Und mehr."]
    every = damaged_lines(lines, "de", lines)
    turned = damaged_lines(lines[::-1], "de", lines[::-1])
    assert all(turned[name] == every[name][::-1] for name in every)


@pytest.mark.parametrize(("name", "share"), [("5 % typos", 0.05), ("10 % typos", 0.1)])
def test_a_share_of_the_letters_becomes_letters_of_keys_next_to_them(name, share):
    line = "The quick brown fox Jumps over a LAZY dog, 1234 times; " * 8
    other = damaged(name, line, "id")
    assert len(other) == len(line)
    changed = [(a, b) for a, b in zip(line, other, strict=True) if a != b]
    assert len(changed) == round(share * sum(map(str.isalpha, line)))
    assert all(b.lower() in neighbours("id")[a.lower()] for a, b in changed)
    assert all(a.isupper() == b.isupper() for a, b in changed)


def test_without_a_layout_letters_are_swapped_dropped_or_doubled():
    line = "".join(map(chr, range(0x4E00, 0x4E00 + 400)))
    other, lengths = damaged("10 % typos", line, "zh"), Counter()
    assert set(other) <= set(line)
    for letter in line:
        lengths[other.count(letter)] += 1
    assert 5 < lengths[0] < 25  # dropped
    assert 5 < lengths[2] < 25  # doubled
    kept = list(dict.fromkeys(other))
    assert 3 < sum(a > b for a, b in pairwise(kept)) < 25  # swapped


def test_the_keys_around_a_key():
    assert sorted(neighbours("id")["g"]) == sorted("ftyhbv")
    assert sorted(neighbours("fr")["a"]) == sorted("zq" + "é")
    assert sorted(neighbours("de")["y"]) == sorted("asx")
    assert sorted(neighbours("ru")["п"]) == sorted("аенрми")
    assert neighbours("zh") == neighbours("xx") == {}


def test_every_language_of_62_has_one_layout_of_single_letters_if_it_has_any():
    rows = read_table(folder("noisy") / "keyboards.tsv")
    languages = Counter(" ".join(row["languages"] for row in rows).split())
    assert set(languages.values()) == {1}
    assert set(shipped("small62").languages) - set(languages) == {"en", "ja", "ko", "zh"}
    keys = {key for row in rows for key in row["keys"] if key not in ". "}
    assert {unicodedata.category(key)[0] for key in keys} == {"L", "M"}
    for language in languages:
        near = neighbours(language)
        assert all(len(other) == 1 and other in near for own in near.values() for other in own)
        assert len(near) > 20


def test_a_damage_that_changes_few_lines_of_a_language_is_left_out():
    german = damaged_lines([GERMAN] * 5, "de", ["It is so."] * 5)
    assert list(german) == list(DAMAGES)[:-1]
    thai = [THAI] * 9 + ["ที่ U.S. ผ่าน"]
    assert list(damaged_lines(thai, "th", thai)) == [*TYPOS, "no spaces", "Latin letters"]
    assert "lower case" in damaged_lines([*thai[:4], thai[-1]], "th", thai[:5])  # a fifth


CODES = {"en": "eng_Latn", "de": "deu_Latn", "th": "tha_Thai"}
OF_NOISY = {
    "languages": list(CODES),
    "evalsets": {"flores200": {"version": "v1"}},
    "benchmarks": ["noisy"],
}


def test_only_clean_lines_are_kept_in_the_cache_which_other_benchmarks_read(tmp_path):
    for language, code in CODES.items():
        write_flores(tmp_path, code, [f"{THAI} {language} {number}" for number in range(20)])
    encoder, cache = HashEncoder(), tmp_path / "cache"
    encoder.identity = "hashes"
    folder = tmp_path / "flores200"
    first, again = (
        scored(tmp_path, "noisy", folder, cached(encoder, cache, 100), **OF_NOISY) for _ in range(2)
    )
    assert first.rows == again.rows
    assert len(list(cache.iterdir())) == len(CODES)
    assert len(encoder.asked) == len(CODES) + 2 * (len(CODES) - 1)


def test_scores_equal_a_loop_over_damages_and_a_clean_twin_follows_each(tmp_path):
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    lines = {
        "en": [f"So it was {word}" for word in words],
        "de": [f"Es wäre {word}" for word in words],
        "th": [f"{THAI} {word[::-1]}" for word in words],
    }
    for language, code in CODES.items():
        write_flores(tmp_path, code, lines[language])
    encoder = HashEncoder()
    scores = scored(tmp_path, "noisy", tmp_path / "flores200", encoder, **OF_NOISY)
    check_golden("noisy.txt", scores.path)
    assert scores.parallel
    assert scores.label == "direction"
    english = encoder.encode(lines["en"], "en")
    for language in ("de", "th"):
        expected = {CLEAN: lines[language]}
        expected |= damaged_lines(lines[language], language, lines["en"])
        own = [row for row in scores.rows if row.source == CODES[language]]
        rows = {row.split: row for row in own if not row.measure}
        assert list(rows) == list(expected)
        for name, queries in expected.items():
            vectors = encoder.encode(queries, language)
            assert list(hits(rows[name])) == naive_hits(vectors, english)
        twins = {row.split: row.value for row in own if row.measure == CLEAN}
        assert twins == dict.fromkeys(rows, rows[CLEAN].value)
    assert rows[CLEAN].value < scores.rows[0].value
