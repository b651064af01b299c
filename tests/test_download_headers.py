"""Laws of what a server says in its headers: the right bytes, or one short line that says why."""

import email.utils
import json
import random
import re

import pytest
from made.web import CONTENT, PART, World, cut, good

from ems.base.errors import EmsError
from ems.corpora.download import Downloads, _retry_after, part_path
from ems.corpora.fetch import fetch

DIGITS = "9" * 5_000  # more than Python turns into a number
REST = {"Content-Length": str(len(CONTENT) - 100_000)}


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def answer(status, body, **headers):
    """These headers as they are, with the file's ETag, and a body after which the server goes."""

    def way(request, file):
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        lines = [f"HTTP/1.1 {status} x", 'ETag: "one"', "Connection: close", *lines, "", ""]
        request.wfile.write("\r\n".join(lines).encode("latin-1") + body)
        request.close_connection = True

    return way


UNREADABLE = ["", "-5", "+5", "5.0", "1e5", "1e400", "0x10", "1_0", "nan", "x", "²"]


@pytest.mark.parametrize("length", [*UNREADABLE, DIGITS, "9" * 19, f"-{DIGITS}"])
def test_a_file_whose_length_cannot_be_read_is_not_taken_to_be_whole(world, length):
    way = answer(200, CONTENT[:100_000], Content_Length=length)
    expected = f"expected a number of bytes as Content-Length, found '{length[:100]}"
    with world.site(way, way, way, good) as site:
        world.fails(site, re.escape(expected), retries=1)
        world.fetched(site)


def test_a_length_that_is_there_twice_counts_once_and_two_lengths_are_none(world):
    length = str(len(CONTENT))
    with world.site(answer(200, CONTENT, Content_Length="5, 6")) as site:
        world.fails(site, "Content-Length contained multiple unmatching values")
    with world.site(answer(200, CONTENT, Content_Length=f"{length}, {length}")) as site:
        world.fetched(site)


@pytest.mark.parametrize(
    "content_range",
    [
        DIGITS,
        f"bytes {DIGITS}-1/2",
        f"bytes 100000-1/{DIGITS}",
        f"bytes 0-{DIGITS}/*",
        "bytes ²-1/2",
    ],
)
def test_a_range_that_cannot_be_read_is_taken_from_zero_and_shown_in_short(world, content_range):
    way = answer(206, CONTENT[100_000:], **REST, Content_Range=content_range)
    with world.site(cut(100_000), way, good) as site:
        message = world.fails(site, re.escape("server gave " + content_range[:20]), retries=1)
        assert len(message) < 600
        world.fetched(site)
    assert site.ranges() == [None, "bytes=100000-", None]


NO_TIMES = ["", "-5", "+5", "1e400", "1e5", "nan", "x", DIGITS, "9" * 10, f"-{DIGITS}", "٣"]
NO_DATES = [
    "Fri, 31 Dec 99999 23:59:59 GMT",
    "01 Jan 9999999999 00:00:00 -0000",
    f"Mon, 01 Jan {DIGITS} 00:00:00 GMT",
    "Mon, 99 Jan 2026 99:99:99 GMT",
    "Mon",
    ",",
    ":::",
]
PAST = ["Mon, 01 Jan 0001 00:00:00 GMT", "0", "Thu, 01 Jan 1970 00:00:00 GMT"]


def test_a_time_to_wait_that_cannot_be_read_is_as_none_and_one_that_is_over_is_no_wait(world):
    texts = [*NO_TIMES, *NO_DATES]
    assert [_retry_after(text) for text in texts] == [None] * len(texts)
    assert [_retry_after(text) for text in PAST] == [0] * len(PAST)
    ways = [answer(503, b"", Content_Length=0, Retry_After=text.strip("٣")) for text in texts]
    with world.site(*ways, good) as site:
        world.fetched(site, retries=len(ways), pause=1e-9)
    assert len(world.slept) == len(ways)
    assert 0 < max(world.slept) < 2


def test_no_text_at_all_breaks_the_reading_of_a_time_to_wait():
    draw, words = random.Random(1), email.utils.formatdate(usegmt=True).split()
    words += ["-", ":", ",", "+", "0", DIGITS, "-0000", "+9999", "99999", "Jan", "(", '"', "\0", ""]
    for _ in range(20_000):
        wait = _retry_after(draw.choice(["", " "]).join(draw.choices(words, k=draw.randint(0, 8))))
        assert wait is None or wait >= 0


@pytest.mark.parametrize(
    "location",
    ["http://[::1", "http://h:99999/", "http://h:x/", "²", "http://./", f"http://{'a' * 300}/"],
)
def test_a_redirection_to_no_address_is_final_and_one_line(world, location):
    with world.site(answer(302, b"", Content_Length=0, Location=location)) as site:
        world.fails(site, "download failed .*; check the address")
    assert len(site.asked) == 1


@pytest.mark.parametrize("name", ["Content_Type", "Content_Encoding"])
def test_a_long_header_is_shown_in_short(world, name):
    with world.site(answer(200, b"", **{name: "html" + "x" * 60_000})) as site:
        assert len(world.fails(site, "html")) < 500


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("http://[::1/x.zip", r"x\.zip: not a valid address .*; check `sources`"),
        ("file://[/x.zip", r"x\.zip: not a valid address .*; check `sources`"),
        (f"http://{'a' * 300}/x.zip", "download failed"),  # longer than the name of a file
    ],
)
def test_a_source_that_is_no_address_is_one_line(tmp_path, location, expected):
    downloads = Downloads(slots=tmp_path / "slots", retries=0)
    with pytest.raises(EmsError, match=expected):
        fetch(location, tmp_path / "x.zip", lambda path: {}, downloads=downloads)


WRONG = [
    *([], 5, "x", None),
    *({"url": None}, {"url": 1}, {"length": "5"}, {"length": 1.5}, {"etag": ["x"]}),
]


@pytest.mark.parametrize("memory", WRONG, ids=str)
def test_what_is_remembered_of_a_part_in_another_form_is_nothing(world, memory):
    with world.site(cut(100_000)) as site:
        world.fails(site, "broke off", retries=0, left=PART)
        path = part_path(world.out).with_name(PART[1])
        known = json.loads(path.read_text())
        path.write_text(json.dumps({**known, **memory} if isinstance(memory, dict) else memory))
        site.ways[:] = [good]
        world.fetched(site)
    assert site.ranges() == [None, None]
