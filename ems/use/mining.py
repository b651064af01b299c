"""Mine pairs from two files, and score pairs by margin, in bounded memory.

Both sides are encoded to files, so they may be larger than the memory. The search is exact
(`ems.bench.nearest`), or uses faiss above a number of lines. Finished parts are kept, so a killed
run resumes and writes the same bytes. Lines of zeros and skipped bad lines are in no pair.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.errors import EmsError, mistake
from ems.base.files import atomic_path, sha256_file
from ems.base.progress import Progress, log
from ems.base.provenance import source_hash
from ems.base.texts import one_field
from ems.bench.margin import pairs_of, scores_of
from ems.bench.nearest import ROWS, Distinct, Neighbours, blocks, merged, nearest, spread
from ems.text.pieces import Advance, Piece, done_pieces, numbered
from ems.use.arguments import limit
from ems.use.encoder import Encoder, cosines
from ems.use.files import EncodingJob, VectorForm, rows_of, score_lines
from ems.use.stream import TextInput, lines_at, plain, scratch, starts_of, write

SEARCH_PARTS, LEAST_ROWS = 32, 4 * ROWS  # most parts of a search, fewest rows of a part
# What sets the threads of a product of numpy, and its last bits; Snakemake sets both for a job
BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
CELLS = 32  # number of cells of faiss's index that are searched
TRAINED = 64  # lines per cell that faiss learns its cells from


@dataclass(frozen=True)
class SearchOptions:
    """Settings of a search; faiss takes over above `faiss_above` lines on a side (0: never)."""

    neighbours: int = 4
    margin: str = "ratio"
    device: str = "auto"
    faiss_above: int = 0
    threshold: float | None = None  # the least score
    one_to_one: bool = False  # each line in at most one pair


class Vectors:
    """Rows float32[N, d] in the files of pieces, which hold `sides` of them per line, of which this
    is number `side`; slicing reads them.
    """

    def __init__(self, files: list[Path], width: int, side: int = 0, sides: int = 1) -> None:
        self.files, self.width, self.side, self.sides = files, width, side, sides
        counts = [path.stat().st_size // (4 * width * sides) for path in files]
        self.begins = np.cumsum([0, *counts]).tolist()

    def __len__(self) -> int:
        return self.begins[-1]

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, end, _ = rows.indices(len(self))
        parts, size = [np.empty((0, self.width), np.float32)], self.width * self.sides
        for path, first, after in zip(self.files, self.begins, self.begins[1:], strict=False):
            low, high = max(start, first), min(end, after)
            if low < high:
                offset = 4 * (low - first) * size
                read = np.fromfile(path, "<f4", (high - low) * size, offset=offset)
                parts.append(read.reshape(-1, self.sides, self.width)[:, self.side])
        return np.concatenate(parts)


@contextmanager
def encoded(
    encoder: Encoder, text: TextInput, state: Path, what: str
) -> Iterator[tuple[Path, list[Distinct]]]:
    """Encode a text, or pairs; yield its plain file, and the vectors of each side, in `state`."""
    job = EncodingJob(encoder, text, VectorForm(normalise=True), what)
    width, sides = encoder.width(text.languages[0]), len(text.languages)
    with plain(text.path, state / "source") as file, rows_of(job, file, state) as (files, _):
        vectors = [Vectors(files, width, side, sides) for side in range(sides)]
        yield file, [Distinct(own, _texts(file, text, own.side)) for own in vectors]


def _texts(file: Path, text: TextInput, side: int) -> Iterator[str]:
    """Yield the lines of a side, "" for a bad one."""
    with open(file, "rb") as reader:
        yield from (row[side] if row else "" for row in map(text.row, reader))


# --- search


@contextmanager
def compared(
    sides: Sequence[Distinct], search: SearchOptions, key: Any, state: Path
) -> Iterator[tuple[Neighbours, Neighbours]]:
    """Find the neighbours of each side in the other; the parts stay in `state` for the block.
    Raises `EmsError` for a side without lines, and if faiss is needed but not installed.
    """
    first, second = sides
    if not (len(first.vectors) and len(second.vectors)):
        side = "target" if len(first.vectors) else "source"
        raise EmsError(f"expected lines on both sides, found none in the {side}; name another text")
    k, device = search.neighbours, search.device
    if 0 < search.faiss_above < max(len(first), len(second)):
        yield _nearest_by_faiss(first, second, k), _nearest_by_faiss(second, first, k)
        return
    size = -(-max(LEAST_ROWS, -(-len(first) // SEARCH_PARTS)) // ROWS) * ROWS
    pieces = numbered(state, len(first), size) or [Piece(state, 0, 0, 0, 0, 0)]
    key = [key, k, device, size, source_hash("ems.bench.nearest"), "arrays"]
    key += [*map(os.environ.get, BLAS), len(os.sched_getaffinity(0))]
    work = partial(_compare, sides, k, device)
    with done_pieces("compare", work, pieces, state, key, 1, "lines") as files:
        forward, backward = [], None
        for path, piece in zip(files, pieces, strict=True):
            with np.load(path) as arrays:
                similarity, index, others, rows = arrays.values()
            forward.append(Neighbours(similarity, index))
            part = Neighbours(others, rows + piece.first)
            backward = merged(backward, part, k) if backward else part
        yield _stacked(forward), backward


def _compare(
    sides: Sequence[Distinct], k: int, device: str, piece: Piece, out: Path, advance: Advance
) -> None:
    """Write the neighbours of a piece of the first side in the second, and the reverse."""
    first, second = sides
    rows = first[piece.first : piece.first + piece.lines]
    forward, backward = nearest(rows, second, k, device, f"compare, from line {piece.first + 1:,}")
    with open(out, "wb") as writer:
        np.savez(writer, *vars(forward).values(), *vars(backward).values())
    advance(piece.lines)


def _stacked(parts: list[Neighbours]) -> Neighbours:
    similarity = np.concatenate([part.similarity for part in parts])
    return Neighbours(similarity, np.concatenate([part.index for part in parts]))


def _nearest_by_faiss(queries: Distinct, others: Distinct, k: int) -> Neighbours:
    """Find about the k nearest rows in others[M, d] for each of queries[N, d], of length 1. A query
    is compared with the rows in the nearest CELLS of about sqrt(M) cells (IVFFlat), so it may miss
    neighbours. Raises `EmsError` if faiss is not installed.
    """
    try:
        import faiss
    except ModuleNotFoundError:
        raise mistake("no faiss") from None
    cells, k = max(1, round(len(others) ** 0.5)), min(k, len(others))
    width = others.vectors.width
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, cells, faiss.METRIC_INNER_PRODUCT)
    step = max(1, len(others) // (TRAINED * cells))
    index.train(np.concatenate([rows[::step] for rows in blocks(others)]))
    for rows in blocks(others):
        index.add(rows)
    index.nprobe = CELLS
    progress, parts = Progress("search by faiss", len(queries), "lines"), []
    for rows in progress.over(blocks(queries), len):
        similarity, row = index.search(rows, k)
        missing = row < 0  # fewer than k in the cells
        parts.append(Neighbours(np.where(missing, 0, similarity), np.where(missing, 0, row)))
    return _stacked(parts)


# --- commands


def mine(
    encoder: Encoder, texts: list[TextInput], out: Path, search: SearchOptions, numbers: bool
) -> None:
    """Write the pairs that reach the threshold, the best first: score<TAB>source<TAB>target;
    `numbers` adds both line numbers as columns.
    """
    for text in texts:  # before long work on the first
        text.check()
        encoder.width(text.languages[0])
    with ExitStack() as stack:
        state = stack.enter_context(scratch(out))
        both = [
            stack.enter_context(encoded(encoder, text, state / name, f"encode {name}"))
            for name, text in zip(("source", "target"), texts, strict=True)
        ]
        sides = [side for _, (side,) in both]
        key = [encoder.identity, [sha256_file(text) for text, _ in both]]
        with compared(sides, search, key, state / "compared") as found:
            least = limit(search.threshold)
            pairs = pairs_of(found, sides, search.margin, search.one_to_one, least)
            columns, rows = [map(repr, pairs.score.tolist())], (pairs.first, pairs.second)
            for (text, (side,)), own in zip(both, rows, strict=True):
                starts = starts_of(text, len(side.vectors))
                columns.append(map(one_field, lines_at(text, starts, own)))
            if numbers:
                columns += [map(str, (own + 1).tolist()) for own in rows]
            with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as writer:
                writer.writelines("\t".join(row) + "\n" for row in zip(*columns, strict=True))
    log.info("%s: %s pairs", out, f"{len(pairs.score):,}")


def score_by_margin(encoder: Encoder, pairs: TextInput, out: Path, search: SearchOptions) -> None:
    """Write the margin of each pair of a TSV, or the rows that reach a threshold; neighbours are
    all sentences of the other side. Standard output needs room in the folder for temporary files.
    """
    with scratch(out) as state, encoded(encoder, pairs, state / "pairs", "score") as (text, sides):
        if not len(sides[0].vectors):
            write(out, [])
            return
        key = [encoder.identity, [sha256_file(text)]]
        with compared(sides, search, key, state / "compared") as found:
            both = zip(*(blocks(side.vectors) for side in sides), strict=True)
            cosine = np.concatenate([cosines(*each) for each in both])
            values = scores_of(cosine, *spread(found, sides), search.margin).tolist()
            with open(text, "rb") as reader:
                rows = ([pairs.row(line) and line] for line in reader)
                both = zip(values, rows, strict=True)
                write(out, (score_lines([value], row, search.threshold) for value, row in both))
