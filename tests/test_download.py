"""Downloads: whatever a server does ends in the right bytes or in one clear error."""

import email.utils
import errno
import io
import json
import random
import re
import time
from itertools import product

import pytest
from made.web import CERTIFICATES, CONTENT, File, World, _send, good, stall

from ems.base.errors import EmsError
from ems.corpora.download import PartialFile, _retry_after, part_path
from ems.corpora.slots import MACHINE

OTHER = b"PK\x03\x04" + random.Random(2).randbytes(400_000)  # of the same length


PART = [f".x.zip.{MACHINE}.part", f".x.zip.{MACHINE}.part.json"]


def cut(count):
    """Close the connection after `count` bytes of those promised."""
    return lambda request, file: good(request, file, until=count)


def no_ranges(request, file):
    """200 and everything, whatever was asked for."""
    _send(request, 200, file.content, file.headers)


def says(status, body=b"", **headers):
    """A fixed answer; `_` in the names of headers stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request, file: _send(request, status, body, named)


def wrong_range(content_range, body=None):
    """206 of something else than was asked for."""

    def way(request, file):
        _send(request, 206, body or file.content, {"Content-Range": content_range, **file.headers})

    return way


def chunked(until=None):
    """In chunks, without a length; broken off after `until` of them."""

    def way(request, file):
        request.head(200, {"Transfer-Encoding": "chunked", **file.headers})
        pieces = [file.content[at : at + 50_000] for at in range(0, len(file.content), 50_000)]
        for piece in pieces[:until]:
            request.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if until is None:
            request.wfile.write(b"0\r\n\r\n")

    return way


PAGE = b"<!DOCTYPE html>\n<html><body>Service unavailable</body></html>\n"
CUT, REST = cut(100_000), "bytes=100000-"  # what the first attempt brings, what is asked for next


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


# --- interrupted
DIGITS = "9" * 5_000  # more than Python turns into a number
WRONG = ["bytes 0-400003/400004", "bytes 99999-400003/400004", "bytes 100000-400003/400005"]
WRONG += [f"bytes {DIGITS}-1/2", f"bytes 100000-1/{DIGITS}", f"bytes 0-{DIGITS}/*", DIGITS]
WRONG += ["bytes ²-1/2", "x", ""]
SOME = wrong_range("bytes 100000-199999/400004", CONTENT[100_000:200_000])
RECOVERS = {  # what the server does one after the other, the ranges that it is asked for
    "whole": ([good], [None]),
    "less than the rest": ([CUT, SOME, good], [None, REST, "bytes=200000-"]),
    "200 for a range": ([CUT, no_ranges], [None, REST]),
    "206 without a range": ([CUT, says(206), good], [None, REST, None]),
    "416": ([CUT, says(416), good], [None, REST, None]),
    "in chunks": ([chunked()], [None]),
    "not all chunks": ([chunked(3), chunked()], [None, "bytes=150000-"]),
}
for size, text in product((0, 100_000), WRONG):
    ways = [CUT, wrong_range(text, OTHER[size:] if size else None), good]
    RECOVERS[f"206 of {text[:30]} from {size}"] = (ways, [None, REST, None])


@pytest.mark.parametrize("case", RECOVERS)
def test_whatever_is_sent_the_file_is_complete_in_the_end(world, case, logged, caplog):
    ways, ranges = RECOVERS[case]
    with world.site(*ways) as site:
        world.fetched(site)
    assert max(map(len, caplog.messages), default=0) < 600  # long headers are shortened
    assert site.ranges() == ranges
    assert site.asked[0]["Accept-Encoding"] == "identity"
    assert len(world.slept) == len(ranges) - 1


@pytest.mark.parametrize("headers", [{"ETag": '"one"'}, {"Last-Modified": "yesterday"}])
@pytest.mark.parametrize("way", [cut, stall])
def test_an_interrupted_download_resumes_at_its_last_byte(world, way, headers):
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
def test_a_part_is_not_continued_without_proof_that_the_file_is_unchanged(world, headers):
    with world.site(changing, good, file=File(CONTENT, headers)) as site:
        world.fails(site, "broke off.*later, check", retries=0)  # in the next run
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


def test_the_next_run_resumes_the_same_address_only(world):
    with world.site(CUT, cut(50_000), good) as site:
        world.fails(site, r"broke off .* 2 times; .*at byte 150,000", left=PART, retries=1)
        world.fetched(site)
    assert site.ranges() == [None, REST, "bytes=150000-"]
    world.clear()
    with world.site(CUT) as site:
        world.fails(site, "broke off", retries=0, left=PART)
    with world.site(good, file=File(OTHER)) as site:
        world.fetched(site, OTHER)
    assert site.ranges() == [None]


def test_a_complete_part_is_not_requested_again(world):
    def killed(path):
        raise KeyboardInterrupt

    with world.site(good) as site:
        with pytest.raises(KeyboardInterrupt):
            world.fetch(site, check=killed)
        world.fetched(site)
    assert len(site.asked) == 1


def test_attempts_that_make_progress_do_not_count(world):
    content = CONTENT[:4] + random.Random(3).randbytes(9 << 20)
    with world.site(cut(2 << 20), file=File(content)) as site:
        world.fetched(site, content, retries=1)
    assert len(site.asked) == 5


# --- slow, endless
def drip(head, drop=b"a", status=b"HTTP/1.1 200 x\r\n"):
    """Send a beginning, then a little again and again without end."""

    def way(request, file):
        request.wfile.write(status + head)
        while not request.server.site.closing.wait(0.02):
            request.wfile.write(drop)

    return way


BY_CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n"
DRIPS = {
    "a header": drip(b"X: "),
    "headers": drip(b"", b"X: y\r\n"),
    "a body": drip(b"Content-Length: 400004\r\n\r\n" + CONTENT[:30]),
    "a body without a length": drip(b"\r\n" + CONTENT[:30]),
    "the size of a chunk": drip(BY_CHUNKS + b"5;", b"a"),
    "trailers": drip(BY_CHUNKS + b"0\r\n", b"X: y\r\n"),
}


@pytest.mark.parametrize("name", DRIPS)
def test_a_server_that_sends_a_little_now_and_then_ends_an_attempt(world, name):
    with world.site(DRIPS[name], good) as site:
        expected = r"(no header or data in 0\.3 s|\d+ bytes/s, less than 1,000|than 100 headers)"
        world.fails(site, expected, retries=0, stall=0.3)
        world.fetched(site)


@pytest.mark.parametrize("length", [b"", b"Content-Length: 4\r\n", b"Content-Length: 99\r\n"])
def test_the_body_of_a_redirection_is_not_read(world, length):
    status = b"HTTP/1.1 302 x\r\nLocation: /x.zip\r\n%s\r\n" % length
    with world.site(drip(b"", bytes(99), status), good) as site:
        world.fetched(site, retries=0)


def test_an_answer_that_ends_within_its_head_is_no_empty_file(world):
    with world.site(lambda request, file: request.wfile.write(b"HTTP/1.1 200 x\r\nConte")) as site:
        world.fails(site, "neither a length nor a byte, 4 times", name="x.tsv")


LONGER = f"Content-Length: {len(CONTENT) - 5}\r\n".encode() + BY_CHUNKS
ENDLESS = {
    "an announced length": (good, {"largest_gb": 4e-4}, r"larger than .* 0\.0004 GB; check"),
    "no end": (drip(b"\r\n", bytes(9999)), {"largest_gb": 1e-4}, "larger than downloads.largest"),
    "more than announced": (drip(LONGER, b"186a0\r\n%s\r\n" % bytes(100_000)), {}, "more than the"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_download_without_end_or_too_large_stops_and_leaves_nothing(world, name):
    way, settings, expected = ENDLESS[name]
    with world.site(way) as site:
        world.fails(site, expected, name="x.tsv", **settings)


# --- refused, busy, unreachable
@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 304])
def test_a_refusal_is_final_and_names_the_status(world, status):
    with world.site(says(status)) as site:
        world.fails(site, f"expected status 200, found {status}")
    assert len(site.asked) == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_server_is_retried_but_not_for_ever(world, status):
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
def test_a_retry_after_is_respected(world, form):
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    busy = says(503, Retry_After="100" if form == "seconds" else date)
    with world.site(busy, says(503, Retry_After="3600"), good) as site:
        world.fails(site, "asks to wait 3,600 s")
        assert len(world.slept) == 1
        assert 90 < world.slept[0] <= 100
        world.fetched(site)
    assert len(site.asked) == 3


def test_no_answer_is_retried_and_an_unknown_certificate_is_final(world, monkeypatch):
    with world.site(good) as site:
        pass
    world.fails(site, r"download failed .*4 times; .*`sources`")
    assert len(world.slept) == 3
    monkeypatch.delenv(CERTIFICATES)
    with world.site(good) as site:
        world.fails(site, "CERTIFICATE_VERIFY_FAILED")
    assert (site.asked, len(world.slept)) == ([], 3)


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
def test_a_web_page_never_becomes_data_even_with_status_200(world, way, name):
    with world.site(PAGES[way]) as site:
        world.fails(site, "web page", name=name)
    assert len(site.asked) == 1


@pytest.mark.parametrize("name", ["x.zip", "x.gz", "x.bz2", "x.tar", "x.tgz"])
def test_an_archive_begins_as_its_name_says(world, name):
    for content in (b"just text\n" * 1000, b""):
        with world.site(good, file=File(content)) as site:
            world.fails(site, "not a", name=name)


def test_text_may_begin_with_anything_except_a_web_page(world):
    text = b"<b>bold</b>\tfett\n" * 100
    with world.site(good, file=File(text)) as site:
        world.fetched(site, text, name="x.tsv")


def test_a_web_page_instead_of_the_rest_keeps_the_part(world):
    page = says(200, PAGE, Content_Type="text/html")
    with world.site(CUT, page, good) as site:
        world.fails(site, "web page", left=PART)
        world.fetched(site)
    assert site.ranges() == [None, REST, REST]


def test_a_file_that_the_server_compresses_is_refused_unless_it_is_a_gz(world):
    packed = File(b"\x1f\x8b" + bytes(500), {"Content-Encoding": "gzip"})
    with world.site(good, file=packed) as site:
        world.fails(site, r"the server compresses it \(gzip\)", name="x.tsv")
        world.fetched(site, packed.content, name="x.tsv.gz")


def test_a_full_disk_is_one_line_with_what_to_do(tmp_path):
    class Full(io.FileIO):
        def write(self, block):
            raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "x.zip"
    part = PartialFile("https://h/x.zip", out, Full(part_path(out), "w+"))
    with pytest.raises(EmsError, match=r"x\.zip\..*part: No space left on device; free some space"):
        part.write(b"PK")


# --- headers
def answer(status, body, **headers):
    """Send exactly these headers with the file's ETag, and a body; close the connection."""

    def way(request, file):
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        lines = [f"HTTP/1.1 {status} x", 'ETag: "one"', "Connection: close", *lines, "", ""]
        request.wfile.write("\r\n".join(lines).encode("latin-1") + body)
        request.close_connection = True

    return way


UNREADABLE = ["", "-5", "+5", "5.0", "1e5", "1e400", "0x10", "1_0", "nan", "x", "²"]


@pytest.mark.parametrize("length", [*UNREADABLE, DIGITS, "9" * 19, f"-{DIGITS}"])
def test_a_file_with_an_invalid_length_is_not_complete(world, length):
    way = answer(200, CONTENT[:100_000], Content_Length=length)
    expected = f"expected a number of bytes as Content-Length, found '{length[:100]}"
    with world.site(way, way, way, good) as site:
        world.fails(site, re.escape(expected), retries=1)
        world.fetched(site)


def test_a_repeated_length_counts_once_and_two_lengths_are_an_error(world):
    length = str(len(CONTENT))
    with world.site(answer(200, CONTENT, Content_Length="5, 6")) as site:
        world.fails(site, "Content-Length contained multiple unmatching values")
    with world.site(answer(200, CONTENT, Content_Length=f"{length}, {length}")) as site:
        world.fetched(site)


NO_TIMES = ["", "-5", "+5", "1e400", "1e5", "nan", "x", DIGITS, "9" * 10, f"-{DIGITS}", "٣"]
NO_TIMES += ["Fri, 31 Dec 99999 23:59:59 GMT", "01 Jan 9999999999 00:00:00 -0000", "Mon", ",", ":"]
NO_TIMES += [f"Mon, 01 Jan {DIGITS} 00:00:00 GMT", "Mon, 99 Jan 2026 99:99:99 GMT"]
PAST = ["Mon, 01 Jan 0001 00:00:00 GMT", "0", "Thu, 01 Jan 1970 00:00:00 GMT"]


def test_an_invalid_or_past_retry_after_is_no_wait(world):
    assert [_retry_after(text) for text in NO_TIMES] == [None] * len(NO_TIMES)
    assert [_retry_after(text) for text in PAST] == [0] * len(PAST)
    ways = [answer(503, b"", Content_Length=0, Retry_After=text.strip("٣")) for text in NO_TIMES]
    with world.site(*ways, good) as site:
        world.fetched(site, retries=len(ways), pause=1e-9)
    assert len(world.slept) == len(ways)
    assert 0 < max(world.slept) < 2


LOCATIONS = ["http://[::1", "http://h:99999/", "http://h:x/", "²", "http://./"]


@pytest.mark.parametrize("location", [*LOCATIONS, f"http://{'a' * 300}/"])
def test_a_redirection_to_an_invalid_address_is_final(world, location):
    with world.site(answer(302, b"", Content_Length=0, Location=location)) as site:
        world.fails(site, "download failed .*; check the address")
    assert len(site.asked) == 1


MEMORIES = [[], 5, "x", None, {"url": None}, {"url": 1}, {"length": "5"}, {"length": 1.5}]
MEMORIES += [{"etag": ["x"]}]


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_an_invalid_memory_of_a_part_is_ignored(world, memory):
    with world.site(cut(100_000)) as site:
        world.fails(site, "broke off", retries=0, left=PART)
        path = part_path(world.out).with_name(PART[1])
        known = json.loads(path.read_text())
        path.write_text(json.dumps({**known, **memory} if isinstance(memory, dict) else memory))
        site.ways[:] = [good]
        world.fetched(site)
    assert site.ranges() == [None, None]
