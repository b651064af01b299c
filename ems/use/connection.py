"""HTTP connections of `ems serve`: the limits of a request, and answers in JSON.

A connection has one request, which must arrive whole, head and body, within READING seconds. Its
answer must be read within as many. Above MOST connections or HELD bytes, the oldest request that
has not arrived is dropped, so slow clients keep no one out. An ambiguous head is rejected.
"""

import asyncio
import ipaddress
import re
import resource
import socket
from contextlib import suppress
from http import HTTPMethod, HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ems.base.errors import mistake
from ems.base.progress import log

BODY = 4 << 20  # maximum bytes of a request body
ADDRESS = 1 << 16  # maximum bytes of path and query
HEAD = 1 << 18  # maximum bytes of a request head
READING = 30  # seconds in which a request must arrive; then in which its answer must be read
DISCARDED = 64 << 20  # bytes of a rejected body that are read, so that the client sees the answer
LINGER = 1  # seconds in which a client may see that its head was rejected
MOST = 4096  # connections
SPARE = 64  # open files that are no connections
BACKLOG = 512  # connections that are accepted at once
MESSAGE = 1000  # characters of an error
HELD = 256 << 20  # bytes of all requests
SMALL = 1 << 16  # bytes of a request that do not matter for HELD
HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "ems",
    "X-Content-Type-Options": "nosniff",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"  # policy of all answers except the page
NOT_HTTP = "expected HTTP/1.1 with a host, and headers like `name: value`"
_END = re.compile(rb"\n\r?\n")  # of a head
_ONCE = ("host", "content-length", "transfer-encoding")  # headers


def refused(
    status: int, message: str, param: str | None = None, code: str | None = None
) -> HTTPException:
    """Return an error in the format of OpenAI's API; `param` names the offending parameter."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    message = message if len(message) <= MESSAGE else f"{message[:MESSAGE]}..."
    about = {"message": message, "type": kind, "param": param, "code": code}
    return HTTPException(status, about)


# --- the server


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; raise this process's limit of open files as far as MOST connections
    need. Raises `EmsError` if the address cannot be used.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(MOST + BACKLOG + SPARE, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        return listening
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise mistake("no free address", host=host, port=port, reason=reason) from None


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def is_local(listening: socket.socket) -> bool:
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def server_for(app: ASGIApp) -> uvicorn.Server:
    """Configure the server of an application; `run` starts it and `should_exit` ends it."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=READING,
        h11_max_incomplete_event_size=HEAD,
    )
    return uvicorn.Server(config)


# --- a connection


class Connection(H11Protocol):
    """A connection for one request, whose address may be plain UTF-8."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.deadline = self.loop.time() + READING
        self.app_state = {**self.app_state, "deadline": self.deadline}  # request.state
        self.timer = self.loop.call_at(self.deadline, self._late)
        self.head, self.received, self.rejected = bytearray(), 0, False
        self.unfinished = vars(self.server_state).setdefault("unfinished", {})  # in their order
        self.unfinished[self] = True
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if len(self.connections) > min(MOST, files - BACKLOG - SPARE):
            self._drop_oldest()

    @property
    def arrived(self) -> bool:
        """True if the whole request is here."""
        return self.cycle is not None and not self.cycle.more_body

    def _drop_oldest(self) -> None:
        oldest = next(iter(self.unfinished), self)
        self.unfinished.pop(oldest, None)
        oldest.transport.abort()

    def _late(self) -> None:
        """End a connection without a whole head; `content_of` answers for the body."""
        if self.cycle is None and self.head:
            self._reject(408, f"expected the whole request within {READING} seconds")
        elif self.cycle is None:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Collect the head, check it and escape its address; what follows the request is ignored.
        An address that is not ASCII, which curl sends, is rejected by h11.
        """
        if self.rejected or self.arrived:
            return
        self.received = min(self.received + len(data), HEAD + BODY)
        if self.received > SMALL and sum(one.received for one in self.connections) > HELD:
            self._drop_oldest()
        if self.cycle is not None:
            self._receive(data)
            return
        start = max(0, len(self.head) - 2)
        self.head += data
        end = _END.search(self.head, start)
        if (end.end() if end else len(self.head)) > HEAD:
            self._reject(431, f"expected at most {HEAD:,} bytes of a head")
        elif end and (flaw := flaw_of(self.head[: end.end()])):
            self._reject(400, flaw)
        elif end or self.head[0] <= ord(" "):  # no HTTP, such as a greeting of TLS
            line, newline, rest = self.head.partition(b"\n")
            line = re.sub(rb"[\x80-\xff]", lambda byte: b"%%%02X" % byte[0][0], line)
            self.head = bytearray()
            self._receive(bytes(line + newline + rest))

    def _receive(self, data: bytes) -> None:
        super().data_received(data)
        if self.arrived:
            self.unfinished.pop(self, None)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not valid HTTP, unless the application has: of a bad body."""
        if self.cycle is None:
            self._reject(400, NOT_HTTP)
        elif not self.cycle.response_started:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._reject(400, NOT_HTTP)

    def _reject(self, status: int, message: str) -> None:
        """Answer a request that does not reach the application, and ignore the rest of it."""
        answer = JSONResponse({"error": refused(status, message).detail}, status)
        response = finished("?", "", answer)
        reason = HTTPStatus(status).phrase.encode()
        head = h11.Response(status_code=status, headers=response.raw_headers, reason=reason)
        for event in (head, h11.Data(data=response.body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))
        self.rejected = True
        self.transport.write_eof()
        self._abort_in(LINGER)

    def _abort_in(self, seconds: float) -> None:
        self.timer.cancel()
        self.timer = self.loop.call_later(seconds, self.transport.abort)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._abort_in(READING)

    def connection_lost(self, exc: Exception | None) -> None:
        self.timer.cancel()
        self.unfinished.pop(self, None)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End the connection: after its answer if the request has arrived, else at once."""
        if self.arrived:
            super().shutdown()
        else:
            self.transport.abort()


def flaw_of(head: bytes) -> str:
    """Describe why a head is ambiguous or invalid although h11 may accept it; "" if it is fine."""
    if not re.match(rb"[^\n]* HTTP/1\.[01]\r?\n", head):
        return NOT_HTTP
    if re.search(rb"\n[ \t]", head):
        return "expected each header on one line, found one that is continued on the next"
    fields = [line.split(b":", 1) for line in head.lower().split(b"\n")[1:] if b":" in line]
    names = [name.decode("latin-1") for name, _ in fields]
    for name in _ONCE:
        if names.count(name) > 1:
            return f"expected one header {name}, found {names.count(name)}"
    if "content-length" in names and "transfer-encoding" in names:
        return "expected content-length or transfer-encoding, found both"
    values = [value for name, value in fields if name == b"content-length"]
    return "expected one content-length, found several" if b"," in b"".join(values) else ""


# --- requests and answers


async def content_of(request: Request) -> bytes | str:
    """Return a request's body or query. Raises `HTTPException`: late, too long, no length."""
    length = request.headers.get("Content-Length")
    if "Transfer-Encoding" in request.headers or (length is None and request.method == "POST"):
        raise refused(411, "expected a body with Content-Length, and no Transfer-Encoding")
    if int(length or 0) > BODY:
        found = f"expected at most {BODY:,} bytes, found {int(length or 0):,}"
        raise refused(413, f"{found}; send several requests")
    try:
        async with asyncio.timeout_at(request.state.deadline):
            body = await request.body()
    except (TimeoutError, ClientDisconnect):
        raise refused(408, f"expected the whole request within {READING} seconds") from None
    if request.method != "POST" and len(request.url.query) > ADDRESS:
        raise refused(414, f"expected at most {ADDRESS:,} bytes of an address")
    return body if request.method == "POST" else request.url.query


async def refuse(request: Request, error: HTTPException) -> Response:
    """Answer a request that was rejected by a service or by Starlette's routes."""
    headers = error.headers
    if error.status_code == 404 and isinstance(error.detail, str):
        known = ", ".join(route.path for route in request.app.routes)
        error = refused(404, f"no such address; choose one of {known}")
    elif error.status_code == 405 and request.method in HTTPMethod.__members__:
        allowed = sorted(headers["Allow"].split(", "))
        headers = {"Allow": ", ".join(allowed)}
        error = refused(405, f"expected {allowed[0]}, found {request.method}")
    elif error.status_code == 405:
        error = refused(501, f"Unsupported method ({request.method!r})")
    if error.status_code not in (408, 411):
        # Read a rejected body: a client that is still sending would not see the answer.
        with suppress(ClientDisconnect, TimeoutError):
            async with asyncio.timeout_at(request.state.deadline):
                left = DISCARDED
                async for part in request.stream():
                    left -= len(part)
                    if left < 0:
                        break
    response = JSONResponse({"error": error.detail}, error.status_code, headers)
    return finished(request.method, request.url.path, response)


def finished(method: str, path: str, response: Response) -> Response:
    """Add the common headers, and log the status without the query."""
    response.headers.update(HEADERS)
    response.headers.setdefault("Content-Security-Policy", NOTHING)
    log.info("%s %s %s", method, path[:100], response.status_code)
    return response


def names_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if re.search(r"[@/?#\\]", host):
            return False
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
