"""Laws of downloading: whatever a server does ends in the right bytes or in one clear error."""

import email.utils
import errno
import io
import random
import time

import pytest
from made.web import (
    CERTIFICATES,
    CONTENT,
    OTHER,
    PART,
    File,
    World,
    chunked,
    cut,
    good,
    no_ranges,
    says,
    stall,
    wrong_range,
)

from ems.base.errors import EmsError
from ems.corpora.download import PartialFile, part_path
from ems.corpora.fetch import fetch

PAGE = b"<!DOCTYPE html>\n<html><body>Service unavailable</body></html>\n"
CUT, REST = cut(100_000), "bytes=100000-"  # what the first attempt brings, what is asked for next


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


# --- interrupted

WRONG = [
    "bytes 0-400003/400004",
    "bytes 99999-400003/400004",
    "bytes 100000-400003/400005",
    "x",
    "",
]
SOME = wrong_range("bytes 100000-199999/400004", CONTENT[100_000:200_000])
RECOVERS = {  # what the server does one after the other, the ranges that it is asked for
    "whole": ([good], [None]),
    "less than the rest": ([CUT, SOME, good], [None, REST, "bytes=200000-"]),
    "200 for a range": ([CUT, no_ranges], [None, REST]),
    "206 without a range": ([CUT, says(206), good], [None, REST, None]),
    "416": ([CUT, says(416), good], [None, REST, None]),
    "in chunks": ([chunked()], [None]),
    "not all chunks": ([chunked(3), chunked()], [None, "bytes=150000-"]),
    **{
        f"206 of {content_range or 'nothing'}, {'whole' if body is None else 'rest'}": (
            [CUT, wrong_range(content_range, body), good],
            [None, REST, None],
        )
        for content_range in WRONG
        for body in (None, OTHER[100_000:])
    },
}


@pytest.mark.parametrize("case", RECOVERS)
def test_whatever_is_sent_the_file_is_whole_in_the_end_and_pauses_lie_between(world, case):
    ways, ranges = RECOVERS[case]
    with world.site(*ways) as site:
        world.fetched(site)
    assert site.ranges() == ranges
    assert site.asked[0]["Accept-Encoding"] == "identity"
    assert len(world.slept) == len(ranges) - 1


@pytest.mark.parametrize("headers", [{"ETag": '"one"'}, {"Last-Modified": "yesterday"}])
@pytest.mark.parametrize("way", [cut, stall])
def test_a_download_that_breaks_off_goes_on_from_its_last_byte(world, way, headers):
    with world.site(way(100_000), way(50_000), good, file=File(CONTENT, headers)) as site:
        world.fetched(site, stall=20.0 if way is cut else 0.5)
    assert site.ranges() == [None, REST, "bytes=150000-"]
    assert [asked.get("If-Range") for asked in site.asked] == [None, *list(headers.values()) * 2]
    assert len(world.slept) == 2


def changing(request, file, headers=None):
    """Break off, and have another file afterwards."""
    CUT(request, file)
    file.content, file.headers = OTHER, file.headers if headers is None else headers


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"weak"'}])
def test_without_proof_that_a_part_is_still_good_it_is_not_continued(world, headers):
    with world.site(changing, good, file=File(CONTENT, headers)) as site:
        world.fails(site, "broke off", retries=0, left=PART)  # in the next run
        world.fetched(site, OTHER)
    assert site.ranges() == [None, None]
    world.clear()
    with world.site(changing, good, file=File(CONTENT, headers)) as site:  # in the same run
        world.fetched(site, OTHER)
    assert site.ranges() == [None, None]
    assert not any("If-Range" in asked for asked in site.asked)


@pytest.mark.parametrize("name", ["ETag", "Last-Modified"])
@pytest.mark.parametrize("lies", [False, True])
def test_a_file_that_changes_between_two_parts_is_never_mixed(world, name, lies):
    def first(request, file):
        changing(request, file, {name: '"two"'})

    lying = [wrong_range("bytes 100000-400003/400004", OTHER[100_000:])] * lies
    with world.site(first, *lying, good, file=File(CONTENT, {name: '"one"'})) as site:
        world.fetched(site, OTHER)
    assert site.ranges()[1] == REST


def test_the_next_run_goes_on_where_the_last_one_gave_up(world):
    with world.site(CUT, cut(50_000), good) as site:
        world.fails(site, r"broke off .* 2 times; .*at byte 150,000", left=PART, retries=1)
        world.fetched(site)
    assert site.ranges() == [None, REST, "bytes=150000-"]


def test_a_part_of_another_address_is_not_continued(world):
    with world.site(CUT) as site:
        world.fails(site, "broke off", retries=0, left=PART)
    with world.site(good, file=File(OTHER)) as site:
        world.fetched(site, OTHER)
    assert site.ranges() == [None]


def test_what_is_whole_already_is_not_asked_for_again(world):
    def killed(path):
        raise KeyboardInterrupt

    with world.site(good) as site:
        with pytest.raises(KeyboardInterrupt):
            world.fetch(site, check=killed)
        world.fetched(site)
    assert len(site.asked) == 1


def test_attempts_that_bring_something_do_not_count(world):
    content = CONTENT[:4] + random.Random(3).randbytes(9 << 20)
    with world.site(cut(2 << 20), file=File(content)) as site:
        world.fetched(site, content, retries=1)
    assert len(site.asked) == 5


# --- refused, busy, unreachable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 304])
def test_a_refusal_is_final_and_names_the_status(world, status):
    with world.site(says(status)) as site:
        world.fails(site, f"expected status 200, found {status}")
    assert len(site.asked) == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_and_again_but_not_for_ever(world, status):
    with world.site(*[says(status)] * 6, good) as site:
        world.fails(site, f"expected status 200, found {status}, 4 times")
        assert len(site.asked) == 4
        world.fetched(site)
    assert len(site.asked) == 7


def test_the_pauses_double_with_jitter(world):
    with world.site(says(503)) as site:
        world.fails(site, "503", retries=9)
    assert len(world.slept) == 9
    for at, pause in enumerate(world.slept):
        assert 0.5 <= pause / min(60, 2**at) <= 1.5
    assert len({round(pause / 2**at, 3) for at, pause in enumerate(world.slept)}) > 5


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_server_that_names_a_time_to_wait_is_heard(world, form):
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    busy = says(503, Retry_After="100" if form == "seconds" else date)
    with world.site(busy, says(503, Retry_After="3600"), good) as site:
        world.fails(site, "asks to wait 3,600 s")
        assert len(world.slept) == 1
        assert 90 < world.slept[0] <= 100
        world.fetched(site)
    assert len(site.asked) == 3


def test_an_address_where_nobody_answers_is_tried_again_and_told_with_the_setting(world):
    with world.site(good) as site:
        pass
    world.fails(site, r"download failed .*4 times; .*`sources`")
    assert len(world.slept) == 3


def test_a_certificate_that_nobody_vouches_for_is_final(world, monkeypatch):
    monkeypatch.delenv(CERTIFICATES)
    with world.site(good) as site:
        world.fails(site, "CERTIFICATE_VERIFY_FAILED")
    assert (site.asked, world.slept) == ([], [])


# --- what is no data

PAGES = {
    "html by its type": says(200, b"whatever", Content_Type="text/html; charset=utf-8"),
    "xml by its type": says(200, b"whatever", Content_Type="application/xml"),
    "html": says(200, PAGE, Content_Type="application/octet-stream"),
    "xml": says(200, b'\xef\xbb\xbf\n<?xml version="1.0"?><Error/>'),
    "utf-16": says(200, PAGE.decode().encode("utf-16")),
}


@pytest.mark.parametrize("way", PAGES)
@pytest.mark.parametrize("name", ["x.zip", "x.tsv.gz", "x.deu"])
def test_a_page_never_becomes_data_though_the_status_is_200(world, way, name):
    with world.site(PAGES[way]) as site:
        world.fails(site, "web page", name=name)
    assert len(site.asked) == 1


@pytest.mark.parametrize("name", ["x.zip", "x.gz", "x.bz2", "x.tar", "x.tgz"])
def test_an_archive_begins_as_its_name_says(world, name):
    for content in (b"just text\n" * 1000, b""):
        with world.site(good, file=File(content)) as site:
            world.fails(site, "not a", name=name)


def test_text_may_begin_with_anything_but_a_page(world, tmp_path):
    text = b"<b>bold</b>\tfett\n" * 100
    with world.site(good, file=File(text)) as site:
        world.fetched(site, text, name="x.tsv")
    (tmp_path / "y.tsv").write_bytes(PAGE)  # nor from a directory
    with pytest.raises(EmsError, match=r"y\.tsv: expected a file, found a web page"):
        fetch(str(tmp_path / "y.tsv"), tmp_path / "new" / "y.tsv", lambda path: {})
    assert list((tmp_path / "new").iterdir()) == []


def test_a_page_in_the_place_of_the_rest_leaves_what_is_here(world):
    page = says(200, PAGE, Content_Type="text/html")
    with world.site(CUT, page, good) as site:
        world.fails(site, "web page", left=PART)
        world.fetched(site)
    assert site.ranges() == [None, REST, REST]


def test_a_file_that_the_server_packs_on_its_way_is_refused_unless_that_is_its_form(world):
    packed = File(b"\x1f\x8b" + bytes(500), {"Content-Encoding": "gzip"})
    with world.site(good, file=packed) as site:
        world.fails(site, r"the server compresses it \(gzip\)", name="x.tsv")
        world.fetched(site, packed.content, name="x.tsv.gz")


# --- the lock and the disk


def test_a_file_that_changes_under_its_lock_is_an_error_and_nothing_is_lost(world):
    with world.site(good) as site:
        world.fetched(site)
        lock = world.out.with_name("x.zip.lock.json")
        before = lock.read_bytes()
        site.file.content, site.file.headers = OTHER, {"ETag": '"two"'}
        world.fails(site, r"the source changed.*delete .*x\.zip\.lock\.json", left=world.files())
        assert (world.out.read_bytes(), lock.read_bytes()) == (CONTENT, before)
        site.file.content = CONTENT  # the server was mended
        world.fetched(site)


def test_a_full_disk_is_one_line_with_what_to_do(tmp_path):
    class Full(io.FileIO):
        def write(self, block):
            raise OSError(errno.ENOSPC, "No space left on device")

    part = PartialFile(
        "https://h/x.zip", tmp_path / "x.zip", Full(part_path(tmp_path / "x.zip"), "w+")
    )
    with pytest.raises(EmsError, match=r"x\.zip\..*part: No space left on device; free some space"):
        part.write(b"PK")
