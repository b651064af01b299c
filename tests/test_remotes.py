"""Laws of DVC's remotes: a local folder, SSH and S3, each with a push and a pull that break off.

The servers run on this machine, behind a proxy that counts bytes: after so many of them the client
is killed, or the connection is lost.
"""

import hashlib
import shutil
import urllib.request
from contextlib import contextmanager

import pytest
from cli_made import wait_for
from conftest import copied, needs
from mirror_made import write_lines
from remotes_made import PROGRAMS, Proxy, killed, s3_server, ssh_server

STAGE = "train@tiny"  # of dvc.yaml: what is pushed and pulled here
OUTS = ("models", "costs/train")
CLIENT = PROGRAMS / "remotes" / "bin"
KINDS = ["local", "ssh", "s3"]


@pytest.fixture(scope="module")
def committed(tiny_run, tmp_path_factory):
    """A project in which the tiny experiment has run and DVC knows its files."""
    project = copied(tiny_run, tmp_path_factory.mktemp("remotes") / "project")
    project.run("git", "init", "--quiet")
    project.run("dvc", "commit", "--force", STAGE)
    return project


class Remote:
    """A project with a remote of a kind."""

    def __init__(self, project, proxy=None, store=None):
        self.project, self.proxy, self.store = project, proxy, store
        self.cache = project.folder / ".dvc/cache/files"
        self.results = project.folder / "results/tiny"

    def dvc(self, *words):
        return self.project.run("dvc", *words).stdout

    def count(self, word):
        """How many files have arrived: of a push in the remote, of a pull in the cache."""
        return len(objects(self.store if word == "push" else self.cache))

    def kill(self, word):
        """Start a push or pull, and kill it in its middle."""
        before = self.count(word) if self.store else 0
        run = self.project.start("dvc", word, STAGE)
        if self.store:
            wait_for(lambda: self.count(word) > before, run)
            killed(run)
        else:
            self.proxy.after(MIDDLE, lambda: killed(run))
        assert run.wait() == -9, (self.project.folder / "started.log").read_text()

    def cut(self, word):
        """Push or pull while the server goes away in the middle."""
        self.proxy.after(MIDDLE, self.proxy.close)
        done = self.project.run("dvc", word, STAGE, expect=None)
        assert self.proxy.closed
        assert done.returncode != 0
        assert "ERROR: failed to transfer" in done.stderr
        self.proxy.open()

    def files(self):
        folders = [self.results / name for name in OUTS]
        paths = [path for folder in folders for path in sorted(folder.rglob("*"))]
        return {path: path.read_bytes() for path in paths if path.is_file()}


MANY = 1_000  # small files: without them a push to a folder ends before it can be killed
MIDDLE = 300_000  # bytes after which a transfer of MORE breaks off
MORE = 600_000


def objects(folder):
    """The files of a store of DVC, without those that are being written."""
    return [p for p in folder.rglob("*") if p.is_file() and len(p.parent.name + p.stem) == 32]


def is_whole(path):
    """Return whether a stored file has the bytes that its name, an MD5, promises."""
    return path.parent.name + path.stem == hashlib.md5(path.read_bytes()).hexdigest()


@contextmanager
def remote_of(kind, project, folder):
    """A project whose default remote is new and of a kind, as docs/running.md says."""
    project.environment |= {"HOME": str(folder), "AWS_MAX_ATTEMPTS": "1"}
    if kind == "local":
        for at in range(MANY):
            write_lines(project.folder / f"results/tiny/models/many/{at}", [str(at)])
        project.run("dvc", "commit", "--force", STAGE)
        project.run("dvc", "remote", "add", "--default", "storage", str(folder / "store"))
        yield Remote(project, store=folder / "store")
        return
    needs(CLIENT.exists(), "dvc with SSH and S3 is not installed: make remotes")
    project.environment["PATH"] = f"{CLIENT}:{project.environment['PATH']}"
    if kind == "ssh":
        with ssh_server(folder) as (port, key, user):
            proxy, store = Proxy(port), folder / "store"
            url = f"ssh://{user}@127.0.0.1:{proxy.port}{store}"
            project.run("dvc", "remote", "add", "--default", "storage", url)
            project.run("dvc", "remote", "modify", "--local", "storage", "keyfile", str(key))
            yield Remote(project, proxy, store)
        return
    names = {"AWS_ACCESS_KEY_ID": "name", "AWS_SECRET_ACCESS_KEY": "word"}
    project.environment |= {**names, "AWS_DEFAULT_REGION": "us-east-1"}
    with s3_server(folder) as port:
        proxy = Proxy(port)
        request = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
        urllib.request.urlopen(request).close()
        url = f"http://127.0.0.1:{proxy.port}"
        project.run("dvc", "remote", "add", "--default", "storage", "s3://bucket/ems")
        project.run("dvc", "remote", "modify", "storage", "endpointurl", url)
        yield Remote(project, proxy)


@pytest.mark.parametrize("kind", KINDS)
def test_a_push_and_a_pull_that_break_off_go_on_and_give_the_same_bytes(committed, tmp_path, kind):
    project = copied(committed, tmp_path / "project")
    (tmp_path / "home").mkdir()
    with remote_of(kind, project, tmp_path / "home") as remote:
        before = remote.files()
        assert sum(map(len, before.values())) > MORE
        if kind == "s3":
            remote.cut("push")
        else:
            remote.kill("push")
        if remote.store:
            arrived = objects(remote.store)
            half = [path for path in arrived if not is_whole(path)]
            # in a folder DVC first tries to clone a file, which is empty until then
            assert not [path for path in half if kind != "local" or path.stat().st_size]
            assert 0 < len(arrived) < len(objects(remote.cache))
        assert "pushed" in remote.dvc("push", STAGE)
        if remote.store:
            assert all(map(is_whole, objects(remote.store)))
        for folder in (remote.cache, *(remote.results / name for name in OUTS)):
            shutil.rmtree(folder)
        if kind == "ssh":
            remote.cut("pull")
        else:
            remote.kill("pull")
        remote.dvc("pull", STAGE)
        assert remote.files() == before
        if kind == "s3":
            project.snakemake("--touch", "all")
            assert "Nothing to be done" in project.snakemake("-n", "all")
