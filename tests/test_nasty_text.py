"""Laws of text as real downloads hold it: whatever a line contains, pairs stay aligned through
cleaning and every segmenter, and what is lost is counted or told with file and line."""

import re
import subprocess
from collections import Counter

import pytest
from made.corpora import moses
from made.segmenters import _look_for_the_tools_anew, put_jumanpp, usable  # noqa: F401
from made.text import cleaned as cleaned_lines
from made.text import tiny

from ems.base.errors import EmsError
from ems.config.experiment import Corpus
from ems.text.evalkeys import write_keys
from ems.text.segmenters.base import names, segmenter

PAIR = "en-ja"
LONG = 1 << 18
NASTY = [  # what stands around the number of a line
    ("", "\x00NUL\x00"),
    ("", "a\u2028b\u2029c"),
    ("", "next\x85line"),
    ("", "vt\x0bff\x0cfs\x1cgs\x1drs\x1eus\x1f"),
    ("", "escape \x1b[31mred\x1b[0m del\x7f"),
    ("", "windows\r"),
    ("", "lone\rcarriage\rreturn"),
    ("\r", " \r "),
    (" \r ", "x \r"),
    ("", "\u202bbidi\u202c \u200frtl\u200e \u2067iso\u2069"),
    ("\ufeff", "BOM\ufeffinside\ufeff"),
    ("# ", "a comment?"),
    ("#", ""),
    ("## # ", "# "),
    ("\t", "tab\ttab\t"),
    ("", "(^ ^) ＼(^o^)／ ʕ•ᴥ•ʔ"),
    ("", "ﾊﾝｶｸ ｶﾞｷﾞ ﾊﾟ ｱｰ"),
    ("", "葛\U000e0100 辻\ufe00"),
    ("", "👩‍👩‍👧‍👦 🏴\U000e0067\U000e0062\U000e007f 👍🏽 ❤️‍🔥"),
    ("", "zero\u200bwidth\u200cnon\u200djoiner soft\u00adhyphen"),
    ("", "e\u0301 \u0301lone mark क्‍ष می‌خواهم"),
    ("", "EOS"),
    ("EOS ", "\\ \\t \\n *"),
    ("", "http://a.example/b?c=d&e=f#g <b>&amp;</b> [x] | 'y' \"z\""),
    ("\u3000", "全角　スペース\u3000"),
    ("", "日" * 1_366),  # 4,098 bytes
    ("", "かな " * 30_000),  # over 65,535 bytes
    ("", "word " * (LONG // 5)),
    ("", "長" * (LONG // 3)),
    ("", "\U0010ffff \ue000 \ufffe"),
]
LATIN, CESU, CUT = "café".encode("latin-1"), b"\xed\xa0\xbd\xed\xb8\x80", "日本".encode()[:-1]


def clean(folder, pairs, archive=None, **settings):
    """(the kept lines, the report) of pairs of bytes, or of an archive."""
    write_keys({"leak": ["tatoeba/eng"]}, folder / "keys.tsv")
    sides = [b"".join(pair[at] + b"\n" for pair in pairs) for at in (0, 1)]
    archive = archive or moses(folder / "x.zip", *sides, pair=PAIR)
    experiment = tiny(Corpus("C", "v1", "somewhere", True, (PAIR,), None), clean=settings)
    return cleaned_lines(experiment, [archive], folder / "keys.tsv", PAIR)


def side(number, nasty, swap):
    before, after = NASTY[nasty]
    return f"{before}{number:04}n{after if not swap else after[::-1]}".encode()


def corpus():
    """Pairs of bytes, each side with its number; number -> why a pair goes."""
    few = [at for at, (_, after) in enumerate(NASTY) if len(after) < 10_000]
    draws = [(a, few[(7 * a + 3) % len(few)]) for a in range(len(NASTY))]
    pairs = [(side(at, a, False), side(at, b, True)) for at, (a, b) in enumerate(draws)]
    reasons = {}
    lost = [
        ("undecodable", LATIN, b"x"),
        ("undecodable", b"x", CESU),
        ("undecodable", CUT, CUT),
        ("undecodable", "plain text".encode("utf-16-le"), b"x"),
        ("both_empty", b"", b"\r"),
        ("both_empty", "\u2028\u3000".encode(), b"\x00\x1b"),
        ("one_empty", b"", b"x"),
        ("one_empty", b"x", "\ufeff\x85".encode()),
        ("evaluation", b"Leak\r", b"x"),
        ("evaluation", b"x", "\u202aL\x00e\u2028a\u00adk\u202c".encode()),
    ]
    for at, (reason, first, second) in enumerate(lost):
        place = 3 * at  # among the others
        pairs.insert(place, (first, second))
        reasons[place] = reason
    return pairs, reasons


def numbers(text):
    """The number that a side carries, wherever segmentation put spaces."""
    return re.search(r"(\d{4})n", "".join(text[:50].lower().split()))[1]


def expected_numbers(pairs, reasons):
    return [numbers(one.decode()) for at, (one, _) in enumerate(pairs) if at not in reasons]


@pytest.fixture(scope="module", params=["keep", "drop"])
def cleaned(request, tmp_path_factory):
    """The adversarial corpus once cleaned, format characters kept and dropped."""
    pairs, reasons = corpus()
    folder = tmp_path_factory.mktemp("nasty")
    kept, entry = clean(folder, pairs, undecodable="drop", format_characters=request.param)
    return pairs, reasons, kept, entry


def test_cleaning_loses_no_pair_silently_and_shifts_none(cleaned):
    pairs, reasons, kept, entry = cleaned
    assert [numbers(first) for first, _, _ in kept] == expected_numbers(pairs, reasons)
    assert [numbers(second) for _, second, _ in kept] == expected_numbers(pairs, reasons)
    lines = [at + 1 for at in range(len(pairs)) if at not in reasons]
    assert [int(line) for _, _, line in kept] == lines
    removed = {name: count for name, count in entry["removed"].items() if count}
    assert removed == Counter(reasons.values())
    assert entry["read"] == len(pairs) == entry["kept"] + sum(entry["removed"].values())


@pytest.mark.parametrize("cleaned", ["keep"], indirect=True)
@pytest.mark.parametrize("name", names())
def test_every_segmenter_keeps_the_pairs_aligned(name, cleaned, tmp_path, monkeypatch):
    if name == "jumanpp":
        put_jumanpp(tmp_path, monkeypatch)
    pairs, reasons, kept, _ = cleaned
    for at, code in ((0, "en"), (1, "ja")):
        words = usable(name, code)([row[at] for row in kept])
        assert [numbers(text) for text in words] == expected_numbers(pairs, reasons)
        assert not any(c in text for text in words for c in "\r\n\x00\u2028\u2029\x85\x0b\x0c")


def test_a_limit_on_bytes_takes_the_longest_lines_and_counts_them(tmp_path):
    pairs, reasons = corpus()
    limit = LONG * 9 // 10
    kept, entry = clean(tmp_path, pairs, undecodable="drop", max_bytes=limit)
    gone = [at for at, pair in enumerate(pairs) if max(map(len, pair)) > limit]
    assert len(gone) == entry["removed"]["max_bytes"] == 2
    assert len(kept) == len(pairs) - len(reasons) - len(gone)


# --- what is one clear error


@pytest.mark.parametrize("place", [0, 1500])
@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (LATIN, "not UTF-8"),
        (CESU, "not UTF-8"),
        (CUT, "not UTF-8"),
        ("\ufeffline".encode("utf-16"), "not UTF-8"),
        ("some text".encode("utf-16-le"), "UTF-16"),
        ("some text".encode("utf-16-be"), "UTF-16"),
    ],
    ids=["latin-1", "lone surrogates", "cut", "UTF-16", "UTF-16 LE", "UTF-16 BE"],
)
def test_another_encoding_is_an_error_with_file_member_and_line(tmp_path, spoilt, why, place):
    pairs = [(b"one", b"two")] * place + [(b"x", spoilt)] + [(b"one", b"two")] * 3
    with pytest.raises(EmsError, match=why) as caught:
        clean(tmp_path, pairs)
    assert f"x.zip: line {place + 1:,} of C.en-ja.ja is not UTF-8" in str(caught.value)
    assert "clean.undecodable: drop" in str(caught.value)
    assert not (tmp_path / "out.tsv").exists()


def test_a_whole_side_in_another_encoding_is_counted_line_by_line(tmp_path):
    pairs = [(b"x", f"né {at}".encode("latin-1")) for at in range(2500)] + [(b"x", b"y")]
    kept, entry = clean(tmp_path, pairs, undecodable="drop")
    assert [row[2] for row in kept] == ["2501"]
    assert entry["removed"]["undecodable"] == 2500


def test_sides_of_unequal_length_are_an_error_with_both_counts(tmp_path):
    sides = "a\u2028b\n\r\nc\rd\n".encode(), "a\nb\n\x85\nc\n".encode()
    with pytest.raises(EmsError, match=r"y\.zip: .*C\.en-ja\.en has 3 and C\.en-ja\.ja has 4"):
        clean(tmp_path, [], moses(tmp_path / "y.zip", *sides, pair=PAIR))


@pytest.mark.parametrize("breaker", ["\n", "\r", "\x00", "\u2028", "\x85", "\t", "\ud83d"])
def test_what_shifts_lines_never_reaches_a_tool(breaker):
    with pytest.raises(EmsError, match=rf"line 2 .* holds U\+{ord(breaker):04X}"):
        segmenter("none", "en")(["fine", f"a{breaker}b"])


def test_the_stand_in_for_jumanpp_does_lose_what_is_not_kept_from_it(tmp_path, monkeypatch):
    """Else the laws above would hold of anything."""
    program = put_jumanpp(tmp_path, monkeypatch)
    lines = ["# x", "#", "", "日" * 1_366, "a b", "ﾊﾝｶｸ", "ハンカク", "長" * 30_000, "b"]
    text = "".join(f"{line}\n" for line in lines).encode()
    done = subprocess.run([program, "--segment"], input=text, capture_output=True, check=True)
    expected = ["#", "", "a \\␣ b", "ﾊ ﾝ ｶ ｸ", "ハンカク", "b"]
    assert done.stdout.decode() == "".join(f"{line}\n" for line in expected)
