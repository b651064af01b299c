"""Laws of a data folder that several processes, or several machines, fill at the same time.

A network file system is imitated by a `sitecustomize.py` that is loaded before anything of EMS:
renames and fsync take up to 0.3 s, `flock` is unknown or sees only its own machine, and the machine
has the name that the test gives it.
"""

import errno
import json
import os
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from conftest import copy_project
from made.cli import Cli, wait_for
from made.corpora import translations, write_opus, write_tatoeba
from made.web import CERTIFICATES, File, Files, good, https_site, serving, slow, stall

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


def network(folder, shared, locks, **more):
    """The environment of a process whose folder `shared` lies on a network file system."""
    place = folder / "network"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(NETWORK)
    paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
    added = {"PYTHONPATH": os.pathsep.join(paths), "TEST_SHARED": str(shared), "TEST_LOCKS": locks}
    return {**os.environ, **added, "NO_PROXY": "127.0.0.1", **more}


# --- two Snakemakes


EXPERIMENT = {
    "description": "two language pairs and one benchmark",
    "seed": 1,
    "languages": ["en", "de", "fr"],
    "splits": {},
    "corpora": [{"name": "bible-uedin", "version": "v1"}],
    "validation": {"name": "NTREX", "version": "v1"},
    "evalsets": {"tatoeba": {"version": "v1"}},
    "decontaminate": {"against": ["tatoeba"]},
    "segmenters": {"default": "none"},
    "benchmarks": ["tatoeba"],
}


class Counted(Files):
    """Answers when two Snakemakes have started, and counts what it is asked for."""

    def do_GET(self):
        assert self.server.begun.wait(600)
        with self.server.lock:
            self.server.asked.append(self.path)
        super().do_GET()


@contextmanager
def host(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counted)
    server.folder, server.asked, server.lock = folder, [], threading.Lock()
    server.begun = threading.Event()
    with serving(server):
        yield server


def write_source(mirror):
    """The corpora and the benchmark of EXPERIMENT; the paths of their files."""
    items = list(translations(300, ["en", "de", "fr"], seed=1))
    for name in ("bible-uedin", "NTREX"):
        folder = write_opus(mirror, name, "v1", items).parent
        folder.rename(folder.with_name(f"OPUS-{name}"))  # as the host calls it
    for code, language in (("deu", "de"), ("fra", "fr")):
        write_tatoeba(mirror, code, [(item[language], item["en"]) for item in items[:20]])
    return sorted(f"/{path.relative_to(mirror)}" for path in mirror.rglob("*") if path.is_file())


def clone(folder, data, address):
    """A clone of the project that shares the data folder."""
    project = copy_project(folder)
    base = yaml.safe_load((project.folder / "configs/tiny.yaml").read_text())
    del base["sweep"]
    sources = {"opus": f"{address}/opus", "tatoeba": f"{address}/tatoeba"}
    project.select("pair", {**base, **EXPERIMENT, "sources": sources, "systems": {"ems": {}}})
    project.edit("config.yaml", "data: data #", f"data: {data} #")
    shared = network(folder.parent, data, "real")
    path = f"{shared['PYTHONPATH']}{os.pathsep}{folder}"
    kept = {"PATH": project.environment["PATH"], "PYTHONPATH": path}
    project.environment = {**project.environment, **shared, **kept}
    return project


def log_of(project):
    return (project.folder / "started.log").read_text()


def test_two_snakemakes_that_share_a_data_folder_bring_each_file_once(tmp_path):
    """Both have planned to fetch everything before anything is there. Meanwhile a third one in one
    of the clones is refused, and says what to do.
    """
    data, mirror = tmp_path / "data", tmp_path / "mirror"
    files = write_source(mirror)
    with host(mirror) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        clones = [clone(tmp_path / name, data, address) for name in "ab"]
        runs = [project.start("snakemake", "data") for project in clones]
        for project, run in zip(clones, runs, strict=True):
            while "localrule fetch" not in log_of(project):
                assert run.poll() is None, log_of(project)
                time.sleep(0.05)
        refused = clones[0].snakemake("data", expect=1)
        server.begun.set()
        for project, run in zip(clones, runs, strict=True):
            assert run.wait() == 0, log_of(project)
        asked = sorted(server.asked)
        after = [project.snakemake("-n", "data") for project in clones]
    assert "cannot be locked" in refused
    assert "--unlock" in refused
    assert asked == files
    kept = sum(log_of(project).count("has just written it; kept") for project in clones)
    assert kept == 4 + 2  # archives, and languages of the benchmark
    assert all("Nothing to be done" in output for output in after)
    for name in files:
        place = name[1:].replace("OPUS-", "").replace("tatoeba/", "evalsets/tatoeba/v1/")
        assert (data / place).read_bytes() == (mirror / name[1:]).read_bytes()
    left = [path.name for path in data.rglob(".*") if path.name != ".downloads"]
    assert left == []


# --- two machines, and file systems without locks


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site with one file of text; it answers slowly."""
    monkeypatch.setenv(CERTIFICATES, str(tmp_path / "cert.pem"))
    file = File(CORPUS, {"ETag": '"one"', "Content-Type": "text/plain"})
    with https_site(tmp_path, file, [slow]) as site:
        yield site


@pytest.fixture
def fetch(tmp_path, site):
    """Start `ems fetch` of the one file on a machine of a name."""
    ems, data = Cli(tmp_path), tmp_path / "shared"
    words = ("fetch", "--format", "text", "--source", site.address, "--corpus", "C", "--pair", "de")

    def start(locks, machine):
        own = tmp_path / machine  # a temporary folder
        own.mkdir(exist_ok=True)
        names = {"TEST_MACHINE": machine, "TMPDIR": str(own)}
        environment = network(tmp_path, data, locks, **names)
        words_out = (*words, "--version", "v1", "--out", str(data / "de.txt"))
        return ems.start(*words_out, env=environment, stderr=subprocess.PIPE, text=True)

    start.out = data / "de.txt"
    return start


def is_whole(out):
    lock = json.loads((out.parent / "de.txt.lock.json").read_text())
    return out.read_bytes() == CORPUS and lock["bytes"] == len(CORPUS)


@pytest.mark.parametrize("locks", ["none", "own"])
def test_two_machines_never_write_into_one_file(fetch, site, locks):
    """Without locks between them both fetch. One may be overtaken at its last step, and says so."""
    runs = [fetch(locks, machine) for machine in ("node1", "node2")]
    logs = [run.communicate()[1] for run in runs]
    ended = [run.returncode for run in runs]
    assert 0 in ended
    for code, log in zip(ended, logs, strict=True):
        assert code == 0 or "it vanished while it was written" in log, log
    assert is_whole(fetch.out)
    assert len(site.asked) == 2
    assert all(headers.get("Range") is None for headers in site.asked)


def test_without_locks_the_processes_of_one_machine_still_wait_and_a_killed_one_is_continued(
    fetch, site
):
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
    assert sorted(path.name for path in fetch.out.parent.iterdir()) == [
        *("de.txt", "de.txt.lock.json")
    ]


def test_what_another_process_makes_while_one_waits_is_kept(tmp_path):
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
def test_a_lock_that_a_third_process_removes_while_one_looks_at_it_is_made_again(
    tmp_path, monkeypatch, look
):
    path, looks, stat = tmp_path / "x", iter(range(100)), Path.stat

    def removed(self, **options):
        if self == path and os.path.isfile(path) and next(looks) == look:
            os.unlink(path)
        return stat(self, **options)

    monkeypatch.setattr(Path, "stat", removed)
    with held(path) as handle:
        assert os.path.samestat(os.stat(path), os.fstat(handle.fileno()))


def test_what_was_there_before_the_plan_is_made_again(tmp_path, monkeypatch):
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
def test_a_training_starts_where_the_file_system_has_no_locks(
    tmp_path, monkeypatch, caplog, number
):
    def refused(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refused)
    with claimed(tmp_path / "state"):
        assert (tmp_path / "state" / "lock").exists()
    assert "no locks in this file system" in caplog.text
    assert not (tmp_path / "state").exists()
