"""Web servers: folders, and one site that misbehaves as real servers do, over https.

A *way* is how one request is answered: a function of (request, file). A site's `ways` are used up
one by one; the last one stays.
"""

import hashlib
import random
import re
import shutil
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

from conftest import needs
from made.experiments import one_line

from ems.corpora.download import Downloads
from ems.corpora.fetch import fetch


@dataclass
class File:
    content: bytes
    headers: dict = field(default_factory=lambda: {"ETag": '"one"'})


@dataclass
class Site:
    """The server's script, and what it saw."""

    file: File
    ways: list
    address: str = ""
    asked: list = field(default_factory=list)  # the headers of each request
    active: int = 0
    most: int = 0  # connections at once
    change: threading.Condition = field(default_factory=threading.Condition)
    closing: threading.Event = field(default_factory=threading.Event)

    def ranges(self):
        return [headers.get("Range") for headers in self.asked]


class Request(BaseHTTPRequestHandler):
    def do_GET(self):
        site = self.server.site
        with site.change:
            site.asked.append(dict(self.headers))
            site.active += 1
            site.most = max(site.most, site.active)
            site.change.notify_all()
            way = site.ways.pop(0) if len(site.ways) > 1 else site.ways[0]
        try:
            with suppress(OSError):  # the client has gone
                way(self, site.file)
        finally:
            with site.change:
                site.active -= 1

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def log_message(self, *args):
        pass


class Folder(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """A server of this machine; with a folder for its certificate, over https."""

    def __init__(self, handler, tls=None):
        super().__init__(("127.0.0.1", 0), handler)
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate(tls))
        self.address = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_port}"

    def finish_request(self, request, client_address):
        if not self.context:
            return super().finish_request(request, client_address)
        with suppress(OSError), self.context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request, client_address):
        pass

    @contextmanager
    def running(self):
        thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()
            thread.join()


def certificate(folder):
    needs(shutil.which("openssl"), "openssl is not installed")
    pem, key = folder / "cert.pem", folder / "key.pem"
    words = "openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2"
    words += " -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*words.split(), "-keyout", key, "-out", pem], check=True, capture_output=True)
    return pem, key


@contextmanager
def https_site(folder, file, ways):
    """A site that answers in these ways; its certificate lies in `folder`/cert.pem."""
    server = Server(Request, folder)
    server.site = Site(file, ways, server.address)
    with server.running():
        yield server.site
        server.site.closing.set()


@contextmanager
def served(folder):
    """Serve a folder over https; gives the address, and the certificate that clients must trust."""
    tls = folder.with_name(f"{folder.name}-tls")
    tls.mkdir(exist_ok=True)
    server = Server(partial(Folder, directory=folder), tls)
    with server.running():
        yield server.address, tls / "cert.pem"


@contextmanager
def source_of(kind, folder):
    """A folder as a source: by its path, as file://, or on a plain web server (kind: host)."""
    if kind != "host":
        yield str(folder) if kind == "directory" else folder.as_uri()
        return
    server = Server(partial(Folder, directory=folder))
    with server.running():
        yield server.address


# --- a download


CONTENT = b"PK\x03\x04" + random.Random(1).randbytes(400_000)
CERTIFICATES = "REQUESTS_CA_BUNDLE"


class World:
    """A target in an empty folder, and what the code slept."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.out, self.slept = folder, folder / "data" / "x.zip", []
        (folder / "tls").mkdir()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv(CERTIFICATES, str(folder / "tls" / "cert.pem"))
        clock = SimpleNamespace(sleep=self.slept.append, time=time.time, monotonic=time.monotonic)
        monkeypatch.setattr("ems.corpora.download.time", clock)

    @contextmanager
    def site(self, *ways, file=None):
        with https_site(self.folder / "tls", file or File(CONTENT), list(ways)) as site:
            yield site

    def fetch(self, site, name="x.zip", check=lambda path: {}, **settings):
        self.out = self.out.with_name(name)
        settings = {"retries": 3, "stall": 20.0, "slots": self.folder / "slots", **settings}
        return fetch(f"{site.address}/{name}", self.out, check, True, Downloads(**settings))

    def files(self):
        return sorted(path.name for path in self.out.parent.iterdir())

    def fetched(self, site, content=CONTENT, **settings):
        """Fetch, which must end in these bytes and leave nothing but them and their lock."""
        entry = self.fetch(site, **settings)
        assert self.out.read_bytes() == content
        sha256 = hashlib.sha256(content).hexdigest()
        assert (entry["bytes"], entry["sha256"]) == (len(content), sha256)
        assert self.files() == [self.out.name, f"{self.out.name}.lock.json"]

    def fails(self, site, expected, left=(), **settings):
        """Fetch, which must end in one line that names the address, and leave nothing else."""
        line = one_line(self.fetch, site, **settings)
        assert re.search(expected, line)
        assert f"{site.address}/{self.out.name}: " in line
        assert self.files() == sorted(left)

    def clear(self):
        for path in self.out.parent.iterdir():
            path.unlink()


# --- ways to answer


def good(request, file, until=None, write=None):
    """As a good server does: Range and If-Range are honoured. `until`: break off after so many."""
    start = _start(request, file)
    content = file.content[start:]
    headers = {"Content-Length": len(content), **file.headers}
    if start:
        size = len(file.content)
        headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
    if start and start >= len(file.content):
        request.head(416, {})
        return
    request.head(206 if start else 200, headers)
    (write or request.wfile.write)(content[:until])


def _start(request, file):
    start = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
    condition = request.headers.get("If-Range")
    if start and condition in (None, file.headers.get("ETag"), file.headers.get("Last-Modified")):
        return int(start[1])
    return 0


def stall(count):
    """Send `count` bytes, then nothing, with the connection open."""

    def way(request, file):
        good(request, file, until=count)
        request.wfile.flush()
        request.server.site.closing.wait(60)

    return way


def slow(request, file, block=1 << 16, pause=0.05):
    """As a good server does, in small pieces."""

    def write(content):
        for at in range(0, len(content), block):
            request.wfile.write(content[at : at + block])
            request.wfile.flush()
            last = at + block >= len(content)
            if not last and request.server.site.closing.wait(pause):
                return

    good(request, file, write=write)


def _send(request, status, body, headers):
    request.head(status, {"Content-Length": len(body), **headers})
    request.wfile.write(body)
