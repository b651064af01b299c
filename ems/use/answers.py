"""What a server answers: vectors as the embeddings API of OpenAI gives them, and lines of a text.

https://platform.openai.com/docs/api-reference/embeddings
"""

import base64
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from ems.base.errors import EmsError
from ems.use.encoder import Encoder
from ems.use.search import Index

INPUTS = 2048  # texts of a request, as at OpenAI
LENGTH = 32_768  # characters of a text
LINES = 100  # of a search
SHOWN = 2_000  # characters of a line that is found
K = 5
Answer = dict[str, Any]


class Refused(Exception):
    """A request that is refused: the HTTP status, what is wrong, and with which parameter."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code

    def answer(self) -> Answer:
        """Return the error as OpenAI's API has it."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        about = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return {"error": about}


@dataclass(frozen=True)
class Service:
    """A model, the index of a text or None, and the languages of lines and of queries.

    Its methods take the body or the query of a request, and raise `Refused`.
    """

    encoder: Encoder
    index: Index | None = None
    language: str | None = None
    query_language: str | None = None
    created: int = 0  # Unix seconds

    def __post_init__(self) -> None:
        """Raise `EmsError` for a language that the model does not take."""
        if self.language:
            self.encoder.encode(["a"], self.language)
        if self.index or self.query_language:
            self.encoder.encode(["a"], self.query_language)

    @property
    def name(self) -> str:
        """The name of the model: that of its folder, or of the hub."""
        folder = Path(self.encoder.model)
        return folder.resolve().name if folder.exists() else self.encoder.model

    def models(self, _: str) -> Answer:
        """Return the list of models, which has one."""
        about = {"id": self.name, "object": "model", "created": self.created, "owned_by": "ems"}
        return {"object": "list", "data": [about]}

    def search(self, query: str) -> Answer:
        """Return the lines of the text that are nearest to `q`, `k` of them."""
        if self.index is None:
            raise Refused(404, "there is no text to search in; start ems serve with --index TEXT")
        asked, k = _question(query)
        started = time.monotonic()
        try:
            (hits,) = self.index.search([asked], self.query_language, k)
        except EmsError as error:
            raise Refused(503, str(error)) from None
        seconds = round(time.monotonic() - started, 6)
        results = [
            {"score": hit.score, "number": hit.number, "line": _shown(hit.line)} for hit in hits
        ]
        return {"query": asked, "k": k, "lines": self.index.lines, "seconds": seconds} | {
            "results": results
        }

    def embeddings(self, body: bytes) -> Answer:
        """Return the vectors of the texts of a request, of length 1."""
        asked = _request(body)
        if asked.model != self.name:
            known = f"the model {asked.model[:LENGTH]!r} does not exist; here is {self.name!r}"
            raise Refused(404, known, "model", "model_not_found")
        language = asked.language or self.language
        try:
            vectors = self.encoder.encode(
                asked.texts, language, normalise=True, dimensions=asked.dimensions
            )
            tokens = sum(self.encoder.token_counts(asked.texts, language))
        except EmsError as error:
            raise Refused(400, str(error)) from None
        rows = _in_base64(vectors) if asked.in_base64 else vectors.tolist()
        data = [
            {"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data, "model": self.name, "usage": usage}


def _in_base64(vectors: np.ndarray) -> list[str]:
    """Return each row of float32[N, d] as base64 of its little-endian bytes."""
    return [base64.b64encode(row.tobytes()).decode() for row in vectors.astype("<f4")]


def _shown(line: str) -> str:
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def _question(query: str) -> tuple[str, int]:
    """Return what the query string of a search asks for, and how many lines."""
    try:
        given = dict(parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=20))
    except ValueError:  # of bytes that are not UTF-8, or too many fields
        raise Refused(400, "expected q and k in the address, in UTF-8") from None
    asked, k = given.get("q", ""), given.get("k", str(K))
    if not asked.strip():
        raise Refused(400, "expected a query under q, found none", "q")
    if not (k.isascii() and k.isdigit() and len(k) < 9 and 1 <= int(k) <= LINES):
        raise Refused(400, f"expected a whole number from 1 to {LINES} under k", "k")
    _check_text(asked, "q")
    return asked, int(k)


@dataclass(frozen=True)
class _Request:
    """A request for vectors."""

    texts: Sequence[str]
    model: str
    dimensions: int
    in_base64: bool
    language: str | None


def _request(body: bytes) -> _Request:
    """Return what a body in JSON asks for. Other keys than ours are ignored."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "expected a body of JSON in UTF-8") from None
    if not isinstance(given, dict):
        raise Refused(400, "expected a JSON object with input and model")
    form = given.get("encoding_format")
    if form not in (None, "float", "base64"):
        raise Refused(400, "expected encoding_format float or base64", "encoding_format")
    model, language = (_text_or_none(given, key) for key in ("model", "language"))
    if model is None:
        raise Refused(400, "expected the name of a model under model", "model")
    dimensions = given.get("dimensions")
    if dimensions is not None and (type(dimensions) is not int or not 0 < dimensions < 1 << 20):
        raise Refused(400, "expected a whole number above 0 under dimensions", "dimensions")
    return _Request(_texts(given.get("input")), model, dimensions or 0, form == "base64", language)


def _text_or_none(given: dict[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise Refused(400, f"expected a text under {key}", key)
    return value


def _texts(value: Any) -> list[str]:
    """Return the texts of `input`: a string, or a list of strings."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise Refused(400, "expected a string or a list of strings under input", "input")
    if len(texts) > INPUTS:
        found = f"expected at most {INPUTS:,} texts under input, found {len(texts):,}"
        raise Refused(400, f"{found}; send several requests", "input")
    if any(isinstance(text, int | list) for text in texts):
        raise Refused(
            400,
            "expected strings under input, found token ids; this model has other tokens: send the "
            "text itself (in LangChain: check_embedding_ctx_length=False)",
            "input",
        )
    for text in texts:
        _check_text(text, "input")
    return texts


def _check_text(text: Any, param: str) -> None:
    """Raise `Refused` unless a value is a text that can be encoded, and not too long."""
    if not isinstance(text, str):
        raise Refused(400, f"expected only strings under {param}", param)
    if len(text) > LENGTH:
        found = f"expected at most {LENGTH:,} characters, found {len(text):,}"
        raise Refused(400, f"{param}: {found}; split the text", param)
    try:
        text.encode()
    except UnicodeEncodeError:
        found = "expected Unicode, found half of a surrogate pair"
        raise Refused(400, f"{param}: {found}", param) from None
