"""Search a text by meaning: an index of its lines, and the lines nearest to queries.

    <index>/vectors.npy    float32 (or float16) of length 1, a row a line
    <index>/index.json     the model, and the text with its size and checksum

The text itself stays where it is. The search is exact and reads the vectors block by block.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import read_json, sha256_file, state_of, write_json
from ems.base.schema import Count, Record
from ems.base.schema import Text as Words
from ems.bench.nearest import nearest
from ems.use import stream
from ems.use.encoder import Encoder
from ems.use.files import Form, Text, encode

VECTORS, ABOUT = "vectors.npy", "index.json"
AGAIN = "make it again with --build"


class _About(Record):
    """index.json: the text of an index, and the model that encoded it."""

    model: Words
    bytes: Count
    sha256: Words
    lines: Count


@dataclass(frozen=True)
class Hit:
    """A line of the text, its number from 1, and its cosine with the query."""

    score: float
    number: int
    line: str


def place_of(corpus: Path) -> Path:
    return corpus.with_name(f"{corpus.name}.index")


def is_index(folder: Path) -> bool:
    """Return whether a folder is an index of ours, or the beginnings of one."""
    names = {path.name for path in folder.iterdir()}
    return names <= {VECTORS, ABOUT, state_of(folder / VECTORS).name}


def build(encoder: Encoder, corpus: Text, folder: Path, half: bool, skip: bool) -> None:
    """Write the index of a text; what a killed run has done is used.

    Raises `EmsError` for standard input and .gz: the lines that are found are read from the text.
    """
    path = corpus.path
    if path == stream.STREAM or path.suffix == ".gz":
        raise EmsError(f"{path}: expected a plain text file to search in; unpack it first")
    if folder.is_dir() and not is_index(folder):
        raise EmsError(f"{folder}: expected an index of a text, found other files; move it away")
    (folder / ABOUT).unlink(missing_ok=True)
    encode(encoder, corpus, folder / VECTORS, Form(normalise=True, half=half), skip)
    about = {"model": encoder.identity, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
    lines = len(np.load(folder / VECTORS, mmap_mode="r"))
    write_json(folder / ABOUT, {**about, "lines": lines})


@contextmanager
def index_of(encoder: Encoder, corpus: Text, skip: bool) -> Iterator[Path]:
    """Yield the folder of the index of a text: the built one, or a temporary one."""
    folder = place_of(corpus.path)
    if (folder / ABOUT).is_file():
        yield folder
        return
    stream.log.info("%s: no index yet; --build keeps one for the next searches", corpus.path)
    with TemporaryDirectory(prefix="ems-") as temporary:
        build(encoder, corpus, Path(temporary), False, skip)
        yield Path(temporary)


class Index:
    """An index that is open for many searches.

    Raises `EmsError` for an index of another model, or of another text.
    """

    def __init__(self, encoder: Encoder, corpus: Path, folder: Path) -> None:
        self.encoder, self.corpus, self.folder = encoder, corpus, folder
        self._state = _state(corpus)
        self.lines = _check(encoder, corpus, folder)
        self._vectors = np.load(folder / VECTORS, mmap_mode="r")
        self._starts = stream.starts_of(corpus, self.lines)

    def search(self, queries: Sequence[str], language: str | None, k: int) -> list[list[Hit]]:
        """Return the k nearest lines of each query, the nearest first; of equals the first.

        Raises `EmsError` if the text has changed since it was opened.
        """
        if _state(self.corpus) != self._state:
            raise _changed(self.corpus, self.folder)
        if not (self.lines and queries):
            return [[] for _ in queries]
        asked = self.encoder.encode(queries, language, normalise=True)
        found, _ = nearest(asked, self._vectors, k, what="")
        texts = stream.lines_at(self.corpus, self._starts, found.index.ravel())
        return [
            [Hit(score, at + 1, next(texts)) for score, at in zip(*row, strict=True)]
            for row in zip(found.similarity.tolist(), found.index.tolist(), strict=True)
        ]


def _state(corpus: Path) -> tuple[int, int, int]:
    """Return what changes when a file is written or replaced."""
    state = corpus.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


def _changed(corpus: Path, folder: Path) -> EmsError:
    return EmsError(f"{folder}: {corpus} has changed since; {AGAIN}")


def _check(encoder: Encoder, corpus: Path, folder: Path) -> int:
    """Return the lines of an index. Raises `EmsError` as `Index` does."""
    about = read_json(folder / ABOUT, _About)
    if about.model != encoder.identity:
        raise EmsError(f"{folder}: the index of another model, or of another device; {AGAIN}")
    if about.bytes != corpus.stat().st_size or about.sha256 != sha256_file(corpus):
        raise _changed(corpus, folder)
    return about.lines
