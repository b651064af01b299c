"""A mirror of corpora on a local web server that fails when it is told to."""

import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# ways to fail: the body is cut, the connection is reset in it, nothing more comes for a while,
# an error of the server, or nobody listens at the port
WAYS = ("cut", "reset", "stall", "503", "stop")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    mirror: "Mirror"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that has gone is no surprise here."""


class _Request(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        way, seconds = self.server.mirror.trouble()
        name = self.path[1:].replace("/OPUS-", "/")  # OPUS's host names a corpus so
        path = self.server.mirror.folder / name
        if way == "503" or not path.is_file():
            self.send_error(503 if way == "503" else 404)
            return
        if way == "stop":
            self._reset()
            return
        body = path.read_bytes()
        with suppress(OSError):  # the client has gone
            rest = self._head(body, f'"{path.stat().st_mtime_ns}"')
            self.wfile.write(rest[: len(rest) // 2] if way else rest)
        if way == "stall":
            time.sleep(seconds)
        elif way == "reset":
            self._reset()

    def _head(self, body: bytes, tag: str) -> bytes:
        """Send the head; return the bytes that were asked for."""
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked and self.headers.get("If-Range", tag) == tag else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.send_header("ETag", tag)
        self.end_headers()
        return body[start:]

    def _reset(self) -> None:
        """Close the connection with a RST."""
        with suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def log_message(self, *words: object) -> None:
        """Say nothing."""


class Mirror:
    """A folder on a web server. `arm` says how the next request fails, and those after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hit = threading.Event()  # the armed way has met a request
        self._lock = threading.Lock()
        self._way, self._seconds, self._until = "", 0.0, 0.0
        self._rests = threading.Event()  # set while the server does not listen
        self._listen(0)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def arm(self, way: str, seconds: float) -> None:
        """Make requests fail in a way, for some seconds from the next one on."""
        with self._lock:
            self._way, self._seconds, self._until = way, seconds, 0.0
            self.hit.clear()

    def disarm(self) -> None:
        """Serve again."""
        self.arm("", 0.0)

    def failing(self) -> bool:
        """True while requests fail, also in an earlier way than the one that is armed now."""
        with self._lock:
            armed = bool(self._way) and time.monotonic() <= self._until
            return armed or self._rests.is_set()

    def trouble(self) -> tuple[str, float]:
        """Return how a request fails ("": not at all), and for how many seconds."""
        with self._lock:
            if not self._way or (self._until and time.monotonic() > self._until):
                return "", 0.0
            first = not self._until
            self._until = self._until or time.monotonic() + self._seconds
            way, seconds = self._way, self._seconds
        self.hit.set()
        if first and way == "stop":
            self._rests.set()
            threading.Thread(target=self._rest, args=(seconds,), daemon=True).start()
        return way, seconds

    def _listen(self, port: int) -> None:
        self._server = _Server(("127.0.0.1", port), _Request)
        self._server.mirror = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _rest(self, seconds: float) -> None:
        """Listen no more for a while."""
        port = self._server.server_port
        self.close()
        time.sleep(seconds)
        self._listen(port)
        self._rests.clear()

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def mirror_of(folder: Path) -> Iterator[Mirror]:
    """Serve a folder while the block runs."""
    mirror = Mirror(folder)
    try:
        yield mirror
    finally:
        mirror.close()
