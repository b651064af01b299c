"""Laws of filters, tidy text, keys and duplicates; the fast ways give what the plain ones give."""

import html
import random
import unicodedata
from collections import Counter
from functools import partial
from itertools import chain

import numpy as np
import pytest
from made.corpora import moses_of, write_lines
from made.experiments import MINIMAL, Settings
from made.text import clean_alone, law, tiny
from made.text import filtered as clean

from ems.base.texts import INVISIBLE
from ems.config.experiment import Corpus
from ems.config.text import CleanSettings
from ems.text import duplicates
from ems.text.clean import CleanSource
from ems.text.duplicates import Seen, distinct, first_occurrences, hashes_of
from ems.text.evalkeys import write_keys
from ems.text.filters import CleanReport, in_batches
from ems.text.keys import KEYS, folded_keys, plain_key
from ems.text.normalise import tidier, tidy, tidy_lines
from ems.text.tsv import read_tsv

# --- what each filter removes

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
def test_a_filter_removes_and_counts_what_it_says(name, value, gone, stays):
    first = [("eins", "one")] if name == "duplicates" else []  # the first one stays
    kept, report = clean([*first, *stays, *gone], **{name: value})
    assert kept == [(tidy(one), tidy(other)) for one, other in [*first, *stays]]
    assert report.removed == Counter({name: len(gone)})
    if name != "undecodable":
        assert len(clean([*first, *stays, *gone])[0]) == len([*first, *stays, *gone])


def test_every_filter_of_the_schema_is_tested_and_off_by_default():
    elsewhere = {"format_characters", "language", "similarity", "commands"}  # test_noise.py
    elsewhere |= {"filters", "repairs"}  # test_pair_filters.py, test_repairs.py
    assert {case[0] for case in CASES} | elsewhere == set(CleanSettings.model_fields)
    assert tiny().clean == CleanSettings()
    kept, report = clean(PAIRS)
    assert kept == PAIRS
    assert list(report.removed) == ["both_empty", "one_empty", "evaluation"]


def test_a_pair_counts_under_its_first_reason():
    every = {"identical": "drop", "max_characters": 9, "max_words": 1, "duplicates": "drop"}
    pairs = [(None, ""), ("", ""), ("", "leak"), ("Leak!", "leak"), ("a b c d e f", "a b c d e f")]
    pairs += [("a b c d e f", "x"), ("a b", "x"), ("y", "x"), ("y", "x")]
    kept, report = clean(pairs, known={"leak": ("tatoeba",)}, undecodable="drop", **every)
    assert kept == [("y", "x")]
    empty = ["both_empty", "one_empty", "evaluation"]
    assert report.removed == Counter(["undecodable", *empty, *every])
    assert report.by_benchmark == {"tatoeba": Counter(pairs=1, de=1, en=1)}


# --- format characters

SEEN = ["می‌خواهم", "क्‍ष", "ශ්‍රී", "അവന്‍"]  # joiners that a script needs
SEEN += ["👩‍👩‍👧 👍🏽‍❤️‍🔥", "\u06dd٣", "辻\U000e0100"]  # emoji, a visible sign, a variation selector
FORMAT = dict(zip(SEEN, SEEN, strict=True)) | {
    **{"\u202aabc\u202c": "abc", "\u200fشلوم\u200e": "شلوم", "co\u00adoperate": "cooperate"},
    **{"a\u200bb": "ab", "e\u200b\u0301": "é"},  # NFC comes after it
    **{"a\u200cb\u200d": "ab", "क\u200d\u200d": "क\u200d"},  # Latin script needs no joiner
}


@pytest.mark.parametrize("text", FORMAT)
def test_format_characters_are_dropped_except_joiners_that_a_script_needs(text):
    assert tidier("drop")(text) == unicodedata.normalize("NFC", FORMAT[text])
    assert tidier("keep")(text) == tidy(text)
    kept, report = clean([(text, "x")], format_characters="drop")
    assert kept == [(unicodedata.normalize("NFC", FORMAT[text]), "x")]
    assert report.changed["format_characters"] == (text != FORMAT[text])
    assert clean([(text, "x")])[0] == [(tidy(text), "x")]


@pytest.mark.parametrize("format_characters", ["keep", "drop"])
def test_a_side_without_a_visible_character_is_empty(format_characters):
    alone = "\u2800\xad\ufe0f\u034f\u200d\U000e0061\u180e\u3164"
    sides = ["\u115f\u1160", "\u200b \u3164", alone, *alone]
    kept, report = clean([(side, "x") for side in sides], format_characters=format_characters)
    assert (kept, report.removed["one_empty"]) == ([], len(sides))
    visible = [("\u3164a", "x"), ("☺\ufe0f", "x"), (".", "x"), ("\u0301", "x")]
    assert len(clean(visible, format_characters=format_characters)[0]) == len(visible)


def test_invisible_characters_are_those_of_unicode():
    regex, every = pytest.importorskip("regex"), map(chr, range(0x110000))
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}|\s|[\p{Cc}\u2800\ufff9-\ufffb]")
    assert set(filter(ignorable.match, every)) == INVISIBLE


# --- tidy text and keys

SAME = ["Hello, World!|hello world", "Ｈｅｌｌｏ　１２３|hello 123", "Don't!|dont", "¿Qué?|QUÉ"]
SAME += ["cafe\u0301|CAF\u00c9", "日本。語「は」|日本語は", "ﾊﾝｶｸ|ハンカク", "ﬁne|fine"]
SAME += ["a\u200bb\ufeff|ab"]
APART = ["की|का", "มา|ม้า", "café|cafe", "が|か", "1|2", "क|क्"]


@pytest.mark.parametrize("texts", [*SAME, *APART])
def test_the_folded_key_ignores_case_punctuation_spaces_and_width(texts):
    first, second = folded_keys(texts.split("|"))
    assert "" not in (first, second)
    assert (first == second) == (texts in SAME)


def test_the_plain_key_ignores_case_and_spaces_alone():
    assert plain_key(" Cafe\u0301\t au\u3000lait ") == plain_key("CAFÉ AU LAIT") == "café au lait"
    for other in ("hello!", "ｈello", "hel lo"):
        assert plain_key("hello") != plain_key(other)
    assert folded_keys([" ... !? — 😀 ", "a"]) == ["", "a"]


def test_tidy_text_has_no_breaks_controls_or_double_spaces():
    draw = random.Random(1)
    odd = [chr(code) for code in (*range(32), *range(0x7F, 0xA1), 0x2028, 0x2029, 0xFEFF, 0x3000)]
    for _ in range(2000):
        text = "".join(draw.choices([*odd, *"abé \u0301가क्日😀"], k=draw.randint(0, 12)))
        new = tidy(text)
        assert new == tidy(new) == " ".join(new.split())
        assert all(unicodedata.category(c) not in ("Cc", "Zl", "Zp") for c in new)
        assert unicodedata.is_normalized("NFC", new)
        # What carries meaning stays: the same letters in the same order.
        kept = [c for c in unicodedata.normalize("NFC", text) if not c.isspace() and c != "\ufeff"]
        assert [c for c in new if c != " "] == [c for c in kept if unicodedata.category(c) != "Cc"]


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


WAYS = {  # the way for many lines, and the plain way for one
    "tidy": (tidy_lines, tidy),
    "without format": (partial(tidy_lines, slow=tidier("drop")), tidier("drop")),
    "folded": (KEYS["folded"], law),
    "plain": (KEYS["plain"], plain_key),
    "primary": (KEYS["primary"], lambda text: KEYS["primary"]([text])[0]),
}
COATS = {  # changes of a text that its primary key ignores
    "decomposed": partial(unicodedata.normalize, "NFD"),
    "escaped": html.escape,
    "in numbers": lambda text: "".join(f"&amp;# {ord(c)} ;" for c in text),
    "joined": "\u200d".join,
    "upside down": str.swapcase,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("way", WAYS)
def test_the_way_for_many_lines_equals_the_way_for_each(seed, way):
    draw, (many, one) = random.Random(seed), WAYS[way]
    texts = [random_text(draw) for _ in range(4000)]
    ascii_only = [text for text in texts if text.isascii()]
    assert len(ascii_only) > 100
    for some in (texts, ascii_only, []):
        assert many(some) == [one(text) for text in some]


@pytest.mark.parametrize("coat", COATS)
def test_the_primary_key_ignores_a_coat_of_any_text(coat):
    draw, key = random.Random(coat), KEYS["primary"]
    texts = [tidy(random_text(draw)).replace("\u0345", "") for _ in range(4000)]
    assert len(set(key(texts))) > 2000
    assert key([tidy(COATS[coat](text)) for text in texts]) == key(texts)


def test_every_character_has_its_folded_key():
    codes = [*range(0x33480), *range(0xE0000, 0xE0200), *range(0x10FF00, 0x110000)]
    assert not [chr(code) for code in set(range(0x110000)) - {*codes} if chr(code).isalnum()]
    codes = [code for code in codes if code != 10 and not 0xD800 <= code < 0xE000]
    texts = [f"a{chr(code)}b" for code in codes]  # all that Unicode has given a meaning
    assert folded_keys(texts) == list(map(law, texts))


# --- duplicates in memory


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


def test_hashes_that_collide_in_the_table_are_distinguished(monkeypatch):
    """All of them fall on the last place, so the search wraps round to the start."""
    seen = Seen(400)
    size = len(seen.table)
    hashes = np.arange(1, 201, dtype=np.uint64) * np.uint64(size) - np.uint64(1)
    assert set((hashes % np.uint64(size)).tolist()) == {size - 1}
    monkeypatch.setattr(duplicates, "hashes_of", lambda texts: hashes[list(map(int, texts))])
    texts = [str(at) for at in range(200)]
    assert all(seen.add(texts[:150]))
    assert seen.add(texts) == [False] * 150 + [True] * 50
    assert not any(seen.add(texts[::-1]))


def test_a_set_takes_twelve_bytes_per_text_has_fixed_hashes_and_a_bound():
    assert Seen(1_000_000).table.nbytes == 12_000_000
    seen = Seen(10)
    seen.add(["a", "b"])
    hashes = [3405396810240292928, 8453121595177857668]
    assert sorted(seen.table[seen.table > 0].tolist()) == hashes
    with pytest.raises(ValueError, match="17 texts in a set for 10"):  # and no endless search
        seen.add([str(at) for at in range(15)])


# --- duplicates on disk


def pairs_of(seed, count=3_000):
    """Pairs of which many are equal; some are the same text cut elsewhere."""
    draw = random.Random(seed)
    return [(draw.choice("abcde") * draw.randint(1, 30), draw.choice("ab c")) for _ in range(count)]


def left(pairs, earlier, folder, **options):
    """What stays of some pairs, with their lines, and the report."""
    rows = [(*pair, at) for at, pair in enumerate(pairs, start=1)]
    report = CleanReport(read=len(rows))
    kept = list(chain.from_iterable(distinct(in_batches(rows), earlier, folder, report, **options)))
    assert len(kept) == len(rows) - report.removed["duplicates"]
    return kept, report


@pytest.mark.parametrize("part", [7, 1_000, 1 << 20])
def test_duplicates_on_disk_are_those_of_a_set(tmp_path, part):
    earlier, expected = [pairs_of(1, 200), pairs_of(2, 100)], []
    lines = [[f"{a}\t{b}\t1" for a, b in pairs] for pairs in earlier]
    paths = [write_lines(tmp_path / f"{at}.tsv", own) for at, own in enumerate(lines)]
    seen = {*chain(*earlier)}
    for at, pair in enumerate(pairs := pairs_of(3), start=1):
        if pair not in seen:
            seen.add(pair)
            expected.append((*pair, at))
    assert 20 < len(expected) < 2_000
    kept, report = left(pairs, paths, tmp_path / "scratch", part=part)
    assert kept == expected
    gone = sorted({*range(1, len(pairs) + 1)} - {row[2] for row in expected})
    assert [line for line, _ in report.examples["duplicates"]] == gone[:3]
    assert not (tmp_path / "scratch").exists()


def test_files_of_a_killed_run_are_replaced(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "hashes").write_bytes(hashes_of(["a\tb"]).tobytes())
    assert left([], [], tmp_path / "scratch")[0] == []
    assert left([("a", "b")], [], tmp_path / "scratch")[0] == [("a", "b", 1)]


def test_the_largest_and_smallest_hashes_are_in_a_part(tmp_path):
    ends = np.array([2**64 - 1, 1, 2**63, 2**63 - 1, 1, 2**64 - 1], np.uint64)
    (tmp_path / "hashes").write_bytes(ends.tobytes())
    for part in (1, 2, 3, 6):
        assert first_occurrences(tmp_path / "hashes", 0, part).tolist() == [True] * 4 + [False] * 2
        assert first_occurrences(tmp_path / "hashes", 3, part).tolist() == [True, False, False]


def cleaned(experiment, folder, name, pairs, *earlier):
    """The clean pair file of a corpus, its pairs, and its report."""
    path = moses_of(folder / name / "de-en.txt.zip", pairs, corpus=name)
    write_keys({}, folder / "evalkeys.tsv")
    source = CleanSource(name, "v1", "de-en", (path,), earlier=earlier)
    out = folder / name / "de-en.tsv"
    report = clean_alone(experiment, source, folder / "evalkeys.tsv", out)
    assert {*out.parent.iterdir()} == {path, out, out.with_suffix(".json")}
    return out, [row[:2] for row in read_tsv(out)], report


def test_of_several_corpora_the_first_keeps_a_pair(tmp_path):
    corpora = tuple(Corpus(name, "v1", "nowhere", True, ("de-en",), None) for name in "ABC")
    experiment = tiny(corpora=corpora, validation=(), clean={"duplicates": "across"})
    first, a, _ = cleaned(experiment, tmp_path, "A", [("x", "1"), ("y", "2"), ("x ", "1")])
    pairs = [("y", " 2"), ("z", "3"), ("y", "4"), ("z", "3")]
    second, b, report = cleaned(experiment, tmp_path, "B", pairs, first)
    assert (report["read"], report["removed"]["duplicates"], report["kept"]) == (4, 2, 2)
    pairs = [("y", "4"), ("x", "1"), ("w", "5")]
    _, c, _ = cleaned(experiment, tmp_path, "C", pairs, first, second)
    assert [a, b, c] == [[("x", "1"), ("y", "2")], [("z", "3"), ("y", "4")], [("w", "5")]]


def test_too_many_duplicates_for_memory_are_found_on_disk(tmp_path, monkeypatch):
    pairs = pairs_of(4)
    in_memory = clean(pairs, duplicates="drop", max_characters=25)
    monkeypatch.setattr(duplicates, "IN_MEMORY", 10)
    monkeypatch.setattr(duplicates, "Seen", None)  # would fail
    monkeypatch.chdir(tmp_path)
    assert clean(pairs, duplicates="drop", max_characters=25) == in_memory
    assert in_memory[1].removed["duplicates"] > 1_000


def test_earlier_corpora_are_training_corpora_of_the_same_pair(tmp_path):
    corpora = [{"name": name, "version": "v1", "source": "nowhere"} for name in "ABC"]
    value = MINIMAL | {"validation": {**corpora[1], "name": "Held"}}
    value |= {"corpora": [corpora[0] | {"languages": ["de"]}, *corpora[1:]]}
    project = Settings(tmp_path, value)

    def before(duplicates, *place):
        experiment = project.load(value | {"clean": {"duplicates": duplicates}})
        return [corpus.name for corpus in experiment.before(*place)]

    assert before("across", "C", "v1", "de-en") == ["A", "B"]
    assert before("across", "C", "v1", "en-fr") == ["B"]
    assert before("across", "A", "v1", "de-en") == before("across", "Held", "v1", "de-en") == []
    assert before("drop", "C", "v1", "de-en") == []
