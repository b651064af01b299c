"""Serve a page to search a text, and vectors as OpenAI's API gives them, over HTTP.

    GET  /                the page (page.html)
    GET  /search?q=&k=    lines of the text
    GET  /v1/models       the model
    POST /v1/embeddings   vectors

A flood waits outside: CONNECTIONS are accepted at once, one thread uses the model, and bodies,
texts and times are limited. On a loopback address a request must name one as its host; otherwise a
page of the Internet could ask through a name that leads here (DNS rebinding). No other origin may
read an answer.
"""

import base64
import hashlib
import html
import ipaddress
import json
import logging
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

from ems.base.errors import EmsError
from ems.use.answers import LINES, Answer, K, Refused, Service

log = logging.getLogger("ems")
BODY = 4 << 20  # bytes of a request
CONNECTIONS = 16  # at once; the system keeps some more waiting
READING = 30  # seconds that a request may take to arrive, and an answer to leave
DISCARDED = 64 << 20  # bytes of a refused body that are still read, so that the answer is seen
POLL = 0.2  # seconds between two looks for connections that take too long
HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"  # the policy of what is no page


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise `KeyboardInterrupt` for SIGINT and SIGTERM within the block."""
    both = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, signal.default_int_handler) for each in both}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def serve(service: Service, host: str, port: int) -> None:
    """Answer requests until `KeyboardInterrupt`; then finish those that have arrived.

    The address goes to standard output once the server answers. Raises `EmsError` for an address
    that cannot be listened on.
    """
    with _listening(service, host, port) as server, suppress(KeyboardInterrupt):
        if not server.local:
            log.warning("anyone who reaches %s can use it: no password, no encryption", server.url)
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        server.serve_forever(POLL)
    log.info("stopped")


def _listening(service: Service, host: str, port: int) -> "Server":
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return Server(service, family, address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise EmsError(
            f"--host {host} --port {port}: cannot listen there ({reason}); expected an address of "
            "this machine and a free port, or 0 for any free one"
        ) from None


class Server(ThreadingHTTPServer):
    """A service at an address, with a bound on what happens at once."""

    daemon_threads = False  # they are waited for at the end
    request_queue_size = 128

    def __init__(self, service: Service, family: int, address: Any) -> None:
        self.address_family = family
        page, self.policy = page_of(service)
        self.routes: dict[str, tuple[str, Callable[[Any], bytes | Answer]]] = {
            "/": ("GET", lambda _: page),
            "/search": ("GET", service.search),
            "/v1/models": ("GET", service.models),
            "/v1/embeddings": ("POST", service.embeddings),
        }
        self.worker = ThreadPoolExecutor(1, "model")  # PyTorch starts threads for each that uses it
        self.reading: dict[socket.socket, float] = {}  # requests that arrive, and until when
        self._free = threading.Semaphore(CONNECTIONS)
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Bind without looking up the name of the host, which may take seconds."""
        TCPServer.server_bind(self)

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the address."""
        return ipaddress.ip_address(self.server_address[0]).is_loopback

    @property
    def url(self) -> str:
        """The address of the page."""
        host, port = self.server_address[:2]
        return f"http://[{host}]:{port}/" if ":" in str(host) else f"http://{host}:{port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection as soon as one is free."""
        while not self._free.acquire(timeout=POLL):
            self.service_actions()
        self.reading[request] = time.monotonic() + READING
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer in a thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.reading.pop(request, None)
            self._free.release()

    def service_actions(self) -> None:
        """End the requests that take too long to arrive; called a few times a second."""
        now = time.monotonic()
        for request, until in list(self.reading.items()):
            if now > until:
                _stop_reading(request)

    def server_close(self) -> None:
        """Stop listening, and wait for the answers to requests that have arrived."""
        for request in list(self.reading):
            _stop_reading(request)
        super().server_close()
        self.worker.shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what went wrong with a connection."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            log.info("a connection was lost (%s)", error)
        else:
            log.error("error: %r", error, exc_info=error)


def _stop_reading(request: socket.socket) -> None:
    """Make reads from a socket find its end; what is written still goes out."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RD)


class Handler(BaseHTTPRequestHandler):
    """A connection, which is one request."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = READING
    unread = 0  # bytes of the body

    def respond(self) -> None:
        """Answer the request."""
        if "Transfer-Encoding" in self.headers:
            self.unread = DISCARDED
        else:
            self.unread = _whole_number(self.headers.get("Content-Length", "0")) or 0
        try:
            status, answer = HTTPStatus.OK, self._answer()
        except Refused as refused:
            status, answer = HTTPStatus(refused.status), refused.answer()
        self._send(status, answer)
        self._discard()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = respond

    def _answer(self) -> bytes | Answer:
        """Return the answer. Raises `Refused`."""
        if self.server.local and not _names_loopback(self.headers.get("Host", "")):
            raise Refused(403, f"expected localhost or {self.server.url} as the host")
        path, _, query = self.path.partition("?")
        method, call = self.server.routes.get(path, ("", None))
        if call is None:
            known = ", ".join(self.server.routes)
            raise Refused(404, f"no such address; there are {known}")
        if self.command not in _allowed(method):
            raise Refused(405, f"expected {method}, found {self.command}")
        given = self._body() if method == "POST" else _utf8(query)
        self.server.reading.pop(self.connection, None)
        try:
            return self.server.worker.submit(lambda: _as_bytes(call(given))).result()
        except Refused:
            raise
        except Exception as error:
            log.error("error: %r", error, exc_info=error)
            raise Refused(500, "an error in ems serve; its log says where") from None

    def _body(self) -> bytes:
        """Return the body. Raises `Refused` if its length is unknown or above BODY."""
        length = self.headers.get("Content-Length")
        if length is None or "Transfer-Encoding" in self.headers:
            raise Refused(411, "expected a body with Content-Length, and no Transfer-Encoding")
        size = _whole_number(length)
        if size is None:
            raise Refused(400, "expected a whole number under Content-Length")
        if size > BODY:
            raise Refused(
                413, f"expected at most {BODY:,} bytes, found {size:,}; send several requests"
            )
        body = self.rfile.read(size)
        self.unread = 0
        if len(body) < size:
            raise Refused(400, f"expected {size:,} bytes, {len(body):,} arrived in time")
        return body

    def _send(self, status: HTTPStatus, answer: bytes | Answer) -> None:
        content = _as_bytes(answer)
        is_page = content.startswith(b"<")
        headers = HEADERS | {
            "Content-Type": "text/html; charset=utf-8" if is_page else "application/json",
            "Content-Length": str(len(content)),
            "Content-Security-Policy": self.server.policy if is_page else NOTHING,
        }
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            method, _ = self.server.routes[self.path.partition("?")[0]]
            headers["Allow"] = ", ".join(_allowed(method))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _discard(self) -> None:
        """Read a body that was refused: to the sender of an unread one the answer is lost."""
        left = min(self.unread, DISCARDED)
        while left > 0 and (size := len(self.rfile.read1(min(left, 1 << 16)))):
            left -= size

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is not HTTP, as http.server does but in JSON."""
        refused = Refused(code, message or HTTPStatus(code).phrase)
        self._send(HTTPStatus(code), refused.answer())

    def version_string(self) -> str:
        """Return what stands under Server."""
        return "ems"

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Log the status and the path, without what was asked."""
        path = getattr(self, "path", "").partition("?")[0][:100]
        log.info("%s %s %s", self.command or "?", path, int(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing else."""


def _as_bytes(answer: bytes | Answer) -> bytes:
    if isinstance(answer, bytes):
        return answer
    return json.dumps(answer, ensure_ascii=False).encode()


def _allowed(method: str) -> tuple[str, ...]:
    return ("GET", "HEAD") if method == "GET" else (method,)


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _utf8(query: str) -> str:
    """Return a query string, which http.server reads as Latin-1. Raises `Refused`."""
    try:
        return query.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise Refused(400, "expected an address in UTF-8") from None


def _names_loopback(host: str) -> bool:
    """Return whether a Host header names this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def page_of(service: Service) -> tuple[bytes, str]:
    """Return the page, and the policy that lets its own script and style run, and no others."""
    page = files("ems.use").joinpath("page.html").read_text(encoding="utf-8")
    index = service.index
    about = f"No text to search in: start ems serve with --index TEXT. Model: {service.name}."
    if index:
        text = f"{index.lines:,} lines of {index.corpus.name}"
        about = f"Search {text} by meaning, in any language. Model: {service.name}."
    slots = {"ABOUT": html.escape(about), "HIDDEN": "" if index else "hidden"}
    for name, value in {**slots, "LINES": str(LINES), "K": str(K)}.items():
        page = page.replace(f"{{{{{name}}}}}", value)
    own = {kind: _hashes(kind, page) for kind in ("script", "style")}
    rules = [f"{kind}-src {hashes}" for kind, hashes in own.items()]
    others = "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'"
    return page.encode(), "; ".join([NOTHING, *rules, others])


def _hashes(element: str, page: str) -> str:
    """Return the hashes of the elements of a page as a policy names them."""
    contents = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
    digests = (hashlib.sha256(content.encode()).digest() for content in contents)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
