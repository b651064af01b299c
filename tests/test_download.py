"""Laws of downloading: whatever a server does ends in the right bytes or in one clear error."""

import email.utils
import errno
import hashlib
import io
import random
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from https_made import (
    File,
    chunked,
    cut,
    good,
    https_site,
    no_ranges,
    says,
    stall,
    wrong_range,
)

from ems.corpora.download import Downloads
from ems.corpora.fetch import fetch
from ems.corpora.part import Part, part_path
from ems.errors import EmsError
from ems.progress import Progress

CONTENT = b"PK\x03\x04" + random.Random(1).randbytes(400_000)
OTHER = b"PK\x03\x04" + random.Random(2).randbytes(400_000)  # of the same length
PAGE = b"<!DOCTYPE html>\n<html><body>Service unavailable</body></html>\n"
CERTIFICATES = "REQUESTS_CA_BUNDLE"


class World:
    """A target in an empty folder, and what the code slept."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.out, self.slept = folder, folder / "data" / "x.zip", []
        (folder / "tls").mkdir()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv(CERTIFICATES, str(folder / "tls" / "cert.pem"))
        clock = SimpleNamespace(sleep=self.slept.append, time=time.time)
        monkeypatch.setattr("ems.corpora.download.time", clock)

    @contextmanager
    def site(self, *ways, file=None):
        with https_site(self.folder / "tls", file or File(CONTENT), list(ways)) as site:
            yield site

    def fetch(self, site, name="x.zip", check=lambda path: {}, **how):
        self.out = self.out.with_name(name)
        how = Downloads(**{"retries": 3, "stall": 20.0, "slots": self.folder / "slots", **how})
        return fetch(f"{site.address}/{name}", self.out, check, True, how)

    def files(self):
        return sorted(path.name for path in self.out.parent.iterdir())

    def fetched(self, site, content=CONTENT, **how):
        """Fetch, which must end in these bytes and leave nothing but them and their lock."""
        entry = self.fetch(site, **how)
        assert self.out.read_bytes() == content
        assert (entry["bytes"], entry["sha256"]) == (
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
        assert self.files() == [self.out.name, f"{self.out.name}.lock.json"]

    def fails(self, site, expected, left=(), **how):
        """Fetch, which must end in one line that names the address, and leave nothing else."""
        with pytest.raises(EmsError, match=expected) as told:
            self.fetch(site, **how)
        assert "\n" not in str(told.value)
        assert f"{site.address}/{self.out.name}: " in str(told.value)
        assert self.files() == sorted(left)


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


# --- interrupted


def test_a_file_is_asked_for_once_as_it_is_and_whole(world):
    with world.site(good) as site:
        world.fetched(site)
    assert site.ranges() == [None]
    assert site.asked[0]["Accept-Encoding"] == "identity"
    assert world.slept == []


@pytest.mark.parametrize("headers", [{"ETag": '"one"'}, {"Last-Modified": "yesterday"}])
@pytest.mark.parametrize("way", [cut, stall])
def test_a_download_that_breaks_off_goes_on_from_its_last_byte(world, way, headers):
    with world.site(way(100_000), way(50_000), good, file=File(CONTENT, headers)) as site:
        world.fetched(site, stall=20.0 if way is cut else 1.0)
    assert site.ranges() == [None, "bytes=100000-", "bytes=150000-"]
    assert [asked.get("If-Range") for asked in site.asked] == [None, *list(headers.values()) * 2]
    assert len(world.slept) == 2


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"weak"'}])
def test_without_proof_that_a_part_is_still_good_it_is_not_continued(world, headers):
    def changing(request, file):
        cut(100_000)(request, file)
        file.content = OTHER

    with world.site(changing, good, file=File(CONTENT, headers)) as site:
        world.fails(site, "broke off", retries=0, left=[".x.zip.part", ".x.zip.part.json"])
        world.fetched(site, OTHER)
    assert site.ranges() == [None, None]
    (world.out.parent / "x.zip.lock.json").unlink()
    with world.site(changing, good, file=File(CONTENT, headers)) as site:
        world.fetched(site, OTHER)
    assert site.ranges() == [None, None]
    assert not any("If-Range" in asked for asked in site.asked)


def test_a_server_may_give_less_than_the_rest(world):
    some = wrong_range("bytes 100000-199999/400004", CONTENT[100_000:200_000])
    with world.site(cut(100_000), some, good) as site:
        world.fetched(site)
    assert site.ranges() == [None, "bytes=100000-", "bytes=200000-"]
    assert len(world.slept) == 2


def test_a_server_that_answers_200_to_a_range_is_taken_from_zero(world):
    with world.site(cut(100_000), no_ranges) as site:
        world.fetched(site)
    assert site.ranges() == [None, "bytes=100000-"]


WRONG = ["bytes 0-400003/400004", "bytes 99999-400003/400004", "bytes 100000-400003/400005", "x"]


@pytest.mark.parametrize("content_range", [*WRONG, ""])
@pytest.mark.parametrize("body", [None, OTHER[100_000:]], ids=["whole", "rest"])
def test_a_206_of_something_else_is_thrown_away(world, content_range, body):
    with world.site(cut(100_000), wrong_range(content_range, body), good) as site:
        world.fetched(site)
    assert site.ranges() == [None, "bytes=100000-", None]


@pytest.mark.parametrize("name", ["ETag", "Last-Modified"])
def test_a_file_that_changes_between_two_parts_is_never_mixed_even_if_the_server_lies(world, name):
    def changing(request, file):
        cut(100_000)(request, file)
        file.content, file.headers = OTHER, {name: '"two"'}

    lying = wrong_range("bytes 100000-400003/400004", OTHER[100_000:])
    for ways in ([changing, good], [changing, lying, good]):
        with world.site(*ways, file=File(CONTENT, {name: '"one"'})) as site:
            world.fetched(site, OTHER)
        assert site.ranges()[1] == "bytes=100000-"
        (world.out.parent / "x.zip.lock.json").unlink()


@pytest.mark.parametrize("status", [206, 416])
def test_a_range_that_is_refused_starts_from_zero(world, status):
    with world.site(cut(100_000), says(status), good) as site:
        world.fetched(site)
    assert site.ranges() == [None, "bytes=100000-", None]


def test_the_next_run_goes_on_where_the_last_one_gave_up(world):
    left = [".x.zip.part", ".x.zip.part.json"]
    with world.site(cut(100_000), cut(50_000), good) as site:
        world.fails(site, r"broke off .* 2 times; .*from byte 150,000", left=left, retries=1)
        world.fetched(site)
    assert site.ranges() == [None, "bytes=100000-", "bytes=150000-"]


def test_a_part_of_another_address_is_not_continued(world):
    with world.site(cut(100_000)) as site:
        world.fails(site, "broke off", retries=0, left=[".x.zip.part", ".x.zip.part.json"])
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


@pytest.mark.parametrize("until", [None, 3])
def test_a_body_in_chunks_is_whole_only_with_its_last_chunk(world, until):
    with world.site(chunked(until), chunked()) as site:
        world.fetched(site)
    assert len(site.asked) == (1 if until is None else 2)


def test_what_was_here_before_counts_for_the_share_and_not_for_the_rate():
    progress = Progress("download x.zip", 1000, "bytes", before=500)
    progress.add(100)
    line = progress.line(progress.started + 1)
    assert line == "download x.zip: 600/1,000 bytes (60 %), 100 bytes/s, ETA 0:04"


# --- refused, busy, unreachable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 304])
def test_a_refusal_is_final_and_names_the_status(world, status):
    with world.site(says(status)) as site:
        world.fails(site, f"expected status 200, found {status}")
    assert len(site.asked) == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_and_again_but_not_for_ever(world, status):
    with world.site(says(status), says(status), good) as site:
        world.fetched(site)
    assert len(site.asked) == 3
    with world.site(says(status)) as site:
        (world.out.parent / "x.zip.lock.json").unlink()
        world.out.unlink()
        world.fails(site, f"expected status 200, found {status}, 4 times")
    assert len(site.asked) == 4


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
    with world.site(busy, good) as site:
        world.fetched(site)
    assert len(world.slept) == 1
    assert 90 < world.slept[0] <= 100
    with world.site(says(503, Retry_After="3600")) as site:
        (world.out.parent / "x.zip.lock.json").unlink()
        world.out.unlink()
        world.fails(site, "asks to wait 3,600 s")
    assert len(site.asked) == 1


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


def test_text_may_begin_with_anything_but_a_page(world):
    text = b"<b>bold</b>\tfett\n" * 100
    with world.site(good, file=File(text)) as site:
        world.fetched(site, text, name="x.tsv")


def test_a_page_in_a_directory_is_no_data_either(tmp_path):
    (tmp_path / "x.tsv").write_bytes(PAGE)
    out = tmp_path / "data" / "x.tsv"
    with pytest.raises(EmsError, match=r"x\.tsv: expected a file, found a web page"):
        fetch(str(tmp_path / "x.tsv"), out, lambda path: {})
    assert list(out.parent.iterdir()) == []


def test_a_page_in_the_place_of_the_rest_leaves_what_is_here(world):
    page = says(200, PAGE, Content_Type="text/html")
    left = [".x.zip.part", ".x.zip.part.json"]
    with world.site(cut(100_000), page, good) as site:
        world.fails(site, "web page", left=left)
        world.fetched(site)
    assert site.ranges() == [None, "bytes=100000-", "bytes=100000-"]


def test_a_file_that_the_server_packs_on_its_way_is_refused_unless_that_is_its_form(world):
    packed = File(b"\x1f\x8b" + bytes(500), {"Content-Encoding": "gzip"})
    with world.site(good, file=packed) as site:
        world.fails(site, r"the server packs it \(gzip\)", name="x.tsv")
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

    part = Part("https://h/x.zip", tmp_path / "x.zip", Full(part_path(tmp_path / "x.zip"), "w+"))
    with pytest.raises(EmsError, match=r"x\.zip\.part: No space left on device; free some space"):
        part.write(b"PK")
