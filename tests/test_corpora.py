"""Laws of getting data: a corrupted download never becomes data, and no line ever shifts."""

import gzip
import json
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from made.archives import count_refused, spoilt
from made.cli import Cli
from made.corpora import PAIRS, moses, moses_of, zipped
from made.experiments import one_line
from made.web import source_of

from ems.base.errors import EmsError
from ems.corpora import moses as moses_module
from ems.corpora.archive import Budget, Limits
from ems.corpora.fetch import fetch_file
from ems.corpora.locations import mined_location, opus_location
from ems.corpora.moses import count_mined, count_pairs, members, read_mined, read_pairs


def pairs_of(path):
    return list(read_pairs(path, "C", "de-en"))


# --- Moses zips


def test_a_moses_zip_may_hold_more_text_than_may_be_unpacked_to_disk(tmp_path, monkeypatch):
    with open(tmp_path / "large.zip", "wb") as file:
        file.truncate(40 << 30)  # as large as CCMatrix en-es, and no byte on disk
    Budget(tmp_path / "large.zip", moses_module.MOSES_LIMITS).spend(120 << 30)
    with pytest.raises(EmsError, match="unpacks to more than the limit of 68,719,476,736 bytes"):
        Budget(tmp_path / "large.zip").spend(120 << 30)
    path = moses(tmp_path / "x.zip", b"a\nb\n", b"c\nd\n")
    monkeypatch.setattr(moses_module, "MOSES_LIMITS", Limits(5))
    with pytest.raises(EmsError, match="unpacks to more than the limit of 5 bytes"):
        count_pairs(path, "C", "de-en")


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ((b"a\nb\n", b"c\nd\n"), [("a", "c"), ("b", "d")]),
        ((b"a\nb", b"c\nd\n"), [("a", "c"), ("b", "d")]),  # a last line needs no line feed
        ((b"a\nb\n", b"c\nd"), [("a", "c"), ("b", "d")]),
        ((b"a\nb", b"c\nd"), [("a", "c"), ("b", "d")]),
        ((b"\r\na\r\n\r\n", b"b\n\nc\n"), [("", "b"), ("a", ""), ("", "c")]),
    ],
)
def test_the_pairs_of_an_archive_come_in_its_order_empty_lines_too(tmp_path, sides, expected):
    path = moses(tmp_path / "x.zip", *sides)
    assert count_pairs(path, "C", "de-en") == len(expected)
    assert pairs_of(path) == expected


@pytest.mark.parametrize("breaker", ["\u2028", "\u2029", "\r", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(tmp_path, breaker):
    pairs = [(f"a{breaker}b", "c"), ("d", f"e{breaker}{breaker}f"), (f"{breaker}g", "h")]
    pairs += [("x" * 3_000_000, "long"), ("short", "y" * 2_500_000)]  # longer than a block
    path = moses_of(tmp_path / "x.zip", pairs)
    assert count_pairs(path, "C", "de-en") == 5
    assert pairs_of(path) == pairs


def test_only_the_expected_members_are_read_and_nothing_is_unpacked(tmp_path):
    inside = tmp_path / "inside"
    path = moses_of(inside / "x.zip", PAIRS, extra=[("../evil", "x"), ("/tmp/ems-evil", "x")])
    assert pairs_of(path) == PAIRS
    assert sorted(item.name for item in tmp_path.rglob("*")) == ["inside", "x.zip"]


@pytest.mark.parametrize(("first", "second"), [(b"a\nb\nc\n", b"a\nb\n"), (b"a\n", b"a\n\n")])
def test_unequal_sides_are_an_error_with_the_file_and_both_counts(tmp_path, first, second):
    path = moses(tmp_path / "x.zip", first, second)
    line = one_line(count_pairs, path, "C", "de-en")
    counts = [first.count(b"\n"), second.count(b"\n")]
    assert str(path) in line
    assert f"C.de-en.de has {counts[0]} and C.de-en.en has {counts[1]} lines" in line


@pytest.mark.parametrize(
    "content", [None, b"", b"<html>Not found</html>", b"PK\x03\x04 and no more"]
)
def test_what_is_no_zip_or_has_no_pairs_is_an_error_that_names_the_file(tmp_path, content):
    with pytest.raises(EmsError, match=r"x\.zip: no such file"):
        count_pairs(tmp_path / "x.zip", "C", "de-en")
    moses(tmp_path / "x.zip", b"", b"")
    if content is not None:
        (tmp_path / "x.zip").write_bytes(content)
    expected = "contains no sentence pairs" if content is None else "not a zip archive"
    with pytest.raises(EmsError, match=rf"x\.zip: {expected}"):
        count_pairs(tmp_path / "x.zip", "C", "de-en")


def test_a_zip_cut_anywhere_is_an_error(tmp_path):
    path = moses_of(tmp_path / "whole.zip", PAIRS * 50)
    content = path.read_bytes()
    for size in range(0, len(content), 17):
        (tmp_path / "cut.zip").write_bytes(content[:size])
        with pytest.raises(EmsError, match=r"cut\.zip"):
            count_pairs(tmp_path / "cut.zip", "C", "de-en")


def test_a_zip_with_a_spoilt_byte_is_an_error_or_still_holds_the_same_pairs(tmp_path):
    def read(path):
        count_pairs(path, "C", "de-en")
        return pairs_of(path)

    content = moses_of(tmp_path / "whole.zip", PAIRS).read_bytes()
    assert count_refused(spoilt(content), tmp_path / "x.zip", read, PAIRS) > len(content) / 3


def test_a_missing_member_is_named_with_what_is_there(tmp_path):
    path = moses_of(tmp_path / "x.zip", PAIRS, corpus="Other")
    with pytest.raises(EmsError, match=r"expected the member C\.de-en\.de, found .*Other\.de-en"):
        count_pairs(path, "C", "de-en")


def test_text_that_is_not_utf8_is_an_error_with_member_and_line(tmp_path):
    path = moses(tmp_path / "x.zip", b"a\nb\nc\n", "a\nb\ncafé\n".encode("latin-1"))
    assert count_pairs(path, "C", "de-en") == 3
    with pytest.raises(EmsError, match=r"x\.zip: line 3 of C\.de-en\.en is not UTF-8"):
        pairs_of(path)


# --- mined files

LINES = ["1.25\tHallo\tHello", "1.0750\tZwei\tTwo", "1.0749\tDrei\tThree", "1.04\tVier\tFour"]


def mined(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content))
    return path


def test_pairs_of_the_threshold_or_better_come_in_the_files_order(tmp_path):
    path = mined(tmp_path / "x.tsv.gz", LINES)
    assert list(read_mined(path)) == [("Hallo", "Hello"), ("Zwei", "Two")]
    assert count_mined(path) == 2
    assert list(read_mined(path, 1.04))[2:] == [("Drei", "Three"), ("Vier", "Four")]
    assert [count_mined(path, threshold) for threshold in (1.2, 1.0749, 0)] == [1, 3, 4]
    with pytest.raises(EmsError, match=r"x\.tsv\.gz: contains no pair with a score of 2 or more"):
        count_mined(path, 2.0)
    path = mined(tmp_path / "x.tsv.gz", LINES[::-1])  # nothing relies on the best standing first
    assert list(read_mined(path)) == [("Zwei", "Two"), ("Hallo", "Hello")]


@pytest.mark.parametrize("breaker", ["\u2028", "\r", "\x85", "\x0c"])
def test_in_mined_files_only_a_line_feed_ends_a_line_and_only_a_tab_a_column(tmp_path, breaker):
    path = mined(tmp_path / "x.tsv.gz", [f"1.2\ta{breaker}b c\td{breaker}e\r", "1.1\t\tf"])
    assert list(read_mined(path)) == [(f"a{breaker}b c", f"d{breaker}e"), ("", "f")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1.2\tonly one", "has 2 columns"),
        ("1.2\ta\tb\tc", "has 4 columns"),
        ("", "has 1 columns"),
        ("high\ta\tb", "begins with 'high', expected a score"),
        ("nan\ta\tb", "begins with 'nan', expected a score"),
        ("\ta\tb", "begins with '', expected a score"),
    ],
)
def test_a_spoilt_line_is_an_error_with_its_number_even_below_the_threshold(
    tmp_path, line, expected
):
    path = mined(tmp_path / "x.tsv.gz", [*LINES, line])
    with pytest.raises(EmsError, match=rf"x\.tsv\.gz: line 5 {expected}"):
        count_mined(path)


def test_mined_text_that_is_not_utf8_is_an_error_with_its_line(tmp_path):
    (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(b"1.2\ta\tb\n1.1\t\xff\tb\n"))
    with pytest.raises(EmsError, match=r"x\.tsv\.gz: line 2 is not UTF-8"):
        list(read_mined(tmp_path / "x.tsv.gz"))


def test_a_file_cut_anywhere_is_an_error_and_never_a_shorter_corpus(tmp_path):
    content = mined(tmp_path / "x.tsv.gz", LINES * 100).read_bytes()
    for size in range(0, len(content), 7):
        (tmp_path / "cut.tsv.gz").write_bytes(content[:size])
        with pytest.raises(EmsError, match=r"cut\.tsv\.gz"):
            count_mined(tmp_path / "cut.tsv.gz")


def test_a_bomb_or_a_line_without_end_is_an_error(tmp_path):
    for content in (b"1.2\ta\tb\n" * (3 << 20), b"1.2\t" + b"a" * (17 << 20)):
        (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(content))
        with pytest.raises(EmsError, match=r"unpacks to more than|is longer than"):
            count_mined(tmp_path / "x.tsv.gz")


# --- fetching, of Moses zips and of mined files alike


def sides(*texts):
    """The bytes of a Moses zip."""
    return zipped(zip(members("C", "de-en"), texts, strict=True))


MINED = b"1.25\tHallo\tHello\n1.04\tZwei\tTwo\n"
LASERS = "/WikiMatrix/v1/WikiMatrix.de-en.tsv.gz"
FORMATS = {  # how a pair is fetched, where it lies, contents as they are and otherwise
    "moses": SimpleNamespace(
        fetch=lambda source, out: fetch_file("moses", source, "C", "v1", "de-en", out),
        on_host="/OPUS-C/v1/moses/de-en.txt.zip",
        on_disk="/C/v1/moses/de-en.txt.zip",
        good=sides(b"a\nb\n", b"c\nd\n"),
        other=sides(b"a\n", b"c\n"),
        bad=sides(b"a\nb\n", b"c\n"),
        message="equally many lines",
    ),
    "mined": SimpleNamespace(
        fetch=lambda source, out: fetch_file("mined", source, "", "", "de-en", out),
        on_host=LASERS,
        on_disk=LASERS,
        good=gzip.compress(MINED),
        other=gzip.compress(MINED[:17]),
        bad=gzip.compress(MINED + b"x\n"),
        message="line 3 has 1 columns",
    ),
}
every_format = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
every_kind = pytest.mark.parametrize("kind", ["directory", "file", "host"])


@contextmanager
def mirror(kind, tmp_path, form, content):
    """Yields a source with one file, and the path of that file."""
    folder = tmp_path / "mirror"
    path = folder / (form.on_host if kind == "host" else form.on_disk)[1:]
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with source_of(kind, folder) as source:
        yield source, path


@every_kind
@every_format
def test_a_fetched_file_is_the_source_byte_for_byte_and_locked(tmp_path, kind, form):
    out = tmp_path / "data" / Path(form.on_disk).name
    with mirror(kind, tmp_path, form, form.good) as (source, _):
        entry = form.fetch(source, out)
        assert form.fetch(source, out) == entry  # a second time is no change
    assert out.read_bytes() == form.good
    assert entry == json.loads(out.with_name(f"{out.name}.lock.json").read_text())
    assert (entry["bytes"], entry["pairs"]) == (len(form.good), 2)
    assert entry["url"].startswith(source)
    assert sorted(p.name for p in out.parent.iterdir()) == [out.name, f"{out.name}.lock.json"]


@every_kind
@every_format
def test_a_source_that_changed_is_an_error_that_names_the_lock_even_if_the_file_went(
    tmp_path, kind, form
):
    out = tmp_path / "data" / Path(form.on_disk).name
    lock = out.with_name(f"{out.name}.lock.json")
    with mirror(kind, tmp_path, form, form.good) as (source, path):
        form.fetch(source, out)
        locked = lock.read_bytes()
        path.write_bytes(form.other)
        with pytest.raises(EmsError, match=rf"the source changed.*delete .*{lock.name}"):
            form.fetch(source, out)
        assert out.read_bytes() == form.good
        out.unlink()
        with pytest.raises(EmsError, match="the source changed"):
            form.fetch(source, out)
        assert not out.exists()
        assert lock.read_bytes() == locked
        lock.unlink()
        form.fetch(source, out)
    assert out.read_bytes() == form.other


@every_kind
@every_format
def test_a_page_or_a_malformed_file_leaves_no_file_and_no_lock(tmp_path, kind, form):
    out = tmp_path / "data" / Path(form.on_disk).name
    page = b"<html><body>Service unavailable</body></html>\n"
    with mirror(kind, tmp_path, form, b"") as (source, path):
        for content, message in ((form.bad, form.message), (page, "not a "), (b"", "not a ")):
            path.write_bytes(content)
            line = one_line(form.fetch, source, out)
            assert message in line
            assert (form.on_host if kind == "host" else str(path)) in line
            assert list(out.parent.iterdir()) == []


@every_format
def test_a_missing_or_unreadable_source_is_an_error_that_names_it(tmp_path, form):
    out = tmp_path / "data" / "x"
    with pytest.raises(EmsError, match=rf"{form.on_disk}: no such file; check `sources`"):
        form.fetch(str(tmp_path), out)
    (tmp_path / form.on_disk[1:]).mkdir(parents=True)
    with pytest.raises(EmsError, match=rf"{form.on_disk}: cannot be read"):
        form.fetch(str(tmp_path), out)
    assert not list(out.parent.glob("*"))


def test_files_are_named_as_opus_names_them_and_on_its_host_with_a_prefix():
    texts = ("News-Commentary.en-fr.en", "News-Commentary.en-fr.fr")
    assert members("News-Commentary", "en-fr") == texts
    opus = FORMATS["moses"]
    assert opus_location("https://h/", "C", "v1", "de-en") == "https://h" + opus.on_host
    assert opus_location("/d/", "C", "v1", "de-en") == "/d" + opus.on_disk
    assert mined_location("https://h/laser/", "de-en") == "https://h/laser" + LASERS


def test_the_command_line_fetches_a_format(tmp_path):
    path = tmp_path / f"mirror{LASERS}"
    path.parent.mkdir(parents=True)
    path.write_bytes(FORMATS["mined"].good)
    ems, out = Cli(tmp_path), tmp_path / "data" / "x.tsv.gz"
    which = ("--corpus", "WikiMatrix", "--version", "v1", "--pair", "de-en")
    source = ("--source", tmp_path / "mirror", "--out", out)
    lines = ems("fetch", "--format", "mined", *which, *source)
    assert "'pairs': 2" in lines[-2]
    assert "WikiMatrix/v1/moses/de-en.txt.zip: no such file" in ems.error("fetch", *which, *source)
