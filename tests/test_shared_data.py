"""A data folder that several processes or machines fill at the same time.

A `sitecustomize.py`, loaded before EMS, imitates a network file system: renames and fsync take up
to 0.3 s, `flock` is unknown or sees only its own machine, and the test gives the machine's name.
"""

import errno
import json
import os
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import copy_project
from made.cli import Cli, wait_for
from made.web import CERTIFICATES, CONTENT, File, World, good, https_site, slow, stall

from ems.base.files import sha256_file
from ems.base.progress import Progress
from ems.corpora.demo.mirror import MARK
from ems.corpora.slots import alone, held
from ems.train.job import claimed

NETWORK = """
import errno, fcntl, os, random, socket, time

def late(call):
    def called(*words, **names):
        time.sleep(random.uniform(0, 0.3))
        return call(*words, **names)
    return called

os.replace, os.rename, os.fsync = late(os.replace), late(os.rename), late(os.fsync)
SHARED, LOCKS = os.environ["TEST_SHARED"], os.environ["TEST_LOCKS"]
real = fcntl.flock

def flock(file, how):
    handle = file if isinstance(file, int) else file.fileno()
    if LOCKS == "real" or not os.readlink(f"/proc/self/fd/{handle}").startswith(SHARED):
        return real(file, how)
    if LOCKS == "none":
        raise OSError(errno.ENOLCK, "No locks available")

fcntl.flock = flock  # LOCKS "own": every machine gets every lock
if machine := os.environ.get("TEST_MACHINE"):
    socket.gethostname = lambda: machine
"""
CORPUS = "".join(f"Sentence {at} of a corpus.\n" for at in range(60_000)).encode()


@pytest.mark.slow
def test_two_snakemakes_that_share_a_data_folder_fetch_each_file_once(tmp_path):
    """Both plan to fetch everything before any file exists; a third in one clone is refused."""
    data = tmp_path / "data"
    clones, mirror = [copy_project(tmp_path / name) for name in "ab"], data / "embedded"
    for project in clones:
        project.edit("config.yaml", "data: data #", f"data: {data} #")
    with alone(mirror, mirror / "manifest.json"):
        runs = [project.start("snakemake", "data") for project in clones]
        logs = [project.folder / "started.log" for project in clones]
        for log, run in zip(logs, runs, strict=True):
            wait_for(lambda log=log: "rule demo_mirror:" in log.read_text(), run)
        refused = clones[0].snakemake("data", expect=1)
    assert "cannot be locked" in refused
    assert "--unlock" in refused
    assert [run.wait() for run in runs] == [0, 0], [log.read_text() for log in logs]
    after = [project.snakemake("-n", "data") for project in clones]
    assert all("Nothing to be done" in output for output in after)
    one, other = (log.read_text() for log in logs)
    planned = len(re.findall("rule (?:demo_mirror|fetch\\w*):", one))
    assert planned == 4  # for the mirror, two corpora and a set
    kept = re.findall(r"(\S+): another process has just written it; kept", one + other)
    assert len(kept) == len({*kept}) >= planned
    assert [path.name for path in data.rglob(".*") if path.name not in (".downloads", MARK)] == []


# --- two machines, and file systems without locks
@pytest.fixture
def site(tmp_path, monkeypatch):
    """A slow site with one text file."""
    monkeypatch.setenv(CERTIFICATES, str(tmp_path / "cert.pem"))
    file = File(CORPUS, {"ETag": '"one"', "Content-Type": "text/plain"})
    with https_site(tmp_path, file, [slow]) as site:
        yield site


@pytest.fixture
def fetch(tmp_path, site):
    """Start `ems fetch` of the file on a named machine."""
    ems, data = Cli(tmp_path), tmp_path / "shared"
    words = ["fetch", "--format", "text", "--source", site.address, "--corpus", "C", "--pair", "de"]
    words += ["--accept", "made of one sentence"]
    (tmp_path / "network").mkdir()
    (tmp_path / "network/sitecustomize.py").write_text(NETWORK)
    paths = [str(tmp_path / "network"), *filter(None, [os.environ.get("PYTHONPATH")])]
    network = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TEST_SHARED": str(data)}

    def start(locks, machine, name="de.txt", *more):
        own = tmp_path / machine  # a temporary folder
        own.mkdir(exist_ok=True)
        names = {"TEST_LOCKS": locks, "TEST_MACHINE": machine, "TMPDIR": str(own)}
        options = {"env": network | names | {"NO_PROXY": "127.0.0.1"}, "text": True}
        out = data / name
        job = (*words, "--version", "v1", "--out", out, *more)
        return ems.start(*job, stderr=subprocess.PIPE, **options)

    def limit(per_host):
        path = ems.folder / "config.yaml"
        path.write_text(path.read_text().replace("{per_host: 4", f"{{per_host: {per_host}"))

    start.out, start.limit = data / "de.txt", limit
    return start


def is_whole(out):
    lock = json.loads((out.parent / "de.txt.lock.json").read_text())
    return out.read_bytes() == CORPUS and lock["bytes"] == len(CORPUS)


@pytest.mark.slow
@pytest.mark.parametrize("locks", ["none", "own"])
def test_two_machines_never_write_into_one_file(fetch, site, locks):
    """Without locks between them both fetch; one may be overtaken at its last step."""
    runs = [fetch(locks, machine) for machine in ("node1", "node2")]
    logs = [run.communicate()[1] for run in runs]
    ended = [run.returncode for run in runs]
    assert 0 in ended
    for code, log in zip(ended, logs, strict=True):
        assert code == 0 or "it vanished while it was written" in log, log
    assert is_whole(fetch.out)
    assert len(site.asked) == 2
    assert all(headers.get("Range") is None for headers in site.asked)


@pytest.mark.slow
def test_processes_of_one_machine_wait_even_without_locks_and_continue_a_killed_one(fetch, site):
    fetch.limit(1)  # the second process needs the connection of the killed one
    site.ways[:] = [stall(len(CORPUS) // 4), good]
    first = fetch("none", "node1")
    part = fetch.out.with_name(".de.txt.on-node1.part")
    wait_for(lambda: part.exists() and part.stat().st_size > len(CORPUS) // 10, first)
    second = fetch("none", "node1")
    for line in second.stderr:
        if "another process is writing it; waiting" in line:
            break
    first.kill()
    first.communicate()
    log = second.communicate()[1]
    assert second.returncode == 0, log
    assert "bytes are here already" in log
    assert [headers.get("Range") is None for headers in site.asked] == [True, False]
    assert is_whole(fetch.out)
    left = sorted(path.name for path in fetch.out.parent.iterdir())
    assert left == ["de.txt", "de.txt.lock.json"]


def test_a_folder_that_another_process_writes_meanwhile_is_kept(tmp_path):
    ems, out = Cli(tmp_path), tmp_path / "demo"
    with alone(out, out / "manifest.json"):
        run = ems.start("demo-mirror", "--out", str(out), stderr=subprocess.PIPE, text=True)
        for line in run.stderr:
            if "another process is writing it; waiting" in line:
                break
        out.mkdir()
        (out / "manifest.json").write_text("{}")
    log = run.communicate()[1]
    assert run.returncode == 0, log
    assert "another process has just written it; kept" in log
    assert [path.name for path in out.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("look", [0, 1])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_that_another_process_removes_is_taken_again(tmp_path, monkeypatch, look, replaced):
    path, looks, stat = tmp_path / "x", iter(range(100)), Path.stat

    def removed(self, **options):
        if self == path and os.path.isfile(path) and next(looks) == look:
            os.unlink(path)
            if replaced:
                path.write_bytes(b"of another process")
        return stat(self, **options)

    monkeypatch.setattr(Path, "stat", removed)
    with held(path) as handle:
        assert os.path.samestat(os.stat(path), os.fstat(handle.fileno()))


def test_a_target_older_than_the_plan_is_written_again(tmp_path, monkeypatch):
    last = tmp_path / "x"
    last.write_text("x")
    for planned, made in ((None, False), (last.stat().st_mtime + 1, False), (1.0, True)):
        if planned:
            monkeypatch.setenv("EMS_PLANNED", str(planned))
        with alone(last, last) as found:
            assert found is made
    monkeypatch.setenv("EMS_PLANNED", "1.0")
    with alone(Path(tmp_path / "y"), last) as found:  # a lock of a file that was deleted
        assert found is False


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_training_starts_on_a_file_system_without_locks(tmp_path, monkeypatch, caplog, number):
    def refused(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refused)
    with claimed(tmp_path / "state"):
        assert (tmp_path / "state" / "lock").exists()
    assert "no locks in this file system" in caplog.text
    assert not (tmp_path / "state").exists()


# --- connections
FILES = "de", "en", "fr", "es", "it"


def together(fetch, receipt):
    """Start one job for all files."""
    more = ("--pair", *FILES[1:], "--receipt", receipt)
    return fetch("real", "node1", "{pair}.txt", *more)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 5])
def test_processes_together_never_exceed_the_connections_to_a_host(fetch, site, tmp_path, jobs):
    full = threading.Event()  # two connections are open

    def crowded(request, file):
        with site.change:
            if site.change.wait_for(lambda: site.active >= 2 or full.is_set(), timeout=60):
                full.set()
            site.change.wait_for(lambda: site.active >= 3, timeout=1)  # a third would come now
        good(request, file)

    site.ways[:] = [crowded]
    fetch.limit(2)
    if jobs == 1:
        runs = [together(fetch, tmp_path / "receipt")]
    else:
        runs = [fetch("real", "node1", f"{number}/de.txt") for number in range(jobs)]
    logs = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0] * jobs, logs
    assert site.most == 2
    assert len(site.asked) == 5
    assert any("waiting for one of the 2 connections" in log for log in logs) == (jobs > 1)


@pytest.mark.slow
def test_a_killed_job_of_many_files_leaves_no_worker_and_fetches_only_the_rest(
    fetch, site, tmp_path
):
    receipt = tmp_path / "receipt.json"
    fetch.limit(2)
    site.ways[:] = [good, good, stall(len(CORPUS) // 4), stall(0), good]
    first = together(fetch, receipt)
    wait_for(lambda: len(list(fetch.out.parent.glob("*.lock.json"))) == 2, first)
    wait_for(lambda: len(site.asked) == 4, first)
    first.kill()
    first.communicate()
    second = together(fetch, receipt)  # would wait for a worker that is left
    log = second.communicate()[1]
    assert second.returncode == 0, log
    assert "C/v1: 5 files" in log
    assert "(2 were here)" in log
    assert len(site.asked) == 4 + 3
    places = [fetch.out.with_name(f"{name}.txt") for name in FILES]
    assert [path.read_bytes() for path in places] == [CORPUS] * 5
    assert json.loads(receipt.read_text()) == {str(path): sha256_file(path) for path in places}


def test_two_downloads_to_one_file_never_mix(tmp_path, monkeypatch):
    world = World(tmp_path, monkeypatch)
    with world.site(slow) as site, ThreadPoolExecutor(3) as pool:
        entries = list(pool.map(lambda _: world.fetch(site), range(3)))
    assert entries == entries[:1] * 3
    assert world.out.read_bytes() == CONTENT
    assert site.most == 1
    assert world.files() == ["x.zip", "x.zip.lock.json"]


def test_bytes_from_an_earlier_run_count_for_the_share_but_not_the_rate():
    progress = Progress("download x.zip", 1000, "bytes", before=500)
    progress.add(100)
    line = progress.line(progress.started + 1)
    assert line == "download x.zip: 600/1,000 bytes (60 %), 100 bytes/s, ETA 0:04"
