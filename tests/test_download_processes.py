"""Laws of downloading with real processes: what a kill leaves, how many connections there are."""

import os
import subprocess
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from made.cli import Cli
from made.corpora import zipped
from made.web import CERTIFICATES, CONTENT, PART, File, World, good, https_site, slow

from ems.base.progress import Progress
from ems.corpora.slots import held, slot

LINES = 60_000


@pytest.fixture(scope="module")
def archive():
    """A Moses zip of some megabytes."""
    texts = {
        f"C.de-en.{code}": "".join(f"{code} sentence {at} of the corpus\n" for at in range(LINES))
        for code in ("de", "en")
    }
    return zipped(texts.items(), zipfile.ZIP_STORED)


@pytest.fixture
def ems(tmp_path, monkeypatch):
    """The command line in a folder where at most two connections are allowed to a host."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv(CERTIFICATES, str(tmp_path / "cert.pem"))
    cli = Cli(tmp_path)
    _limit(cli, 2)
    return cli


def _limit(cli, per_host):
    path = cli.folder / "config.yaml"
    site = yaml.safe_load(path.read_text())
    site["downloads"] = {"per_host": per_host}
    path.write_text(yaml.safe_dump(site))


def job(site, out):
    fetch = ("fetch", "--source", site.address, "--corpus", "C", "--version", "v1")
    return (*fetch, "--pair", "de-en", "--out", str(out))


def start(ems, site, out):
    return ems.start(*job(site, out), stderr=subprocess.PIPE, text=True)


def test_after_kill_9_in_the_middle_the_next_run_asks_for_the_rest_only(ems, archive, tmp_path):
    _limit(ems, 1)  # so the second run needs the connection that the killed one held
    out, part = tmp_path / "got" / "x.zip", tmp_path / "got" / PART[0]
    with https_site(tmp_path, File(archive), [slow, good]) as site:
        process = start(ems, site, out)
        while not (part.exists() and part.stat().st_size > len(archive) // 10):
            assert process.poll() is None, process.stderr.read()
        process.kill()
        process.communicate()
        assert not out.exists()
        size = part.stat().st_size
        assert part.read_bytes() == archive[:size]
        assert size < len(archive)
        lines = ems(*job(site, out))
    assert site.ranges() == [None, f"bytes={size}-"]
    assert out.read_bytes() == archive
    assert sorted(path.name for path in out.parent.iterdir()) == ["x.zip", "x.zip.lock.json"]
    assert any(f"{size:,} bytes are here already" in line for line in lines)
    assert f"'pairs': {LINES}" in lines[-2]


def test_jobs_together_never_have_more_connections_to_a_host_than_allowed(ems, archive, tmp_path):
    full = threading.Event()  # two connections are there

    def crowded(request, file):
        site = request.server.site
        with site.change:
            if site.change.wait_for(lambda: site.active >= 2 or full.is_set(), timeout=60):
                full.set()
            site.change.wait_for(lambda: site.active >= 3, timeout=1)  # a third would come now
        good(request, file)

    outs = [tmp_path / "data" / f"{at}" / "x.zip" for at in range(5)]
    with https_site(tmp_path, File(archive), [crowded]) as site:
        jobs = [start(ems, site, out) for out in outs]
        logs = [process.communicate()[1] for process in jobs]
    assert [process.returncode for process in jobs] == [0] * 5, logs
    assert all(out.read_bytes() == archive for out in outs)
    assert site.most == 2
    assert sum("waiting for one of the 2 connections" in text for text in logs) >= 1
    assert sorted(os.listdir(ems.folder / "data" / ".downloads"))[0].startswith("127.0.0.1_")


def test_a_slot_is_free_again_after_an_error_inside_it(tmp_path):
    for _ in range(3):
        with pytest.raises(KeyError), slot("h:1", 1, tmp_path):
            raise KeyError
    with slot("h:1", 2, tmp_path), slot("h:1", 2, tmp_path), slot("other", 1, tmp_path):
        pass


def test_two_downloads_to_one_place_never_write_into_each_other(tmp_path, monkeypatch):
    world = World(tmp_path, monkeypatch)
    with world.site(slow) as site, ThreadPoolExecutor(3) as pool:
        entries = list(pool.map(lambda _: world.fetch(site), range(3)))
    assert entries == entries[:1] * 3
    assert world.out.read_bytes() == CONTENT
    assert site.most == 1
    assert world.files() == ["x.zip", "x.zip.lock.json"]


def test_a_held_file_that_was_moved_away_is_made_anew(tmp_path):
    path, order = tmp_path / "x.part", []

    def second():
        with held(path) as writer:
            writer.write(b"second")
            order.append("second")

    thread = threading.Thread(target=second)
    with held(path) as writer:
        thread.start()
        writer.write(b"first")
        path.rename(tmp_path / "x")
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert (tmp_path / "x").read_bytes() == b"first"
    assert path.read_bytes() == b"second"


def test_what_was_here_before_counts_for_the_share_and_not_for_the_rate():
    progress = Progress("download x.zip", 1000, "bytes", before=500)
    progress.add(100)
    line = progress.line(progress.started + 1)
    assert line == "download x.zip: 600/1,000 bytes (60 %), 100 bytes/s, ETA 0:04"
