"""Laws of downloading with real processes: what a kill leaves, how many connections there are."""

import os
import subprocess
import sys
import threading
import zipfile

import pytest
import yaml
from cli_made import Cli
from https_made import File, good, https_site, slow

from ems.corpora.download import Downloads
from ems.corpora.fetch import fetch
from ems.corpora.slots import held, slot

LINES = 60_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A Moses zip of some megabytes."""
    path = tmp_path_factory.mktemp("moses") / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as whole:
        for code in ("de", "en"):
            text = "".join(f"{code} sentence {at} of the corpus\n" for at in range(LINES))
            whole.writestr(f"C.de-en.{code}", text)
    return path.read_bytes()


@pytest.fixture
def ems(tmp_path, monkeypatch):
    """The command line in a folder where at most two connections are allowed to a host."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "cert.pem"))
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
    command = [sys.executable, "-m", "ems.cli", *job(site, out)]
    return subprocess.Popen(command, cwd=ems.folder, stderr=subprocess.PIPE, text=True)


def test_after_kill_9_in_the_middle_the_next_run_asks_for_the_rest_only(ems, archive, tmp_path):
    _limit(ems, 1)  # so the second run needs the connection that the killed one held
    out, part = tmp_path / "got" / "x.zip", tmp_path / "got" / ".x.zip.part"
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
        told = [process.communicate()[1] for process in jobs]
    assert [process.returncode for process in jobs] == [0] * 5, told
    assert all(out.read_bytes() == archive for out in outs)
    assert site.most == 2
    assert sum("waiting for one of the 2 connections" in text for text in told) >= 1
    assert sorted(os.listdir(ems.folder / "data" / ".downloads"))[0].startswith("127.0.0.1_")


def test_a_slot_is_free_again_after_an_error_inside_it(tmp_path):
    for _ in range(3):
        with pytest.raises(KeyError), slot("h:1", 1, tmp_path):
            raise KeyError
    with slot("h:1", 2, tmp_path), slot("h:1", 2, tmp_path), slot("other", 1, tmp_path):
        pass


def test_two_downloads_to_one_place_never_write_into_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "cert.pem"))
    content, out, entries = b"PK\x03\x04" + bytes(1 << 20), tmp_path / "data" / "x.zip", []
    how = Downloads(slots=tmp_path / "slots")
    with https_site(tmp_path, File(content), [slow]) as site:

        def run():
            entries.append(fetch(f"{site.address}/x.zip", out, lambda path: {}, True, how))

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(entries) == 3
    assert out.read_bytes() == content
    assert site.most == 1
    assert sorted(path.name for path in out.parent.iterdir()) == ["x.zip", "x.zip.lock.json"]


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
