"""Search a text by meaning: build an index of its lines, find the lines nearest to queries.

    <index>/vectors.npy    float32 (or float16) of length 1, one row per line
    <index>/index.json     the model, and the text with its size and checksum

The text itself stays where it is. The search is exact and reads the vectors block by block.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import read_json, sha256_file, state_of, write_json
from ems.base.progress import log
from ems.base.schema import Count, NonBlank, Record
from ems.base.texts import STREAM, packing
from ems.bench.nearest import nearest
from ems.use.arguments import texts_of, whole
from ems.use.encoder import Encoder, Language
from ems.use.files import VectorForm, encode
from ems.use.stream import TextInput, lines_at, starts_of

VECTORS, ABOUT = "vectors.npy", "index.json"
AGAIN = "make it again with --build"


class _About(Record):
    """The content of index.json: the text of an index, and the model that encoded it."""

    model: NonBlank
    bytes: Count
    sha256: NonBlank
    lines: Count


@dataclass(frozen=True)
class Hit:
    """A line of the text with its number, from 1, and its cosine with the query."""

    score: float
    number: int
    line: str


def index_folder(corpus: Path) -> Path:
    return corpus.with_name(f"{corpus.name}.index")


@contextmanager
def index_of(encoder: Encoder, corpus: TextInput) -> Iterator["Index"]:
    """Open the built index of a text, or a temporary one."""
    folder = index_folder(corpus.path)
    if (folder / ABOUT).is_file():
        yield Index(encoder, corpus.path, folder)
        return
    log.info("%s: no index yet; --build keeps one for later searches", corpus.path)
    with TemporaryDirectory(prefix="ems-") as temporary:
        build_index(encoder, corpus, Path(temporary))
        yield Index(encoder, corpus.path, Path(temporary))


def build_index(encoder: Encoder, corpus: TextInput, folder: Path, half: bool = False) -> None:
    """Write the index of a text; a killed run is resumed.

    Raises `EmsError` for standard input and compressed files, because results are read from the
    text itself.
    """
    path, vectors = corpus.path, folder / VECTORS
    if path == STREAM or packing(path):
        raise EmsError(f"{path}: expected a plain text file to search; unpack it first")
    names = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if not names <= {VECTORS, ABOUT, state_of(vectors).name}:
        raise EmsError(f"{folder}: expected an index of a text, found other files; move it away")
    (folder / ABOUT).unlink(missing_ok=True)
    encode(encoder, corpus, vectors, VectorForm(normalise=True, half=half))
    about = {"model": encoder.identity, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
    write_json(folder / ABOUT, {**about, "lines": len(np.load(vectors, mmap_mode="r"))})


class Index:
    """An index opened for searches.

    Raises `EmsError` for an index of another model, or of another text.
    """

    def __init__(self, encoder: Encoder, corpus: Path, folder: Path) -> None:
        self.encoder, self.corpus = encoder, corpus
        self._changed = f"{folder}: it or {corpus} has changed since; {AGAIN}"
        self._files = (corpus, folder / VECTORS)
        self._states = _states(self._files)
        about = read_json(folder / ABOUT, _About)
        if about.model != encoder.identity:
            raise EmsError(f"{folder}: the index of another model, or of another device; {AGAIN}")
        if about.bytes != corpus.stat().st_size or about.sha256 != sha256_file(corpus):
            raise EmsError(self._changed)
        self.lines = about.lines
        self._vectors = np.load(folder / VECTORS, mmap_mode="r")
        self._starts = starts_of(corpus, self.lines)

    def search(self, queries: Any, language: Language = None, k: int = 5) -> Any:
        """Find the k nearest lines of each query, the nearest first, then by line number: a list of
        `Hit` per query, or one list for one text.

        Raises `EmsError` if the text or the index has changed since it was opened: to read vectors
        after the end of a file that became shorter would kill the process.
        """
        if _states(self._files) != self._states:
            raise EmsError(self._changed)
        lines, single = texts_of(queries, "queries")
        if not (self.lines and lines):
            return [] if single else [[] for _ in lines]
        vectors = self.encoder.encode(lines, language, normalise=True)
        hits, _ = nearest(vectors, self._vectors, whole(k, "k"), what="")
        texts = lines_at(self.corpus, self._starts, hits.index.ravel())
        found = [
            [Hit(score, line + 1, next(texts)) for score, line in zip(*row, strict=True)]
            for row in zip(hits.similarity.tolist(), hits.index.tolist(), strict=True)
        ]
        return found[0] if single else found


def _states(paths: Sequence[Path]) -> list[tuple[int, int, int]]:
    """Return properties that change when a file is written, replaced or deleted."""
    states = [path.stat() for path in paths if path.exists()]
    return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states]
