"""DVC remotes (a local folder, SSH, S3): a push and a pull that break off continue when repeated.

The servers run on this machine behind a proxy that counts bytes: after some of them the client is
killed, or the connection is lost.
"""

import getpass
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from conftest import ROOT, copied, needs
from made.cli import wait_for
from made.corpora import write_lines

PROGRAMS = ROOT / ".interop"


def _shut(*sockets):
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Passes bytes on to a port of this machine.

    `after(count, what)` calls `what` once so many more bytes have gone from the client to the
    server and back together. A closed proxy drops its connections and refuses new ones.
    """

    def __init__(self, target):
        self.target, self.seen, self.closed = target, 0, False
        self.limit, self.what = None, None
        self.lock, self.sockets = threading.Lock(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def after(self, count, what):
        with self.lock:
            self.limit, self.what = self.seen + count, what

    def close(self):
        with self.lock:
            self.closed, sockets = True, self.sockets
            self.sockets = []
        _shut(*sockets)

    def open(self):
        self.closed = False

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            if self.closed:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.target))
            with self.lock:
                self.sockets += [client, server]
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source, sink):
        with suppress(OSError):
            while block := source.recv(1 << 14):
                self._count(len(block))
                sink.sendall(block)
        _shut(source, sink)

    def _count(self, count):
        with self.lock:
            self.seen += count
            what = self.what if self.limit is not None and self.seen >= self.limit else None
            if what:
                self.limit = self.what = None
        if what:
            what()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def running(command, port, log, **options):
    """Run a server until the block ends; wait until it listens."""
    with open(log, "w") as writer:
        server = subprocess.Popen(command, stdout=writer, stderr=writer, **options)
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert server.poll() is None, Path(log).read_text()
            time.sleep(0.1)
        else:
            raise RuntimeError(f"nothing listens on port {port}:\n{Path(log).read_text()}")
        yield
    finally:
        server.terminate()
        server.wait()


@contextmanager
def ssh_server(folder):
    """An sshd with keys of its own; its port, and the user's key."""
    program = shutil.which("sshd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    needs(program, "sshd is not installed: apt install openssh-server")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # as its service does
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True)
    port = free_port()
    settings = f"""
        ListenAddress 127.0.0.1:{port}
        HostKey {folder}/host
        AuthorizedKeysFile {folder}/user.pub
        Subsystem sftp internal-sftp
        PidFile none\nStrictModes no\nPasswordAuthentication no\nUsePAM no\nPermitRootLogin yes
    """
    (folder / "sshd_config").write_text(settings)
    command = [program, "-D", "-e", "-f", str(folder / "sshd_config")]
    with running(command, port, folder / "sshd.log"):
        yield port, folder / "user", getpass.getuser()


@contextmanager
def s3_server(folder):
    program = PROGRAMS / "moto" / "bin" / "moto_server"
    needs(program.exists(), "moto is not installed: make interop")
    port = free_port()
    with running([program, "-H", "127.0.0.1", "-p", str(port)], port, folder / "moto.log"):
        yield port


def killed(process):
    """End a process and all that it started, as a lost machine does."""
    os.killpg(process.pid, signal.SIGKILL)


pytestmark = pytest.mark.slow
STAGE = "train@tiny"  # the stage of dvc.yaml that is pushed and pulled
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
    def __init__(self, project, proxy=None, store=None):
        self.project, self.proxy, self.store = project, proxy, store
        self.cache = project.folder / ".dvc/cache/files"
        self.results = project.folder / "results/tiny"

    def count(self, word):
        """Count the files that arrived: of a push in the remote, of a pull in the cache."""
        return len(objects(self.store if word == "push" else self.cache))

    def kill(self, word):
        """Start a push or pull and kill it in the middle."""
        before = self.count(word) if self.store else 0
        run = self.project.start("dvc", word, STAGE)
        if self.store:
            wait_for(lambda: self.count(word) > before, run)
            killed(run)
        else:
            self.proxy.after(MIDDLE, lambda: killed(run))
        assert run.wait() == -9, (self.project.folder / "started.log").read_text()

    def cut(self, word):
        """Push or pull, and close the server in the middle."""
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


MANY = 1_000  # small files, so that a push to a folder takes long enough to be killed
MORE, MIDDLE = 600_000, 300_000  # bytes of a transfer, and after which it breaks off


def objects(folder):
    """Return the finished files in a store of DVC."""
    return [p for p in folder.rglob("*") if p.is_file() and len(p.parent.name + p.stem) == 32]


def is_whole(path):
    """Return True if a stored file has the MD5 that is its name."""
    return path.parent.name + path.stem == hashlib.md5(path.read_bytes()).hexdigest()


@contextmanager
def remote_of(kind, project, folder):
    """Give a project a new default remote of this kind, as in docs/running.md."""
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
def test_a_push_and_a_pull_that_break_off_continue_with_the_same_bytes(committed, tmp_path, kind):
    project = copied(committed, tmp_path / "project")
    (tmp_path / "home").mkdir()
    with remote_of(kind, project, tmp_path / "home") as remote:
        before = remote.files()
        assert sum(map(len, before.values())) > MORE
        (remote.cut if kind == "s3" else remote.kill)("push")
        if remote.store:
            arrived = objects(remote.store)
            half = [path for path in arrived if not is_whole(path)]
            # in a folder DVC first tries to clone a file, which is empty until then
            assert not [path for path in half if kind != "local" or path.stat().st_size]
            assert 0 < len(arrived) < len(objects(remote.cache))
        assert "pushed" in project.run("dvc", "push", STAGE).stdout
        if remote.store:
            assert all(map(is_whole, objects(remote.store)))
        for folder in (remote.cache, *(remote.results / name for name in OUTS)):
            shutil.rmtree(folder)
        (remote.cut if kind == "ssh" else remote.kill)("pull")
        project.run("dvc", "pull", STAGE)
        assert remote.files() == before
