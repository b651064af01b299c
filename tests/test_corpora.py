"""Laws of getting data: a corrupted download never becomes data, and no line ever shifts."""

import json
from contextlib import contextmanager

import pytest
from host_made import host
from mirror_made import PAIRS, moses, moses_of

from ems.corpora.catalogue import catalogue
from ems.corpora.download import Downloads
from ems.corpora.fetch import fetch_moses, opus_location
from ems.corpora.moses import count_pairs, members, read_pairs
from ems.errors import EmsError


def pairs_of(path):
    return list(read_pairs(path, "C", "de-en"))


# --- Moses zips


def test_the_pairs_of_an_archive_come_in_its_order(tmp_path):
    path = moses_of(tmp_path / "x.zip", PAIRS)
    assert count_pairs(path, "C", "de-en") == 3
    assert pairs_of(path) == PAIRS


def test_a_last_line_without_line_feed_is_a_line(tmp_path):
    for first, second in ((b"a\nb", b"c\nd\n"), (b"a\nb\n", b"c\nd"), (b"a\nb", b"c\nd")):
        path = moses(tmp_path / "x.zip", first, second)
        assert count_pairs(path, "C", "de-en") == 2
        assert pairs_of(path) == [("a", "c"), ("b", "d")]


@pytest.mark.parametrize("breaker", ["\u2028", "\u2029", "\r", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(tmp_path, breaker):
    pairs = [(f"a{breaker}b", "c"), ("d", f"e{breaker}{breaker}f"), (f"{breaker}g", "h")]
    path = moses_of(tmp_path / "x.zip", pairs)
    assert count_pairs(path, "C", "de-en") == 3
    assert pairs_of(path) == pairs


def test_empty_lines_keep_their_place_and_windows_line_ends_go(tmp_path):
    path = moses(tmp_path / "x.zip", b"\r\na\r\n\r\n", b"b\n\nc\n")
    assert count_pairs(path, "C", "de-en") == 3
    assert pairs_of(path) == [("", "b"), ("a", ""), ("", "c")]


def test_lines_longer_than_a_block_are_one_line(tmp_path):
    pairs = [("x" * 3_000_000, "long"), ("short", "y" * 2_500_000)]
    path = moses_of(tmp_path / "x.zip", pairs)
    assert count_pairs(path, "C", "de-en") == 2
    assert pairs_of(path) == pairs


def test_only_the_expected_members_are_read_and_nothing_is_unpacked(tmp_path):
    inside = tmp_path / "inside"
    path = moses_of(inside / "x.zip", PAIRS, extra=[("../evil", "x"), ("/tmp/ems-evil", "x")])
    assert pairs_of(path) == PAIRS
    assert sorted(item.name for item in tmp_path.rglob("*")) == ["inside", "x.zip"]


@pytest.mark.parametrize(("first", "second"), [(b"a\nb\nc\n", b"a\nb\n"), (b"a\n", b"a\n\n")])
def test_unequal_sides_are_an_error_with_the_file_and_both_counts(tmp_path, first, second):
    path = moses(tmp_path / "x.zip", first, second)
    with pytest.raises(EmsError) as told:
        count_pairs(path, "C", "de-en")
    counts = [first.count(b"\n"), second.count(b"\n")]
    assert str(path) in str(told.value)
    assert f"C.de-en.de has {counts[0]} and C.de-en.en has {counts[1]} lines" in str(told.value)


def test_an_archive_without_pairs_is_an_error(tmp_path):
    with pytest.raises(EmsError, match="no sentence pairs"):
        count_pairs(moses(tmp_path / "x.zip", b"", b""), "C", "de-en")


@pytest.mark.parametrize("content", [b"", b"<html>Not found</html>", b"PK\x03\x04 and no more"])
def test_what_is_no_zip_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(EmsError, match=r"x\.zip: not a zip archive"):
        count_pairs(tmp_path / "x.zip", "C", "de-en")


def test_a_zip_cut_anywhere_is_an_error(tmp_path):
    path = moses_of(tmp_path / "whole.zip", PAIRS * 50)
    content = path.read_bytes()
    for size in range(0, len(content), 17):
        (tmp_path / "cut.zip").write_bytes(content[:size])
        with pytest.raises(EmsError, match=r"cut\.zip"):
            count_pairs(tmp_path / "cut.zip", "C", "de-en")


def test_a_zip_with_a_spoilt_byte_is_an_error_or_still_holds_the_same_pairs(tmp_path):
    path = moses_of(tmp_path / "whole.zip", PAIRS)
    content, told = path.read_bytes(), 0
    for at in range(len(content)):
        spoilt = bytearray(content)
        spoilt[at] ^= 0x5A
        (tmp_path / "spoilt.zip").write_bytes(spoilt)
        try:
            count_pairs(tmp_path / "spoilt.zip", "C", "de-en")
        except EmsError:
            told += 1
        else:
            assert pairs_of(tmp_path / "spoilt.zip") == PAIRS
    assert told > len(content) / 3


def test_a_missing_member_is_named_with_what_is_there(tmp_path):
    path = moses_of(tmp_path / "x.zip", PAIRS, corpus="Other")
    with pytest.raises(EmsError, match=r"expected the member C\.de-en\.de, found .*Other\.de-en"):
        count_pairs(path, "C", "de-en")


def test_an_absent_archive_is_named(tmp_path):
    with pytest.raises(EmsError, match=r"x\.zip: no such file"):
        count_pairs(tmp_path / "x.zip", "C", "de-en")


def test_text_that_is_not_utf8_is_an_error_with_member_and_line(tmp_path):
    path = moses(tmp_path / "x.zip", b"a\nb\nc\n", "a\nb\ncafé\n".encode("latin-1"))
    assert count_pairs(path, "C", "de-en") == 3
    with pytest.raises(EmsError, match=r"x\.zip: line 3 of C\.de-en\.en is not UTF-8"):
        pairs_of(path)


def test_the_members_are_named_as_opus_names_them():
    assert members("News-Commentary", "en-fr") == (
        "News-Commentary.en-fr.en",
        "News-Commentary.en-fr.fr",
    )


# --- fetching


ON_HOST = "/OPUS-C/v1/moses/de-en.txt.zip"
ON_DISK = "C/v1/moses/de-en.txt.zip"


@contextmanager
def mirror(kind, tmp_path, content):
    """The same file in a directory, by its path or as file://, or on a web server.

    Yields (source, a function that changes the file).
    """
    if kind != "host":
        path = tmp_path / "mirror" / ON_DISK
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        folder = tmp_path / "mirror"
        yield (str(folder) if kind == "directory" else folder.as_uri()), path.write_bytes
    else:
        answers = {ON_HOST: (200, {}, content)}
        with host(answers) as address:
            yield address, lambda new: answers.update({ON_HOST: (200, {}, new)})


def get(source, out):
    return fetch_moses(source, "C", "v1", "de-en", out, downloads=Downloads(retries=1, pause=0.0))


both = pytest.mark.parametrize("kind", ["directory", "file", "host"])


@both
def test_a_fetched_file_is_the_source_byte_for_byte_and_locked(tmp_path, kind):
    content = moses_of(tmp_path / "x.zip", PAIRS).read_bytes()
    out = tmp_path / "data" / "x.zip"
    with mirror(kind, tmp_path, content) as (source, _):
        entry = get(source, out)
        assert get(source, out) == entry  # a second time is no change
    assert out.read_bytes() == content
    lock = json.loads((tmp_path / "data" / "x.zip.lock.json").read_text())
    assert (lock["bytes"], lock["pairs"]) == (len(content), 3)
    assert lock["sha256"] == entry["sha256"]
    assert lock["url"].startswith(source)
    assert sorted(p.name for p in out.parent.iterdir()) == ["x.zip", "x.zip.lock.json"]


@both
def test_a_source_that_changed_is_an_error_that_names_the_lock_even_if_the_file_went(
    tmp_path, kind
):
    out = tmp_path / "data" / "x.zip"
    lock = out.with_name("x.zip.lock.json")
    before = moses_of(tmp_path / "a.zip", PAIRS).read_bytes()
    after = moses_of(tmp_path / "b.zip", PAIRS[:2]).read_bytes()
    with mirror(kind, tmp_path, before) as (source, change):
        get(source, out)
        locked = lock.read_bytes()
        change(after)
        with pytest.raises(EmsError, match=r"the source changed.*delete .*x\.zip\.lock\.json"):
            get(source, out)
        assert out.read_bytes() == before
        out.unlink()
        with pytest.raises(EmsError, match="the source changed"):
            get(source, out)
        assert not out.exists()
        assert lock.read_bytes() == locked
        lock.unlink()
        get(source, out)
    assert out.read_bytes() == after


@both
@pytest.mark.parametrize("bad", [b"", b"<html><body>Service unavailable</body></html>\n"])
def test_a_page_instead_of_a_zip_leaves_no_file_and_no_lock(tmp_path, kind, bad):
    out = tmp_path / "data" / "x.zip"
    with mirror(kind, tmp_path, bad) as (source, _), pytest.raises(EmsError) as told:
        get(source, out)
    assert "not a zip archive" in str(told.value)
    assert source in str(told.value)
    assert list(out.parent.iterdir()) == []


@both
def test_unequal_sides_leave_no_file_and_no_lock(tmp_path, kind):
    content = moses(tmp_path / "x.zip", b"a\nb\n", b"a\n").read_bytes()
    out = tmp_path / "data" / "x.zip"
    with (
        mirror(kind, tmp_path, content) as (source, _),
        pytest.raises(EmsError, match="equal line counts"),
    ):
        get(source, out)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_refusing_host_is_an_error_with_the_address_and_the_status(tmp_path, status):
    content = moses_of(tmp_path / "x.zip", PAIRS).read_bytes()
    out = tmp_path / "data" / "x.zip"
    with (
        host({ON_HOST: (status, {}, content)}) as address,
        pytest.raises(EmsError, match=f"{ON_HOST}: expected status 200, found {status}"),
    ):
        get(address, out)
    assert list(out.parent.iterdir()) == []


def test_a_body_shorter_than_its_length_leaves_no_file_but_its_part(tmp_path):
    content = moses_of(tmp_path / "x.zip", PAIRS).read_bytes()
    out = tmp_path / "data" / "x.zip"
    answer = (200, {"Content-Length": str(len(content) + 1)}, content)  # a whole zip, even
    with host({ON_HOST: answer}) as address, pytest.raises(EmsError, match=ON_HOST):
        get(address, out)
    assert sorted(p.name for p in out.parent.iterdir()) == [".x.zip.part", ".x.zip.part.json"]


def test_a_host_that_nobody_answers_at_is_an_error_that_names_the_setting(tmp_path):
    with host({}) as address:
        pass
    out = tmp_path / "data" / "x.zip"
    with pytest.raises(EmsError, match=r"download failed .*`sources`"):
        get(address, out)
    assert list(out.parent.iterdir()) == []


def test_a_missing_source_is_an_error_that_names_it(tmp_path):
    with pytest.raises(EmsError, match=rf"{ON_DISK}: no such file; check `sources`"):
        get(str(tmp_path), tmp_path / "data" / "x.zip")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_folder_where_a_file_should_be_is_an_error_that_names_it(tmp_path):
    (tmp_path / ON_DISK).mkdir(parents=True)
    with pytest.raises(EmsError, match=rf"{ON_DISK}: cannot be read"):
        get(str(tmp_path), tmp_path / "data" / "x.zip")
    assert list((tmp_path / "data").iterdir()) == []


def test_an_opus_host_has_the_prefix_that_a_directory_has_not():
    assert opus_location("https://h/", "C", "v1", "de-en") == "https://h" + ON_HOST
    assert opus_location("/d/", "C", "v1", "de-en") == "/d/" + ON_DISK


def test_every_known_corpus_has_a_version():
    assert catalogue()
    assert all(known.versions for known in catalogue().values())
