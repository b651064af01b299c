"""Laws of nasty text: whatever a line contains, pairs stay aligned through cleaning and every
segmenter, every loss is counted or an error, and long lines take no more memory than a few."""

import random
import re
import subprocess
from collections import Counter

import pytest
from made.corpora import moses, moses_of, write_lines
from made.experiments import one_line
from made.forked import growth
from made.shards import contents, vocabulary
from made.text import cleaned as cleaned_lines
from made.text import passed, put_jumanpp, tiny, usable

from ems.base import texts
from ems.base.errors import EmsError
from ems.config.experiment import Corpus
from ems.corpora.moses import read_pairs
from ems.shards.writer import write_shards
from ems.text.evalkeys import write_keys
from ems.text.filters import CleanReport
from ems.text.segmenters.base import names, segmenter
from ems.text.tsv import read_tsv

PAIR = "en-ja"
LONG = 1 << 18
NASTY = [  # text before and after the number of a line; some are over 4,096 or 65,535 bytes
    *(("", "\x00NUL\x00"), ("", "a\u2028b\u2029c"), ("", "next\x85line")),
    *(("", "vt\x0bff\x0cfs\x1cgs\x1drs\x1eus\x1f"), ("", "escape \x1b[31mred\x1b[0m del\x7f")),
    *(("", "windows\r"), ("", "lone\rcarriage\rreturn"), ("\r", " \r "), (" \r ", "x \r")),
    ("", "\u202bbidi\u202c \u200frtl\u200e \u2067iso\u2069"),
    *(("\ufeff", "BOM\ufeffinside\ufeff"), ("# ", "a comment?"), ("#", ""), ("## # ", "# ")),
    *(("\t", "tab\ttab\t"), ("", "(^ ^) ＼(^o^)／ ʕ•ᴥ•ʔ"), ("", "ﾊﾝｶｸ ｶﾞｷﾞ ﾊﾟ ｱｰ")),
    *(("", "葛\U000e0100 辻\ufe00"), ("", "👩‍👩‍👧‍👦 🏴\U000e0067\U000e0062\U000e007f 👍🏽 ❤️‍🔥")),
    ("", "zero\u200bwidth\u200cnon\u200djoiner soft\u00adhyphen"),
    *(("", "e\u0301 \u0301lone mark क्‍ष می‌خواهم"), ("", "EOS"), ("EOS ", "\\ \\t \\n *")),
    ("", "http://a.example/b?c=d&e=f#g <b>&amp;</b> [x] | 'y' \"z\""),
    *(("\u3000", "全角　スペース\u3000"), ("", "日" * 1_366), ("", "かな " * 30_000)),
    *(("", "word " * (LONG // 5)), ("", "長" * (LONG // 3)), ("", "\U0010ffff \ue000 \ufffe")),
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
    """Pairs of bytes, each side with its number; number -> why a pair is removed."""
    few = [at for at, (_, after) in enumerate(NASTY) if len(after) < 10_000]
    draws = [(a, few[(7 * a + 3) % len(few)]) for a in range(len(NASTY))]
    pairs = [(side(at, a, False), side(at, b, True)) for at, (a, b) in enumerate(draws)]
    lost = [("undecodable", *pair) for pair in ((LATIN, b"x"), (b"x", CESU), (CUT, CUT))]
    lost += [("undecodable", "plain text".encode("utf-16-le"), b"x"), ("both_empty", b"", b"\r")]
    lost += [("both_empty", "\u2028\u3000".encode(), b"\x00\x1b"), ("one_empty", b"", b"x")]
    lost += [("one_empty", b"x", "\ufeff\x85".encode()), ("evaluation", b"Leak\r", b"x")]
    lost += [("evaluation", b"x", "\u202aL\x00e\u2028a\u00adk\u202c".encode())]
    for place, (_, *pair) in enumerate(lost):
        pairs.insert(3 * place, tuple(pair))
    return pairs, {3 * place: reason for place, (reason, *_) in enumerate(lost)}


def numbers(text):
    """The number that a side carries, wherever segmentation put spaces."""
    return re.search(r"(\d{4})n", "".join(text[:50].lower().split()))[1]


def expected_numbers(pairs, reasons):
    return [numbers(one.decode()) for at, (one, _) in enumerate(pairs) if at not in reasons]


@pytest.fixture(scope="module", params=["keep", "drop"])
def cleaned(request, tmp_path_factory):
    """The adversarial corpus cleaned, with format characters kept and dropped."""
    pairs, reasons = corpus()
    folder = tmp_path_factory.mktemp("nasty")
    kept, entry = clean(folder, pairs, undecodable="drop", format_characters=request.param)
    return pairs, reasons, kept, entry


def test_cleaning_counts_every_loss_and_keeps_pairs_aligned(cleaned):
    pairs, reasons, kept, entry = cleaned
    for side in (0, 1):
        assert [numbers(row[side]) for row in kept] == expected_numbers(pairs, reasons)
    assert [int(row[2]) - 1 for row in kept] == sorted({*range(len(pairs))} - reasons.keys())
    assert +Counter(entry["removed"]) == Counter(reasons.values())
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


# --- errors

SPOILT = [LATIN, CESU, CUT, "\ufeffline".encode("utf-16")]
SPOILT += ["some text".encode(code) for code in ("utf-16-le", "utf-16-be")]


@pytest.mark.parametrize("place", [0, 1500])
@pytest.mark.parametrize("spoilt", SPOILT)
def test_another_encoding_is_an_error_with_its_line_or_counted(tmp_path, spoilt, place):
    pairs = [(b"one", b"two")] * place + [(b"x", spoilt)] + [(b"one", b"two")] * 3
    why = "not UTF-8" if spoilt in SPOILT[:4] else "UTF-16"
    message = one_line(clean, tmp_path, pairs)
    where = f"x.zip: line {place + 1:,} of C.en-ja.ja is not UTF-8"
    assert all(part in message for part in (where, why, "clean.undecodable: drop"))
    assert not (tmp_path / "out.tsv").exists()
    kept, entry = clean(tmp_path, pairs, undecodable="drop")
    assert (len(kept), entry["removed"]["undecodable"]) == (place + 3, 1)


def test_sides_of_different_lengths_are_an_error(tmp_path):
    sides = "a\u2028b\n\r\nc\rd\n".encode(), "a\nb\n\x85\nc\n".encode()
    message = one_line(clean, tmp_path, [], moses(tmp_path / "y.zip", *sides, pair=PAIR))
    assert re.search(r"y\.zip: .*C\.en-ja\.en has 3 and C\.en-ja\.ja has 4", message)


@pytest.mark.parametrize("breaker", ["\n", "\r", "\x00", "\u2028", "\x85", "\t", "\ud83d"])
def test_no_segmenter_is_given_a_line_break(breaker):
    with pytest.raises(EmsError, match=rf"line 2 .* holds U\+{ord(breaker):04X}"):
        segmenter("none", "en")(["fine", f"a{breaker}b"])


def test_the_stand_in_for_jumanpp_drops_lines_like_jumanpp(tmp_path, monkeypatch):
    """Otherwise the laws above would prove nothing."""
    program = put_jumanpp(tmp_path, monkeypatch)
    lines = ["# x", "#", "", "日" * 1_366, "a b", "ﾊﾝｶｸ", "ハンカク", "長" * 30_000, "b"]
    text = "".join(f"{line}\n" for line in lines).encode()
    done = subprocess.run([program, "--segment"], input=text, capture_output=True, check=True)
    expected = ["#", "", "a \\␣ b", "ﾊ ﾝ ｶ ｸ", "ハンカク", "b"]
    assert done.stdout.decode().split("\n")[:-1] == expected


# --- long lines

LINES, WORDS = 300, 1_000  # lines of as many words of a hundred bytes
BOUND = 26 << 20  # bytes of memory, less than all lines take


def clean_and_encode(folder):
    texts.CHARACTERS = 1 << 18  # of this process
    rows = enumerate(read_pairs(folder / "x.zip", "C", "de-en"), start=1)
    clean = passed(((a, b, at) for at, (a, b) in rows), CleanReport(read=LINES))
    with open(folder / "de-en.tsv", "w", encoding="utf-8") as writer:
        writer.writelines(f"{a}\t{b}\t{line}\n" for a, b, line in clean)
    write_shards(folder / "de-en.tsv", folder / "v.model", folder / "shards")


@pytest.mark.slow
def test_cleaning_and_encoding_hold_a_few_long_lines_at_a_time(tmp_path):
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghé", k=98)) for _ in range(300)]
    line = draw.choices(words, k=WORDS)
    rows = [(" ".join([*line[at:], *line[:at]]), f"side {at}", at + 1) for at in range(LINES)]
    moses_of(tmp_path / "x.zip", rows)
    vocabulary(tmp_path / "v.model", 200)
    assert 0 < growth(clean_and_encode, tmp_path) < BOUND
    assert list(read_tsv(tmp_path / "de-en.tsv")) == rows


def test_batches_are_limited_in_number_and_length(monkeypatch):
    monkeypatch.setattr(texts, "CHARACTERS", 10)
    items = ["a" * size for size in (3, 3, 3, 3, 25, 1, 1, 1, 1, 10, 2)]
    sizes = [[len(item) for item in batch] for batch in texts.batched(items, len, 4)]
    assert sizes == [[3, 3, 3, 3], [25], [1, 1, 1, 1], [10], [2]]
    assert list(texts.batched([], len)) == []


def test_the_size_of_batches_changes_no_byte(tmp_path, monkeypatch):
    draw = random.Random(4)
    model = vocabulary(tmp_path / "v.model", 200)
    sizes = [draw.choice([1, 3, 300]) for _ in range(500)]
    pairs = [(" ".join("ab" * draw.randint(1, 4) for _ in range(n)), "b", 7) for n in sizes]
    made = []
    for limit in (1, 100, 1000, texts.CHARACTERS):
        monkeypatch.setattr(texts, "CHARACTERS", limit)
        report, source = CleanReport(read=len(pairs)), tmp_path / str(limit) / "de-en.tsv"
        rows = passed(iter(pairs), report, known={"abab": ("t",)})
        write_lines(source, (f"{a}\t{b}\t{line}" for a, b, line in rows))
        write_shards(source, model, source.with_name("shards"))
        made.append((report.removed, list(read_tsv(source)), contents(source.parent)))
        assert made[0] == made[-1]
