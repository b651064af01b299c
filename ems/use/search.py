"""Search a text by meaning: build an index of its lines, find the lines nearest to queries.

    <index>/vectors.npy    float32 (or float16) of length 1, one row per line
    <index>/index.json     the model, and the text and the vectors with size and checksum
    <text>.languages       the code of each line's language, if somebody has written it

The text itself stays where it is. The search is exact and reads the vectors block by block.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import MARK, kind_of, read_json, sha256_file, state_of, write_json
from ems.base.progress import log
from ems.base.records import Bounds, Count, NonBlank, Record
from ems.base.texts import FORMS, STREAM, packing
from ems.bench.nearest import nearest
from ems.use.arguments import texts_of, whole
from ems.use.encoder import Encoder, Language
from ems.use.files import VectorForm, encode
from ems.use.stream import TextInput, lines_at, starts_of

VECTORS, ABOUT = "vectors.npy", "index.json"
BLOCK = 1 << 24  # bytes of vectors that are checked at once
TOLERANCE = 0.01  # of the squared length of a vector, which half precision rounds
AGAIN = "make it again with --build"


class _About(Record):
    """The content of index.json: the text of an index, the model that encoded it, the vectors."""

    model: NonBlank
    bytes: Count
    sha256: NonBlank
    lines: Count
    width: Annotated[int, Bounds(ge=1, le=1 << 20), "a width"]
    dtype: Literal["float32", "float16"]
    vectors: NonBlank  # SHA-256 of the file


@dataclass(frozen=True)
class Hit:
    """A line with its number, from 1, its cosine with the query, and its language, if known."""

    score: float
    number: int
    line: str
    language: str | None = None


def index_folder(corpus: Path) -> Path:
    return corpus.with_name(f"{corpus.name}.index")


@contextmanager
def index_of(encoder: Encoder, corpus: TextInput) -> Iterator["Index"]:
    """Open the built index of a text, or a temporary one."""
    folder = index_folder(corpus.path)
    with ExitStack() as stack:
        if not (folder / ABOUT).is_file():
            log.info("%s: no index yet; --build keeps one for later searches", corpus.path)
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="ems-")))
            build_index(encoder, corpus, folder)
        yield Index(encoder, corpus.path, folder)


def build_index(encoder: Encoder, corpus: TextInput, folder: Path, half: bool = False) -> None:
    """Write or resume the index of a text. Raises `EmsError` for stdin and compressed files."""
    path, vectors = corpus.path, folder / VECTORS
    if path == STREAM or packing(path) in FORMS:
        raise EmsError(f"{path}: expected a plain text file to search; unpack it first")
    kind, ours = kind_of(folder), {VECTORS, ABOUT, MARK, state_of(vectors).name}
    names = {file.name for file in folder.iterdir()} if kind == "a folder" else set()
    if kind not in ("nothing", "a folder") or names == {VECTORS} or not names <= ours:
        found = "other files" if names else kind
        raise EmsError(f"{folder}: expected an index of a text, found {found}; move it away")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()  # until index.json is there: a killed run's vectors are ours
    try:
        encode(encoder, corpus, vectors, VectorForm(normalise=True, half=half))
    except EmsError:
        (folder / MARK).unlink()
        with suppress(OSError):  # finished pieces are in it
            folder.rmdir()
        raise
    about = {"model": encoder.identity, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
    rows = np.load(vectors, mmap_mode="r")
    about |= {"lines": len(rows), "width": rows.shape[1], "dtype": rows.dtype.name}
    write_json(folder / ABOUT, {**about, "vectors": sha256_file(vectors)})
    (folder / MARK).unlink()


def _opened(path: Path, about: _About) -> np.ndarray:
    """Map the vectors of an index, after all of them have been compared with index.json. Raises
    `EmsError` for another kind, header, size or checksum, and for rows of other lengths.
    """
    form = VectorForm(half=about.dtype == "float16")
    header, row = form.header(about.lines, about.width), about.width * form.dtype.itemsize
    expected = f"{about.dtype}[{about.lines}, {about.width}] as in {ABOUT}"
    if path.is_symlink() or kind_of(path) != "a file":
        raise EmsError(f"{path}: expected a regular file, found another kind or none; {AGAIN}")
    with open(path, "rb") as reader:
        if reader.read(len(header)) != header:
            raise EmsError(f"{path}: expected {expected}, found another type or shape; {AGAIN}")
        size, whole = os.fstat(reader.fileno()).st_size, hashlib.sha256(header)
        if size != len(header) + about.lines * row:
            raise EmsError(f"{path}: expected {expected}, found {size:,} bytes; {AGAIN}")
        while block := reader.read(max(1, BLOCK // row) * row):
            whole.update(block)
            rows = np.frombuffer(block, about.dtype).reshape(-1, about.width).astype(np.float32)
            squares = np.einsum("nd,nd->n", rows, rows)
            if not ((abs(squares - 1) < TOLERANCE) | (squares == 0)).all():
                raise EmsError(f"{path}: expected vectors of length 1 or 0, found others; {AGAIN}")
    if whole.hexdigest() != about.vectors:
        raise EmsError(f"{path}: its SHA-256 is not the one in {ABOUT}; {AGAIN}")
    return np.load(path, mmap_mode="r")


class Index:
    """An index to search. Raises `EmsError` if it is damaged, or of another model or text."""

    def __init__(self, encoder: Encoder, corpus: Path, folder: Path) -> None:
        self.encoder, self.corpus = encoder, corpus
        self._changed = f"{folder}: it or {corpus} has changed since; {AGAIN}"
        self._files = (corpus, folder / VECTORS)
        self._states = _states(self._files)
        try:
            about = read_json(folder / ABOUT, _About)
        except EmsError as error:
            raise EmsError(f"{error.finding}; {AGAIN}") from None
        if about.model != encoder.identity:
            raise EmsError(f"{folder}: the index of another model, or of another device; {AGAIN}")
        if about.bytes != corpus.stat().st_size or about.sha256 != sha256_file(corpus):
            raise EmsError(self._changed)
        self.lines = about.lines
        self._vectors = _opened(folder / VECTORS, about)
        self._starts = starts_of(corpus, self.lines)
        self._languages = _languages_of(corpus, self.lines)

    def search(self, queries: Any, language: Language = None, k: int = 5) -> Any:
        """Find the k nearest lines of each query, the nearest first, then by line number: a list of
        `Hit` per query, or one list for one text. Raises `EmsError` if the text or the index has
        changed since: to read vectors after the end of a shorter file would kill the process.
        """
        if _states(self._files) != self._states:
            raise EmsError(self._changed)
        lines, single = texts_of(queries, "queries")
        if not (self.lines and lines):
            return [] if single else [[] for _ in lines]
        vectors = self.encoder.encode(lines, language, normalise=True)
        if vectors.shape[1] != self._vectors.shape[1]:
            raise EmsError(f"{self._files[1]}: not as wide as the vectors of the model; {AGAIN}")
        hits, _ = nearest(vectors, self._vectors, whole(k, "k"), what="")
        texts = lines_at(self.corpus, self._starts, hits.index.ravel())
        code = self._languages.get
        found = [
            _ordered([Hit(score, n, next(texts), code(n)) for score, n in zip(*row, strict=True)])
            for row in zip(hits.similarity.tolist(), (hits.index + 1).tolist(), strict=True)
        ]
        return found[0] if single else found

    def examples(self, count: int) -> list[str]:
        """Return up to `count` short lines, evenly spread over the text."""
        step = max(1, self.lines // count)
        rows = np.arange(step // 2, self.lines, step)[:count]
        return [line for line in lines_at(self.corpus, self._starts, rows) if 0 < len(line) < 100]


def _ordered(hits: list[Hit]) -> list[Hit]:
    """Give copies of a line the score of the nearest, since in a product they have other bits."""
    score = {hit.line: hit.score for hit in reversed(hits)}
    same = [replace(hit, score=score[hit.line]) for hit in hits]
    return sorted(same, key=lambda hit: (-hit.score, hit.number))


def _languages_of(corpus: Path, lines: int) -> dict[int, str]:
    """Read the language of each line, by its number, from NAME.languages; {} without that file.
    Raises `EmsError` unless it has a code, or nothing, for each of the `lines`.
    """
    path = corpus.with_name(f"{corpus.name}.languages")
    texts = TextInput(path).texts() if path.exists() else {}
    codes = {number: sys.intern(code.strip()) for number, code in texts.items()}
    odd = next((code for code in codes.values() if not re.fullmatch(r"[\w-]*", code)), None)
    if path.exists() and (odd or len(codes) != lines):
        found = f"{odd!r}" if odd else f"{len(codes):,}"
        raise EmsError(f"{path}: expected {lines:,} lines with a code like de, found {found}")
    return codes


def _states(paths: Sequence[Path]) -> list[tuple[int, int, int]]:
    """Return properties that change when a file is written, replaced or deleted."""
    states = [path.stat() for path in paths if path.exists()]
    return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states]
