"""Serve a search page, and OpenAI's API of embeddings, over HTTP.

    GET  /                the page (page.html)
    GET  /search?q=&k=    the k lines nearest to q
    GET  /v1/models       the model
    POST /v1/embeddings   vectors (https://platform.openai.com/docs/api-reference/embeddings)

CONNECTIONS requests are answered at once, the others wait. One thread uses the model. Bodies, texts
and times are limited. On a loopback address the host of a request must be a loopback name, so that
no web page can reach the server through DNS rebinding. No other origin may read an answer.
"""

import asyncio
import base64
import hashlib
import html
import ipaddress
import json
import logging
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPMethod
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

import h11
import uvicorn
from pydantic import BeforeValidator, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from ems.base.errors import EmsError
from ems.base.schema import Record
from ems.use.encoder import Encoder
from ems.use.search import Index

log = logging.getLogger("ems")
INPUTS = 2048  # maximum texts of a request, as in OpenAI's API
TEXT_CHARACTERS = 32_768  # maximum characters of a text
MOST_LINES = 100  # maximum results of a search
LINE_CHARACTERS = 2_000  # maximum characters of a result
DEFAULT_LINES = 5
BODY = 4 << 20  # maximum bytes of a request body
ADDRESS = 1 << 16  # maximum bytes of path and query
HEAD = 1 << 18  # maximum bytes of a request head
CONNECTIONS = 16  # answered at once; the others wait
READING = 30  # seconds in which a head, and then a body, must arrive
DISCARDED = 64 << 20  # bytes of a rejected body that are read, so that the client sees the answer
HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "ems",
    "X-Content-Type-Options": "nosniff",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"  # policy of all answers except the page


def refused(
    status: int, message: str, param: str | None = None, code: str | None = None
) -> HTTPException:
    """Return an error in the format of OpenAI's API; `param` names the offending parameter."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    about = {"message": message, "type": kind, "param": param, "code": code}
    return HTTPException(status, about)


@dataclass(frozen=True)
class Service:
    """Answers requests with a model and, if there is one, the index of a text.

    `models` and `search` take a query string, `embeddings` a body. They raise `HTTPException`.
    """

    encoder: Encoder
    index: Index | None = None
    language: str | None = None
    query_language: str | None = None
    created: int = field(default_factory=lambda: int(time.time()))  # Unix seconds

    def __post_init__(self) -> None:
        """Raise `EmsError` for a missing language, or one that the model does not know."""
        if self.language:
            self.encoder.encode(["a"], self.language)
        if self.index or self.query_language:
            self.encoder.encode(["a"], self.query_language)

    @property
    def name(self) -> str:
        """The name of the model folder, or of the model on the hub."""
        folder = Path(self.encoder.model)
        return folder.resolve().name if folder.exists() else self.encoder.model

    def models(self, _: str) -> Response:
        about = {"id": self.name, "object": "model", "created": self.created, "owned_by": "ems"}
        return JSONResponse({"object": "list", "data": [about]})

    def search(self, query: str) -> Response:
        """Answer with the `k` lines of the text nearest to `q`."""
        if self.index is None:
            raise refused(404, "there is no text to search; start ems serve with --index TEXT")
        question, k = _question(query)
        started = time.monotonic()
        try:
            (hits,) = self.index.search([question], self.query_language, k)
        except EmsError as error:
            raise refused(503, str(error)) from None
        seconds = round(time.monotonic() - started, 6)
        results = []
        for hit in hits:
            more = "…" if len(hit.line) > LINE_CHARACTERS else ""
            results.append({**vars(hit), "line": hit.line[:LINE_CHARACTERS] + more})
        about = {"query": question, "k": k, "lines": self.index.lines, "seconds": seconds}
        return JSONResponse({**about, "results": results})

    def embeddings(self, body: bytes) -> Response:
        """Answer with the vectors of the texts, scaled to length 1."""
        asked = _request(body)
        if asked.model != self.name:
            known = f"the model {asked.model[:TEXT_CHARACTERS]!r} does not exist"
            raise refused(404, f"{known}; here is {self.name!r}", "model", "model_not_found")
        texts, language = asked.input, asked.language or self.language
        try:
            vectors = self.encoder.encode(
                texts, language, normalise=True, dimensions=asked.dimensions or 0
            )
            tokens = sum(self.encoder.token_counts(texts, language))
        except EmsError as error:
            raise refused(400, str(error)) from None
        rows = vectors.tolist()
        if asked.encoding_format == "base64":
            rows = [base64.b64encode(row.tobytes()).decode() for row in vectors.astype("<f4")]
        data = [{"object": "embedding", "index": at, "embedding": r} for at, r in enumerate(rows)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        answer = {"object": "list", "data": data, "model": self.name, "usage": usage}
        return JSONResponse(answer)


def _question(query: str) -> tuple[str, int]:
    """Read `q` and `k` from the query string of a search."""
    try:
        fields = dict(parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=20))
    except ValueError:  # not UTF-8, or too many fields
        raise refused(400, "expected q and k in the address, in UTF-8") from None
    question, k = fields.get("q", ""), fields.get("k", str(DEFAULT_LINES))
    if not question.strip():
        raise refused(400, "expected a query under q, found none", "q")
    if not (re.fullmatch("[0-9]{1,8}", k) and 1 <= int(k) <= MOST_LINES):
        raise refused(400, f"expected a whole number from 1 to {MOST_LINES} under k", "k")
    _check_text(question, "q")
    return question, int(k)


def _check_text(text: Any, param: str) -> None:
    """Raise `HTTPException` for a value that is no text, too long, or cannot be encoded."""
    if not isinstance(text, str):
        raise refused(400, f"expected only strings under {param}", param)
    if len(text) > TEXT_CHARACTERS:
        found = f"expected at most {TEXT_CHARACTERS:,} characters, found {len(text):,}"
        raise refused(400, f"{param}: {found}; split the text", param)
    try:
        text.encode()
    except UnicodeEncodeError:
        found = "expected Unicode, found half of a surrogate pair"
        raise refused(400, f"{param}: {found}", param) from None


def _texts(value: Any) -> list[str]:
    """Convert `input`, a string or a list of strings, to a list of texts."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise ValueError
    if len(texts) > INPUTS:
        found = f"expected at most {INPUTS:,} texts under input, found {len(texts):,}"
        raise refused(400, f"{found}; send several requests", "input")
    if any(isinstance(text, int | list) for text in texts):
        raise refused(
            400,
            "expected strings under input, found token ids; this model has other tokens: send the "
            "text itself (in LangChain: check_embedding_ctx_length=False)",
            "input",
        )
    for text in texts:
        _check_text(text, "input")
    return texts


class _Request(Record):
    """The body of a request for vectors; other keys of OpenAI's API are ignored."""

    encoding_format: Literal["float", "base64"] | None = Field(None, description="float or base64")
    model: str = Field(description="the name of a model, a text,")
    language: str | None = Field(None, description="a text")
    dimensions: int | None = Field(None, gt=0, lt=1 << 20, description="a whole number above 0")
    input: Annotated[list[str], BeforeValidator(_texts)] = Field(
        description="a string or a list of strings"
    )  # last: its errors end the validation


def _request(body: bytes) -> _Request:
    try:
        return _Request.model_validate(json.loads(body))
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        if not place:
            raise refused(400, "expected a JSON object with input and model") from None
        expected = _Request.model_fields[place[0]].description
        raise refused(400, f"expected {expected} under {place[0]}", place[0]) from None
    except (ValueError, RecursionError):
        raise refused(400, "expected a body of JSON in UTF-8") from None


# --- HTTP


def serve(service: Service, host: str, port: int) -> None:
    """Answer requests until SIGINT or SIGTERM; then finish the requests that have arrived.

    Print the address to standard output. Raises `EmsError` if the address cannot be used.
    """
    with closing(listen(host, port)) as listening, suppress(KeyboardInterrupt):
        url = url_of(listening)
        if not _is_local(listening):
            log.warning("anyone who reaches %s can use it: no password, no encryption", url)
        print(url, flush=True)
        server_of(service, listening).run([listening])
    log.info("stopped")


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket. Raises `EmsError` if the address cannot be used."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
        return listening
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise EmsError(
            f"--host {host} --port {port}: cannot listen there ({reason}); expected an address of "
            "this machine and a free port, or 0 for any free one"
        ) from None


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _is_local(listening: socket.socket) -> bool:
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def server_of(service: Service, listening: socket.socket) -> uvicorn.Server:
    """Configure the server of a service; `run` starts it and `should_exit` ends it."""
    config = uvicorn.Config(
        application(service, url_of(listening) if _is_local(listening) else None),
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=READING,
        h11_max_incomplete_event_size=HEAD,
    )
    return uvicorn.Server(config)


class Connection(H11Protocol):
    """A connection for one request.

    The head must arrive in time, the address may be plain UTF-8, and errors are answered in JSON.
    """

    def connection_made(self, transport: Any) -> None:
        """Close the connection after READING seconds unless a request has begun."""
        super().connection_made(transport)
        self.loop.call_later(READING, self._close_unless_asked)

    def _close_unless_asked(self) -> None:
        if self.cycle is None:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Escape an address that is not ASCII, which curl sends and h11 rejects."""
        if self.cycle is None:
            line, end, rest = data.partition(b"\n")
            line = re.sub(rb"[\x80-\xff]", lambda byte: b"%%%02X" % byte[0][0], line)
            data = line + end + rest
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not valid HTTP."""
        response = _finished("?", "", JSONResponse({"error": refused(400, msg).detail}, 400))
        head = h11.Response(status_code=400, headers=response.raw_headers, reason=b"Bad Request")
        for event in (head, h11.Data(data=response.body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))
        self.transport.close()


def application(service: Service, local: str | None) -> Starlette:
    """Build the web application; `local` is its URL if only this machine can reach it."""
    free, worker = asyncio.Semaphore(CONNECTIONS), ThreadPoolExecutor(1, "model")  # for PyTorch
    page = page_of(service)

    async def respond(call: Callable[[Any], Response], request: Request) -> Response:
        if local and not _names_loopback(request.headers.get("Host", "")):
            raise refused(403, f"expected localhost or {local} as the host")
        async with free:
            content = await _body(request) if request.method == "POST" else _query(request)
            try:
                loop = asyncio.get_running_loop()
                response = await loop.run_in_executor(worker, call, content)
            except HTTPException:
                raise
            except Exception as error:
                log.error("error: %r", error, exc_info=error)
                raise refused(500, "internal error; see the log of ems serve") from None
        return _finished(request.method, request.url.path, response)

    routes = [
        Route("/", partial(respond, lambda _: page)),
        Route("/search", partial(respond, service.search)),
        Route("/v1/models", partial(respond, service.models)),
        Route("/v1/embeddings", partial(respond, service.embeddings), methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refuse})
    app.router.redirect_slashes = False
    return app


async def _body(request: Request) -> bytes:
    """Read the body. Raises `HTTPException` if it is late, too long or without a length."""
    length = request.headers.get("Content-Length")
    if length is None or "Transfer-Encoding" in request.headers:
        raise refused(411, "expected a body with Content-Length, and no Transfer-Encoding")
    if int(length) > BODY:
        found = f"expected at most {BODY:,} bytes, found {int(length):,}"
        raise refused(413, f"{found}; send several requests")
    try:
        async with asyncio.timeout(READING):
            return await request.body()
    except (TimeoutError, ClientDisconnect):
        raise refused(408, f"expected the whole body within {READING} seconds") from None


def _query(request: Request) -> str:
    if len(request.url.query) > ADDRESS:
        raise refused(414, f"expected at most {ADDRESS:,} bytes of an address")
    return request.url.query


async def _refuse(request: Request, error: HTTPException) -> Response:
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
            async with asyncio.timeout(READING):
                left = DISCARDED
                async for part in request.stream():
                    left -= len(part)
                    if left < 0:
                        break
    response = JSONResponse({"error": error.detail}, error.status_code, headers)
    return _finished(request.method, request.url.path, response)


def _finished(method: str, path: str, response: Response) -> Response:
    """Add the common headers, and log the status without the query."""
    response.headers.update(HEADERS)
    response.headers.setdefault("Content-Security-Policy", NOTHING)
    log.info("%s %s %s", method, path[:100], response.status_code)
    return response


def _names_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def page_of(service: Service) -> Response:
    """Fill in the page, with a policy that allows only its own script and style."""
    page = files("ems.use").joinpath("page.html").read_text(encoding="utf-8")
    index = service.index
    about = f"No text to search. Start ems serve with --index TEXT. Model: {service.name}."
    if index:
        text = f"{index.lines:,} lines of {index.corpus.name}"
        about = f"Search {text} by meaning. Model: {service.name}."
    slots = {"ABOUT": html.escape(about), "HIDDEN": "" if index else "hidden"}
    for name, value in {**slots, "LINES": str(MOST_LINES), "K": str(DEFAULT_LINES)}.items():
        page = page.replace(f"{{{{{name}}}}}", value)
    rules = [NOTHING]
    for element in ("script", "style"):
        contents = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digests = [hashlib.sha256(content.encode()).digest() for content in contents]
        hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
        rules.append(f"{element}-src {' '.join(hashes)}")
    rules.append("img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'")
    return HTMLResponse(page, headers={"Content-Security-Policy": "; ".join(rules)})
