"""Encode the lines of a text, and score the pairs of a TSV, in bounded memory.

A text is worked on in pieces of PIECE_LINES, whatever its length. Of a file that is written, the
finished pieces are kept in a hidden folder beside it (`ems.text.pieces`), so that a killed run goes
on with the next piece and gives the same bytes. What goes to standard output is written piece by
piece and is not kept.
"""

import io
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import numpy as np
import torch

from ems.base.batches import batched
from ems.base.errors import EmsError
from ems.base.files import atomic_path, check_unchanged, read_json, write_json
from ems.base.progress import Progress, log
from ems.base.schema import Some
from ems.text.pieces import MAX_BYTES, Advance, Piece, cut, done_pieces
from ems.use.encoder import Encoder, cosines
from ems.use.stream import STREAM, BadLine, TextInput, opened, plain, scratch, write

PIECE_LINES = 1 << 15  # as many as a benchmark encodes at once, so that vectors are the same
NAMED = 5  # bad lines whose numbers a message names
ROWS, FAULTS = "rows", "faults.json"  # of a piece
BAD_SCORE = "nan"  # of a bad row
Faults = dict[str, list[int]]  # what is wrong -> the numbers of such lines


@dataclass(frozen=True)
class VectorForm:
    """How vectors are written: prefixes, length 1, float16."""

    dimensions: int = 0
    normalise: bool = False
    half: bool = False

    @property
    def dtype(self) -> np.dtype:
        """The type of a number, little-endian."""
        return np.dtype("<f2" if self.half else "<f4")


@dataclass(frozen=True)
class EncodingJob:
    """What is made of the lines of a text: vectors in a form, or what `written` makes of them.

    `written` takes vectors[N, sides, d] and N lines, None for a bad one. Unless `blank`, a line
    without text has a vector of zeros. `key` is what the result depends on beside these, as JSON.
    """

    encoder: Encoder
    text: TextInput
    form: VectorForm
    what: str = "encode"
    blank: bool = True
    written: Callable[[np.ndarray, list[bytes | None]], bytes] | None = None
    key: Any = None

    def block(self, lines: list[bytes], first: int, progress: Any = None) -> tuple[bytes, Faults]:
        """Return what is written for lines, the first of which has the number `first`, and the bad
        ones of them. Raises `EmsError` for a bad one unless they are skipped.
        """
        rows: list[tuple[str, ...] | None] = []
        bad: Faults = defaultdict(list)
        for number, line in enumerate(lines, start=first):
            try:
                rows.append(self.text.sides_of(line))
            except BadLine as fault:
                if not self.text.skip:
                    raise EmsError(
                        f"{self.text}: line {number:,}: {fault}; mend it, or skip such lines with "
                        "--bad skip"
                    ) from None
                rows.append(None)
                bad[str(fault)].append(number)
        vectors = self._vectors(rows, progress)
        if not self.written:
            return vectors.tobytes(), bad
        kept = [row and line for row, line in zip(rows, lines, strict=True)]
        return self.written(vectors, kept), bad

    def _vectors(self, rows: list[tuple[str, ...] | None], progress: Any) -> np.ndarray:
        """Return float[len(rows), sides, d]; zeros for a bad line."""
        sides = []
        for at, language in enumerate(self.text.languages):
            own = [row[at] if row else "" for row in rows]
            counted = progress if at == len(self.text.languages) - 1 else None
            vectors = self.encoder.encode(own, language, **vars(self.form), progress=counted)
            empty = [not (row and (self.blank or row[at].strip())) for row in rows]
            vectors[np.flatnonzero(empty)] = 0
            sides.append(vectors.astype(self.form.dtype, copy=False))
        return np.stack(sides, 1)

    def write_piece(self, piece: Piece, out: Path, advance: Advance) -> None:
        """Write the folder of a piece: rows, and its bad lines."""
        with open(piece.source, "rb") as reader:
            reader.seek(piece.start)
            lines = io.BytesIO(reader.read(piece.end - piece.start)).readlines()  # LF only
        rows, bad = self.block(lines, piece.first, SimpleNamespace(add=advance))
        out.mkdir()
        (out / ROWS).write_bytes(rows)
        write_json(out / FAULTS, bad)


@contextmanager
def rows_of(job: EncodingJob, source: Path, state: Path) -> Iterator[tuple[list[Path], int]]:
    """Make the rows of a plain text; yield their files, one for each piece, and how many lines the
    text has. The files lie in `state` for the block, and longer if it fails.
    """
    pieces, sha256 = cut(source, PIECE_LINES, MAX_BYTES)
    of = [job.what, job.encoder.identity, job.text.languages, vars(job.form), job.blank, job.key]
    key = [of, sha256, job.text.skip, PIECE_LINES, torch.get_num_threads()]
    unit = job.text.unit
    with done_pieces(job.what, job.write_piece, pieces, state / "rows", key, 1, unit) as folders:
        check_unchanged(source, pieces[-1].end)
        _report([read_json(each / FAULTS, dict[str, list[Some]]) for each in folders], job.text)
        yield [each / ROWS for each in folders], sum(piece.lines for piece in pieces)


def _report(parts: list[Faults], text: TextInput) -> None:
    """Log how many lines were skipped, why, and the numbers of the first."""
    for fault in dict.fromkeys(fault for part in parts for fault in part):
        lines = [line for part in parts for line in part.get(fault, ())]
        more = ", ..." if len(lines) > NAMED else ""
        some = ", ".join(f"{line:,}" for line in lines[:NAMED])
        log.warning("%s: %s bad lines skipped (%s): line %s%s", text, len(lines), fault, some, more)


def run(
    job: EncodingJob,
    out: Path,
    write_head: Callable[[BinaryIO, int], object] = lambda writer, lines: None,
) -> int:
    """Write what is made of a text to a file, after `write_head(writer, lines)`, or to standard
    output; return the number of lines.

    What an interrupted run has done is used. Raises `EmsError` for a bad line, a full disk, and a
    source that cannot be read.
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
        write_head(writer, lines)
        for path in files:
            with open(path, "rb") as reader:
                shutil.copyfileobj(reader, writer, 1 << 20)
    return lines


def _to_stdout(job: EncodingJob) -> int:
    progress, bad = Progress(job.what, None, job.text.unit), []
    with opened(job.text.path) as reader:
        batches = batched(reader, len, PIECE_LINES, MAX_BYTES)  # as `cut` does
        for lines in progress.over(batches, len):
            rows, more = job.block(lines, progress.done + 1)
            bad.append(more)
            write(STREAM, [rows])
    _report(bad, job.text)
    return progress.done


# --- commands


def encode(encoder: Encoder, text: TextInput, out: Path, form: VectorForm) -> None:
    """Write the vectors of a text to a .npy, to raw little-endian numbers (.f32), or to standard
    output (raw too): a row for each line, zeros for a skipped one.
    """
    job = EncodingJob(encoder, text, form)
    if out == STREAM:
        run(job, out)
        return
    width = encoder.width(text.languages[0], form.dimensions)

    def write_head(writer: BinaryIO, lines: int) -> None:
        if out.suffix != ".f32":
            about = {"descr": form.dtype.str, "fortran_order": False, "shape": (lines, width)}
            np.lib.format.write_array_header_1_0(writer, about)

    lines = run(job, out, write_head)
    log.info("%s: %s (%s, %s), one row a line", out, form.dtype.name, lines, width)


def score(encoder: Encoder, pairs: TextInput, out: Path, threshold: float | None) -> None:
    """Write the cosine of each pair of a TSV, a line a row, or the rows that reach a threshold.

    A pair of which one side has no text scores 0.
    """

    def scores(vectors: np.ndarray, rows: list[bytes | None]) -> bytes:
        return written(cosines(vectors[:, 0], vectors[:, 1]).tolist(), rows, threshold)

    form, key = VectorForm(normalise=True), [threshold]
    run(EncodingJob(encoder, pairs, form, "score", blank=False, written=scores, key=key), out)


def written(values: Sequence[float], rows: list[bytes | None], threshold: float | None) -> bytes:
    """Return a score a line, or the rows, as they are, whose score is at least the threshold."""
    both = list(zip(values, rows, strict=True))
    if threshold is None:
        scores = (BAD_SCORE if row is None else f"{value:.6f}" for value, row in both)
        return "".join(f"{score}\n" for score in scores).encode()
    return b"".join(row for value, row in both if row is not None and value >= threshold)
