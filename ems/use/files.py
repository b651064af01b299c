"""Encode the lines of a text, score the pairs of a TSV, check a model folder: in bounded memory.

A text is processed in pieces of PIECE_LINES. Finished pieces are kept in a hidden folder next to
the output file (`ems.text.pieces`), so that a killed run resumes with the next piece and writes the
same bytes. Output to standard output is written piece by piece and is not kept.
"""

import io
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ems.base.errors import Damaged, NotFinite
from ems.base.files import atomic_path, check_unchanged, read_json, sha256_file, write_json
from ems.base.progress import Progress, log
from ems.base.records import Some
from ems.base.texts import BATCH, STREAM, batched, bounded_lines, opened
from ems.model.folder import checksums
from ems.model.static import as_float32
from ems.model.weights import mapped
from ems.text.pieces import MAX_BYTES, Advance, Piece, cut, done_pieces
from ems.use.encoder import Encoder, cosines
from ems.use.stream import Faults, Row, TextInput, plain, scratch, write

PIECE_LINES = 1 << 15  # as in a benchmark, so that the vectors have the same bits
ROWS, FAULTS = "rows", "faults.json"  # files of a piece
BAD_SCORE = "nan"  # score of a bad row
CHECKED = 1 << 22  # weights in memory at once


@dataclass(frozen=True)
class VectorForm:
    """The form of written vectors: their first `dimensions`, length 1, float16."""

    dimensions: int = 0
    normalise: bool = False
    half: bool = False

    @property
    def dtype(self) -> np.dtype:
        """Little-endian type of a number."""
        return np.dtype("<f2" if self.half else "<f4")

    def header(self, lines: int, width: int) -> bytes:
        """Return the header of a .npy file of vectors [lines, width]."""
        about = {"descr": self.dtype.str, "fortran_order": False, "shape": (lines, width)}
        np.lib.format.write_array_header_1_0(writer := io.BytesIO(), about)
        return writer.getvalue()


@dataclass(frozen=True)
class EncodingJob:
    """The encoding of a text: vectors in a form, or the bytes that `render` makes from them: from
    vectors[N, sides, d] and N lines (None: bad). `key` is JSON, any further inputs of the result.
    """

    encoder: Encoder
    text: TextInput
    form: VectorForm
    what: str = "encode"
    render: Callable[[np.ndarray, list[bytes | None]], bytes] | None = None
    key: Any = None

    def block(self, lines: list[bytes], first: int, progress: Any = None) -> tuple[bytes, Faults]:
        """Encode lines, numbered from `first`, to output bytes; return the bad ones, too."""
        rows, bad = self.text.rows(lines, first)
        vectors = self._vectors(rows, progress)
        if not self.render:
            return vectors.tobytes(), bad
        kept = [row and line for row, line in zip(rows, lines, strict=True)]
        return self.render(vectors, kept), bad

    def _vectors(self, rows: list[Row], progress: Any) -> np.ndarray:
        """Encode rows to float[len(rows), sides, d], with zeros for a bad line."""
        sides = []
        for side, language in enumerate(self.text.languages):
            lines = [row[side] if row else "" for row in rows]
            counted = progress if side == len(self.text.languages) - 1 else None
            vectors = self.encoder.vectors(lines, language, **vars(self.form), progress=counted)
            sides.append(vectors.astype(self.form.dtype, copy=False))
        return np.stack(sides, 1)

    def write_piece(self, piece: Piece, out: Path, advance: Advance) -> None:
        """Write the folder of a piece: its rows and its bad lines."""
        with open(piece.source, "rb") as reader:
            reader.seek(piece.start)
            lines = io.BytesIO(reader.read(piece.end - piece.start)).readlines()  # LF only
        rows, bad = self.block(lines, piece.first, SimpleNamespace(add=advance))
        out.mkdir()
        (out / ROWS).write_bytes(rows)
        write_json(out / FAULTS, bad)


@contextmanager
def rows_of(job: EncodingJob, source: Path, state: Path) -> Iterator[tuple[list[Path], int]]:
    """Encode a plain text; yield the files of rows, one per piece, in `state`; count the lines."""
    pieces, sha256 = cut(source, PIECE_LINES, MAX_BYTES)
    torch = sys.modules.get("torch")  # without it, vectors depend on no threads
    about = [job.what, job.encoder.identity, job.text.languages, vars(job.form), job.key]
    key = [about, sha256, job.text.skip, PIECE_LINES, torch and torch.get_num_threads()]
    unit = job.text.unit
    with done_pieces(job.what, job.write_piece, pieces, state / "rows", key, 1, unit) as folders:
        check_unchanged(source, pieces[-1].end)
        _report([read_json(each / FAULTS, dict[str, list[Some]]) for each in folders], job)
        yield [each / ROWS for each in folders], sum(piece.lines for piece in pieces)


def _report(parts: list[Faults], job: EncodingJob) -> None:
    job.text.report(parts)
    job.encoder.warn_of_unknown(job.text)


def run(job: EncodingJob, out: Path, head: Callable[[int], bytes] | None = None) -> int:
    """Write, or resume, the rows of a text to a file, after `head(lines)`, or to standard output;
    return the number of lines. Raises `EmsError` for a bad line, a full disk, an unreadable source.
    """
    if out == STREAM:
        return _to_stdout(job)
    with (
        scratch(out) as state,
        plain(job.text.path, state / "source") as source,
        rows_of(job, source, state) as (files, lines),
        atomic_path(out) as temporary,
        open(temporary, "wb") as writer,
    ):
        writer.write(head(lines) if head else b"")
        for path in files:
            with open(path, "rb") as reader:
                shutil.copyfileobj(reader, writer, 1 << 20)
    return lines


def _to_stdout(job: EncodingJob) -> int:
    progress, bad = Progress(job.what, None, job.text.unit), []
    size = BATCH if job.encoder.is_static else PIECE_LINES  # the first lines come at once
    with opened(job.text.path) as reader:
        batches = batched(bounded_lines(reader), len, size, MAX_BYTES)  # as `cut` does
        for lines in progress.over(batches, len):
            rows, more = job.block(lines, progress.done + 1)
            bad.append(more)
            write(STREAM, [rows])
    _report(bad, job)
    return progress.done


# --- commands


def encode(encoder: Encoder, text: TextInput, out: Path, form: VectorForm) -> None:
    """Write a row for each line of a text, with zeros for a skipped line: into a .npy file, as raw
    little-endian numbers (.f32, standard output), or as text on a terminal.
    """
    shown = out == STREAM and sys.stdout.isatty()
    job = EncodingJob(encoder, text, form, render=readable if shown else None)
    width = encoder.width(*text.languages, form.dimensions)
    lines = run(job, out, None if out.suffix == ".f32" else partial(form.header, width=width))
    if out != STREAM:
        log.info("%s: %s (%s, %s), one row per line", out, form.dtype.name, lines, width)


def readable(vectors: np.ndarray, rows: list[bytes | None]) -> bytes:
    """Return a line of four decimals for each vector of [N, 1, d]: for a person at a terminal."""
    return "".join(f"{' '.join(f'{x:.4f}' for x in row)}\n" for (row,) in vectors).encode()


def score(encoder: Encoder, pairs: TextInput, out: Path, threshold: float | None) -> None:
    """Write each pair's cosine (0 for an empty side) on a line, or the rows from a threshold on."""

    def scores(vectors: np.ndarray, rows: list[bytes | None]) -> bytes:
        return score_lines(cosines(vectors[:, 0], vectors[:, 1]).tolist(), rows, threshold)

    run(EncodingJob(encoder, pairs, VectorForm(normalise=True), "score", scores, [threshold]), out)


def score_lines(
    values: Sequence[float], rows: list[bytes | None], threshold: float | None
) -> bytes:
    """Return one score per line, or the unchanged rows that reach the threshold."""
    both = list(zip(values, rows, strict=True))
    if threshold is None:
        scores = (BAD_SCORE if row is None else f"{value:.6f}" for value, row in both)
        return "".join(f"{score}\n" for score in scores).encode()
    return b"".join(row for value, row in both if row is not None and value >= threshold)


def check_model(folder: Path) -> int:
    """Return the number of a model's files, all whole. Raises `Damaged` for a file with another
    checksum or with a weight that is not finite, and `EmsError` if the model cannot encode.
    """
    sums = checksums(folder)
    sizes = {name: (folder / name).stat().st_size for name in sums if (folder / name).is_file()}
    progress = Progress(f"check {folder}", sum(sizes.values()), "bytes")
    for name in progress.over(sums, sizes.__getitem__):
        path = folder / name
        if sha256_file(path) != sums[name]:
            raise Damaged(path, "its SHA-256 is not the one that the folder lists")
        if path.suffix == ".safetensors":
            _check_weights(path)
    encoder = Encoder(folder, "cpu")
    if not np.isfinite(encoder.vectors(["a"], next(iter(encoder.languages), None))).all():
        raise NotFinite(f"{folder}: the vector of a line is not finite; fetch the model again")
    return len(sums)


def _check_weights(path: Path) -> None:
    for name, weights in mapped(path, None).items():
        numbers = weights.reshape(-1)
        for start in range(0, len(numbers), CHECKED):
            if not np.isfinite(as_float32(numbers[start : start + CHECKED])).all():
                raise Damaged(path, f"{name}: expected finite numbers, found others")
