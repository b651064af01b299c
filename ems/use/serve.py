"""Serve a search page, and OpenAI's API of embeddings, over HTTP.

    GET  /                the page (page.html)
    GET  /health          {"status": "ok"}, without the model
    GET  /search?q=&k=    the k lines nearest to q
    GET  /v1/models       the model
    POST /v1/embeddings   vectors (https://platform.openai.com/docs/api-reference/embeddings)

One thread uses the model. CONNECTIONS requests take turns there, portion by portion; the others
wait. On a loopback address the host of a request must be a loopback name, so that no web page can
reach the server through DNS rebinding. No other origin may read an answer.
"""

import asyncio
import base64
import hashlib
import html
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ems.base.errors import EmsError, NotFinite, mistake
from ems.base.files import SURROGATE
from ems.base.progress import log
from ems.base.records import Bounds, Misfit, Record, fitting
from ems.base.texts import batched
from ems.use import connection
from ems.use.connection import finished, is_local, refused, url_of
from ems.use.encoder import Encoder
from ems.use.search import Index

INPUTS = 2048  # maximum texts of a request, as in OpenAI's API
TEXT_CHARACTERS = 32_768  # maximum characters of a text
MOST_LINES = 100  # maximum results of a search
LINE_CHARACTERS = 2_000  # maximum characters of a result
DEFAULT_LINES = 5
PORTION = 256  # texts after which, as after TEXT_CHARACTERS, other requests get their turn
_FOLDERS = re.compile(r"(?<![^\s'\"(=])~?/(?:[^\s'\":;,()]*/)*")  # of an absolute path
CONNECTIONS = 16  # answered at once; the others wait
Steps = Callable[[Any], Iterator[Response | None]]  # None: other requests get their turn


@dataclass(frozen=True)
class Service:
    """Answers requests with a model and perhaps the index of a text. `search` takes a query string,
    `embeddings` a body. They raise `HTTPException`.
    """

    encoder: Encoder
    index: Index | None = None
    language: str | None = None
    query_language: str | None = None
    created: int = field(default_factory=lambda: int(time.time()))  # Unix seconds

    def __post_init__(self) -> None:
        """Raise `EmsError` for a missing or unknown language, and vectors that are not finite."""
        languages = [code for code in (self.language, self.query_language) if code]
        if self.index and not self.query_language:
            languages.append(None)
        for language in languages or self.encoder.languages[:1] or [None]:
            self.encoder.vectors(["a"], language)

    @property
    def name(self) -> str:
        """The name of the model folder, or of the model on the hub."""
        folder = Path(self.encoder.model)
        return folder.resolve().name if folder.exists() else self.encoder.model

    def models(self) -> Response:
        about = {"id": self.name, "object": "model", "created": self.created, "owned_by": "ems"}
        return JSONResponse({"object": "list", "data": [about]})

    def search(self, query: str) -> Iterator[Response]:
        """Answer with the `k` lines of the text nearest to `q`."""
        if self.index is None:
            raise refused(404, "there is no text to search; start ems serve with --index TEXT")
        question, k = _question(query)
        started = time.monotonic()
        try:
            (hits,) = self.index.search([question], self.query_language, k)
        except (EmsError, OSError) as error:
            raise refused(503, self._without_folders(error)) from None
        seconds = round(time.monotonic() - started, 6)
        results = []
        for hit in hits:
            more = "…" if len(hit.line) > LINE_CHARACTERS else ""
            results.append({**vars(hit), "line": hit.line[:LINE_CHARACTERS] + more})
        about = {"query": question, "k": k, "lines": self.index.lines, "seconds": seconds}
        yield JSONResponse({**about, "results": results})

    def embeddings(self, body: bytes) -> Iterator[Response | None]:
        """Answer with the vectors of the texts, scaled to length 1; yield None between portions."""
        asked = _request(body)
        if asked.model != self.name:
            known = f"the model {asked.model!r} does not exist"
            raise refused(404, f"{known}; here is {self.name!r}", "model", "model_not_found")
        rows: list[str] = []
        tokens, in_base64 = 0, asked.encoding_format == "base64"
        for texts in batched(asked.input, len, PORTION, TEXT_CHARACTERS):
            vectors, counts = self._encoded(texts, asked)
            tokens += sum(counts)
            for vector in vectors.astype("<f4", copy=False):
                coded = base64.b64encode(vector).decode() if in_base64 else vector.tolist()
                at = {"object": "embedding", "index": len(rows)}
                rows.append(json.dumps({**at, "embedding": coded}))
            yield None
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        about = json.dumps({"object": "list", "model": self.name, "usage": usage})
        content = f'{about[:-1]}, "data": [{", ".join(rows)}]}}'
        yield Response(content, media_type="application/json")

    def _encoded(self, texts: list[str], asked: "_Request") -> tuple[np.ndarray, list[int]]:
        language = asked.language or self.language
        try:
            vectors, counts = self.encoder.counted(texts, language, asked.dimensions, True)
            counts = counts or self.encoder.token_counts(texts, language)
        except EmsError as error:
            status = 500 if isinstance(error, NotFinite) else 400
            raise refused(status, self._without_folders(error)) from None
        return vectors, counts

    def _without_folders(self, error: Exception) -> str:
        """Return a message with the names of files instead of their places on this machine."""
        message = str(error)
        for place in {self.encoder.model, str(Path(self.encoder.model))}:
            message = message.replace(place, self.name) if "/" in place else message
        if self.index:
            message = message.replace(f"{self.index.corpus.parent}/", "")
        return _FOLDERS.sub("", message)


def _question(query: str) -> tuple[str, int]:
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
    if SURROGATE.search(text):
        found = "expected Unicode, found half of a surrogate pair"
        raise refused(400, f"{param}: {found}", param)


def _texts(value: Any) -> list[str]:
    if not isinstance(value, str | list) or value == []:
        raise refused(400, "expected a string or a list of strings under input", "input")
    texts = [value] if isinstance(value, str) else value
    if len(texts) > INPUTS:
        found = f"expected at most {INPUTS:,} texts under input, found {len(texts):,}"
        raise refused(400, f"{found}; send several requests", "input")
    if any(isinstance(text, int | list) for text in texts):
        raise refused(400, str(mistake("token ids")), "input")
    for text in texts:
        _check_text(text, "input")
    return texts


class _Request(Record):
    """The body of a request for vectors; other keys of OpenAI's API are ignored."""

    encoding_format: Annotated[Literal["float", "base64"] | None, "float or base64"] = None
    model: Annotated[str, "the name of a model, a text,"]
    language: Annotated[str | None, "a text"] = None
    dimensions: Annotated[int | None, Bounds(gt=0, lt=1 << 20), "a whole number above 0"] = None
    input: Annotated[Any, "a string or a list of strings"]


def _request(body: bytes) -> _Request:
    try:
        asked = fitting(_Request, json.loads(body))
        return replace(asked, input=_texts(asked.input))
    except Misfit as error:
        if not error.place:
            raise refused(400, "expected a JSON object with input and model") from None
        key = error.place[0]
        raise refused(400, f"expected {error.expected} under {key}", key) from None
    except (ValueError, RecursionError):
        raise refused(400, "expected a body of JSON in UTF-8") from None


# --- HTTP


def serve(service: Service, host: str, port: int) -> None:
    """Answer requests until SIGINT or SIGTERM; then finish the requests that have arrived. Print
    the address to standard output. Raises `EmsError` if the address cannot be used.
    """
    with closing(connection.listen(host, port)) as listening, suppress(KeyboardInterrupt):
        url = url_of(listening)
        if not is_local(listening):
            log.warning("anyone who reaches %s can use it: no password, no encryption", url)
        print(url, flush=True)
        server_of(service, listening).run([listening])
    log.info("stopped")


def server_of(service: Service, listening: socket.socket) -> uvicorn.Server:
    local = url_of(listening) if is_local(listening) else None
    return connection.server_for(application(service, local))


def application(service: Service, local: str | None) -> Starlette:
    """Build the web application; `local` is its URL if only this machine can reach it."""
    free, worker = asyncio.Semaphore(CONNECTIONS), ThreadPoolExecutor(1, "model")  # for PyTorch
    page = page_of(service)

    async def asked(request: Request) -> str | bytes:
        if local and not connection.names_loopback(request.headers.get("Host", "")):
            raise refused(403, f"expected localhost or {local} as the host")
        return await connection.content_of(request)

    async def at_once(answer: Callable[[], Response], request: Request) -> Response:
        await asked(request)
        return finished(request.method, request.url.path, answer())

    async def by_model(answer: Steps, request: Request) -> Response:
        content, response = await asked(request), None
        async with free:
            try:
                steps = answer(content)
                while response is None and not await request.is_disconnected():
                    response = await asyncio.get_running_loop().run_in_executor(worker, next, steps)
            except HTTPException:
                raise
            except Exception as error:
                log.error("error: %r", error, exc_info=error)
                raise refused(500, "internal error; see the log of ems serve") from None
        return finished(request.method, request.url.path, response or Response(status_code=499))

    routes = [
        Route("/", partial(at_once, lambda: page)),
        Route("/health", partial(at_once, lambda: JSONResponse({"status": "ok"}))),
        Route("/search", partial(by_model, service.search)),
        Route("/v1/models", partial(at_once, service.models)),
        Route("/v1/embeddings", partial(by_model, service.embeddings), methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: connection.refuse})
    app.router.redirect_slashes = False
    return app


def page_of(service: Service) -> Response:
    """Fill in the page, with a policy that allows only its own script and style."""
    page = files("ems.use").joinpath("page.html").read_text(encoding="utf-8")
    about: dict[str, Any] = {"model": service.name, "lines": None, "most": MOST_LINES}
    if index := service.index:
        about |= {"lines": index.lines, "corpus": index.corpus.name}
        about["examples"] = index.examples(DEFAULT_LINES)
    page = page.replace("{{ABOUT}}", html.escape(json.dumps(about)))
    rules = [connection.NOTHING]
    for element in ("script", "style"):
        contents = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digests = [hashlib.sha256(content.encode()).digest() for content in contents]
        hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
        rules.append(f"{element}-src {' '.join(hashes)}")
    rules.append("img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'")
    return HTMLResponse(page, headers={"Content-Security-Policy": "; ".join(rules)})
