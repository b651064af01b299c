"""Servers on this machine: `ems serve`, SSH and S3 for remotes of DVC, and a proxy that breaks."""

import getpass
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
from conftest import ROOT, needs

PROGRAMS = ROOT / ".interop"


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
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

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
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

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
    settings = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "PasswordAuthentication": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
        "Subsystem": "sftp internal-sftp",
    }
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    (folder / "sshd_config").write_text(text)
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


# --- ems serve


MOST = 60  # seconds that an answer may take: a server that hangs fails the test


def ask(url, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=MOST)
    try:
        connection.request(method, quote(path, safe="/?=&%"), body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def ask_json(url, method, path, body=None, **headers):
    """The status of an answer in JSON, and the JSON; the body of the request is JSON too."""
    given = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    status, head, content = ask(url, method, path, given, **headers)
    assert head["Content-Type"] == "application/json"
    return status, json.loads(content)


class Served:
    """A server on a free port of the loopback; its log is a file in `folder`."""

    def __init__(self, folder, *words, python=sys.executable, **options):
        self.log = folder / "serve.log"
        command = [python, "-m", "ems", "serve", "--port", "0", *words]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*map(str, command)], cwd=folder, stdout=subprocess.PIPE, stderr=log, **options
            )
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url.startswith("http://"), self.log.read_text()

    def ask(self, *words, **headers):
        return ask(self.url, *words, **headers)

    def json(self, *words, **headers):
        return ask_json(self.url, *words, **headers)

    def stop(self, number=signal.SIGTERM):
        """The exit status after a signal."""
        self.process.send_signal(number)
        try:
            return self.process.wait(MOST)
        finally:
            self.process.kill()
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.stop() == 0, self.log.read_text()


class Slow:
    """An encoder that waits before the vectors of `wait`, and fails at those of `fail`."""

    model = "slow"

    def __init__(self):
        self.asked, self.let = threading.Event(), threading.Event()

    def encode(self, lines, *_, **__):
        if "fail" in lines:
            raise ZeroDivisionError
        if "wait" in lines:
            self.asked.set()
            assert self.let.wait(MOST)
        return np.ones((len(lines), 2), np.float32)

    def token_counts(self, lines, language):
        return [1] * len(lines)


@contextmanager
def slow_server():
    """A slow encoder, and `ems serve` in this process that uses it."""
    from ems.use import serve

    encoder, listening = Slow(), serve.listen("127.0.0.1", 0)
    server = serve.server_of(serve.Service(encoder), listening)
    server.url, server.address = serve.url_of(listening), listening.getsockname()
    running = server.running = threading.Thread(target=server.run, args=[[listening]])
    running.start()
    yield encoder, server
    server.should_exit = True
    running.join()
