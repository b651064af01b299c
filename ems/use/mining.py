"""Mine pairs out of two files, and score pairs by margin, in bounded memory.

Both sides are encoded to files and mapped, so that they may be larger than the memory. The search
is the benchmarks' (`ems.bench.nearest`): exact, or above a number of lines that the user names that
of the package faiss. Its parts are kept as they are done, so a killed run goes on and gives the
same bytes. Lines without text, and bad ones that are skipped, have vectors of zeros and are in no
pair.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ems.base.errors import EmsError
from ems.base.files import atomic_path
from ems.base.provenance import source_hash
from ems.bench.margin import Mined, pairs_of, scores_of
from ems.bench.nearest import ROWS, Neighbours, keys_of, merged, nearest, parts_of
from ems.text.pieces import Advance, Piece, done_pieces
from ems.use import stream
from ems.use.encoder import Encoder
from ems.use.files import Form, Text, encoding, written
from ems.use.pairs import above, cosines, with_text

PARTS, LEAST = 32, 4 * ROWS  # of a search: parts at most, rows of one at least
UNIT = Form(normalise=True)


@dataclass(frozen=True)
class Search:
    """How neighbours are found: k of each line, by which margin, on which device; `faiss_above`
    lines of either side (0: never) by faiss.
    """

    neighbours: int = 4
    margin: str = "ratio"
    device: str = "auto"
    faiss_above: int = 0


class Vectors:
    """The rows float32[N, d] of one side, in the files of pieces; a slice is read when it is asked.

    `side` of `sides` that each line has in a file.
    """

    def __init__(self, files: list[Path], width: int, side: int = 0, sides: int = 1) -> None:
        self.files, self.width, self.side, self.sides = files, width, side, sides
        counts = [path.stat().st_size // (4 * width * sides) for path in files]
        self.begins = np.cumsum([0, *counts]).tolist()

    def __len__(self) -> int:
        return self.begins[-1]

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, end, _ = rows.indices(len(self))
        parts = [np.empty((0, self.width), np.float32)]
        for path, first, after in zip(self.files, self.begins, self.begins[1:], strict=False):
            low, high = max(start, first), min(end, after)
            if low < high:
                parts.append(self._read(path, low - first, high - low))
        return np.concatenate(parts)

    def _read(self, path: Path, row: int, count: int) -> np.ndarray:
        size = self.width * self.sides
        read = np.fromfile(path, "<f4", count * size, offset=4 * row * size)
        return read.reshape(count, self.sides, self.width)[:, self.side]

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield all rows, ROWS at a time."""
        return (self[start : start + ROWS] for start in range(0, len(self), ROWS))

    def with_text(self) -> np.ndarray:
        """Return which rows are not zeros, bool[N]."""
        return np.concatenate([np.zeros(0, bool), *(rows.any(axis=1) for rows in self.blocks())])


@dataclass(frozen=True)
class Side:
    """An encoded text: its plain file, and the vectors of its lines, or of both sides of pairs."""

    text: Path
    vectors: tuple[Vectors, ...]

    def lines(self, rows: np.ndarray) -> Iterator[str]:
        """Return the text of some lines, with a space for a tab."""
        starts = stream.starts_of(self.text, len(self.vectors[0]))
        lines = stream.lines_at(self.text, starts, rows)
        return (line.replace("\t", " ") for line in lines)


@contextmanager
def encoded(
    encoder: Encoder, text: Text, others: list[str | None], state: Path, skip: bool, what: str
) -> Iterator[Side]:
    """Encode a text, or pairs with the languages `others` of further columns, into `state`, where
    the vectors lie for the block.
    """
    languages = (text.language, *others)
    transform = encoding(encoder, languages, UNIT, skip, what, blank=False)
    width, count = encoder.width(text.language), len(languages)
    with (
        stream.plain(text.path, state / "source") as plain,
        stream.rows_of(transform, plain, state, text.path) as rows,
    ):
        yield Side(plain, tuple(Vectors(rows.files, width, at, count) for at in range(count)))


# --- search


@contextmanager
def compared(
    first: Vectors, second: Vectors, search: Search, key: Any, state: Path
) -> Iterator[tuple[Neighbours, Neighbours]]:
    """Find the neighbours of either side in the other one; the parts lie in `state` for the block.

    Raises `EmsError` for a side without lines, and if faiss is asked for and not installed.
    """
    if not (len(first) and len(second)):
        raise EmsError("expected lines on both sides, found none on one of them")
    if 0 < search.faiss_above < max(len(first), len(second)):
        from ems.use.approximate import nearest_by_faiss

        yield nearest_by_faiss(first, second, search.neighbours)
        return
    size = -(-max(LEAST, -(-len(first) // PARTS)) // ROWS) * ROWS
    pieces = [
        Piece(state, at, 0, 0, start, min(size, len(first) - start))
        for at, start in enumerate(range(0, len(first), size))
    ]
    k, device = search.neighbours, search.device
    key = [key, k, device, size, torch.get_num_threads(), source_hash("ems.bench.nearest")]
    work = _Compare(first, second, k, device)
    with done_pieces("compare", work, pieces, state, key, 1, "lines") as files:
        yield _joined(files, pieces, (len(first), len(second)), k)


@dataclass(frozen=True)
class _Compare:
    """Writes the neighbours of some rows of `first`, and those of `second` among these rows."""

    first: Vectors
    second: Vectors
    k: int
    device: str

    def __call__(self, piece: Piece, out: Path, advance: Advance) -> None:
        own = self.first[piece.first : piece.first + piece.lines]
        about = f"compare, from line {piece.first + 1:,}"
        both = nearest(own, self.second, self.k, self.device, about)
        keys = [_keys(each).ravel() for each in both]
        with open(out, "wb") as writer:
            np.concatenate(keys).tofile(writer)
        advance(piece.lines)


def _keys(found: Neighbours) -> np.ndarray:
    return keys_of(torch.from_numpy(found.similarity), torch.from_numpy(found.index)).numpy()


def _joined(
    files: list[Path], pieces: list[Piece], sizes: tuple[int, int], k: int
) -> tuple[Neighbours, Neighbours]:
    """Return the neighbours of both sides from those of all parts."""
    forward, backward = [], None
    for path, piece in zip(files, pieces, strict=True):
        keys = np.fromfile(path, np.int64)
        split = piece.lines * min(k, sizes[1])
        forward.append(_neighbours(keys[:split].reshape(piece.lines, -1)))
        part = _neighbours(keys[split:].reshape(sizes[1], -1))
        part = Neighbours(part.similarity, part.index + piece.first)
        backward = merged(backward, part, k) if backward else part
    own = [np.concatenate([getattr(p, name) for p in forward]) for name in ("similarity", "index")]
    return Neighbours(*own), backward


def _neighbours(keys: np.ndarray) -> Neighbours:
    similarity, index = parts_of(torch.from_numpy(keys))
    return Neighbours(similarity.numpy(), index.numpy())


# --- commands


@dataclass(frozen=True)
class Wanted:
    """Which pairs are written: from which score on, each line once, with the numbers of lines."""

    threshold: float = -np.inf
    one_to_one: bool = False
    numbers: bool = False


def mine(
    encoder: Encoder,
    source: Text,
    target: Text,
    out: Path,
    search: Search,
    wanted: Wanted,
    skip: bool = False,
) -> int:
    """Write the pairs of two texts, the best first: score<TAB>source<TAB>target, and with numbers
    the two line numbers; return how many they are.
    """
    with ExitStack() as stack:
        state = stack.enter_context(stream.scratch(out))
        sides = [
            stack.enter_context(encoded(encoder, text, [], state / name, skip, f"encode {name}"))
            for name, text in (("source", source), ("target", target))
        ]
        first, second = (side.vectors[0] for side in sides)
        key = [encoder.identity, stream.contents(*(side.text for side in sides))]
        with compared(first, second, search, key, state / "compared") as found:
            pairs = above(pairs_of(*found, search.margin, wanted.one_to_one), wanted.threshold)
            pairs = with_text(pairs, first.with_text(), second.with_text())
            with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as writer:
                writer.writelines(_rows(pairs, sides, wanted.numbers))
    stream.log.info("%s: %s pairs", out, f"{len(pairs.score):,}")
    return len(pairs.score)


def _rows(pairs: Mined, sides: list[Side], numbers: bool) -> Iterator[str]:
    """Yield the lines of the file of mined pairs."""
    texts = [sides[0].lines(pairs.first), sides[1].lines(pairs.second)]
    columns = [map(repr, pairs.score.tolist()), *texts]
    if numbers:
        columns += [map(str, (at + 1).tolist()) for at in (pairs.first, pairs.second)]
    return ("\t".join(row) + "\n" for row in zip(*columns, strict=True))


def score_by_margin(
    encoder: Encoder,
    source: Text,
    target_language: str | None,
    out: Path,
    search: Search,
    threshold: float | None,
    skip: bool = False,
) -> None:
    """Write the margin of each pair of a TSV, or the rows that reach a threshold.

    The neighbours are those of a sentence among all others of the file. What goes to standard
    output needs room in the folder for temporary files.
    """
    with stream.scratch(out) as state:
        texts = encoded(encoder, source, [target_language], state / "pairs", skip, "score")
        with texts as side:
            first, second = side.vectors
            if not len(first):
                stream.write(out, [])
                return
            key = [encoder.identity, stream.contents(side.text)]
            with compared(first, second, search, key, state / "compared") as found:
                blocks = zip(first.blocks(), second.blocks(), strict=True)
                cosine = np.concatenate([cosines(*both) for both in blocks])
                values = scores_of(cosine, *found, search.margin).tolist()
                stream.write(out, _scored(side.text, values, threshold))


def _scored(text: Path, values: list[float], threshold: float | None) -> Iterator[bytes]:
    with open(text, "rb") as reader:
        for line, value in zip(reader, values, strict=True):
            yield written([value], [line if stream.usable(line) else None], threshold)
