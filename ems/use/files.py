"""Encode the lines of a text, and score the pairs of a TSV, in bounded memory.

A text is worked on in pieces of PIECE_LINES, whatever its length. Of a file that is written, the
finished pieces are kept in a hidden folder beside it (`ems.text.pieces`), so that a killed run goes
on with the next piece and gives the same bytes. What goes to standard output is written piece by
piece and is not kept.
"""

import io
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ems.base.batches import batched
from ems.base.errors import EmsError
from ems.base.files import atomic_path, check_unchanged, read_json, write_json
from ems.base.progress import Progress, log
from ems.base.schema import Record, Some
from ems.base.schema import Text as Words
from ems.text.pieces import MAX_BYTES, Advance, Piece, cut, done_pieces
from ems.use.encoder import Encoder, cosines
from ems.use.stream import STREAM, BadLine, Text, opened, plain, scratch, write

PIECE_LINES = 1 << 15  # as many as a benchmark encodes at once, so that vectors are the same
NAMED = 5  # bad lines whose numbers a message names
ROWS, FAULTS = "rows", "faults.json"  # of a piece
BAD_SCORE = "nan"  # of a bad row


Written = Callable[[np.ndarray, list[bytes | None]], bytes]


class Fault(Record):
    """A bad line by its number, and what is wrong with it."""

    line: Some
    fault: Words


@dataclass(frozen=True)
class Form:
    """How vectors are written: prefixes, length 1, float16."""

    dimensions: int = 0
    normalise: bool = False
    half: bool = False

    @property
    def dtype(self) -> np.dtype:
        """The type of a number, little-endian."""
        return np.dtype("<f2" if self.half else "<f4")


@dataclass(frozen=True)
class Job:
    """What is made of the lines of a text: vectors in a form, or what `written` makes of them.

    `written` takes vectors[N, sides, d] and N lines, None for a bad one. Unless `blank`, a line
    without text has a vector of zeros. `key` is what the result depends on beside these, as JSON.
    """

    encoder: Encoder
    text: Text
    form: Form
    what: str = "encode"
    blank: bool = True
    written: Callable[[np.ndarray, list[bytes | None]], bytes] = lambda vectors, _: (
        vectors.tobytes()
    )
    key: Any = None

    @property
    def unit(self) -> str:
        return "lines" if len(self.text.languages) == 1 else "pairs"

    def block(
        self, lines: list[bytes], first: int, progress: Any = None
    ) -> tuple[bytes, list[Fault]]:
        """Return what is written for lines, the first of which has the number `first`, and the bad
        ones of them. Raises `EmsError` for a bad one unless they are skipped.
        """
        rows: list[tuple[str, ...] | None] = []
        bad = []
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
                bad.append(Fault(line=number, fault=str(fault)))
        kept = [row and line for row, line in zip(rows, lines, strict=True)]
        return self.written(self._vectors(rows, progress), kept), bad

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
        counted = _Counted(advance, piece.lines)
        rows, bad = self.block(lines, piece.first, counted)
        counted.add(piece.lines)
        out.mkdir()
        (out / ROWS).write_bytes(rows)
        write_json(out / FAULTS, [each.model_dump() for each in bad])


class _Counted:
    """Progress within a piece that never counts more than its lines."""

    def __init__(self, advance: Advance, lines: int) -> None:
        self.advance, self.left = advance, lines

    def add(self, count: int) -> None:
        self.advance(min(count, self.left))
        self.left -= min(count, self.left)


@contextmanager
def rows_of(job: Job, source: Path, state: Path) -> Iterator[tuple[list[Path], int]]:
    """Make the rows of a plain text; yield their files, one for each piece, and how many lines the
    text has. The files lie in `state` for the block, and longer if it fails.
    """
    pieces, sha256 = cut(source, PIECE_LINES, MAX_BYTES)
    of = [job.what, job.encoder.identity, job.text.languages, vars(job.form), job.blank, job.key]
    key = [of, sha256, job.text.skip, PIECE_LINES, torch.get_num_threads()]
    with done_pieces(
        job.what, job.write_piece, pieces, state / "rows", key, 1, job.unit
    ) as folders:
        check_unchanged(source, pieces[-1].end)
        bad = [fault for each in folders for fault in read_json(each / FAULTS, list[Fault])]
        _report(bad, job.text)
        yield [each / ROWS for each in folders], sum(piece.lines for piece in pieces)


def _report(bad: list[Fault], text: Text) -> None:
    """Log how many lines were skipped, why, and the numbers of the first."""
    for fault, count in Counter(each.fault for each in bad).items():
        numbers = [f"{each.line:,}" for each in bad if each.fault == fault]
        more = ", ..." if count > NAMED else ""
        shown = ", ".join(numbers[:NAMED])
        log.warning("%s: %s bad lines skipped (%s): line %s%s", text, count, fault, shown, more)


def run(job: Job, out: Path, head: Callable[[int], bytes] = lambda lines: b"") -> int:
    """Write what is made of a text to a file, after `head(lines)`, or to standard output; return
    the number of lines.

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
        writer.write(head(lines))
        for path in files:
            with open(path, "rb") as reader:
                shutil.copyfileobj(reader, writer, 1 << 20)
    return lines


def _to_stdout(job: Job) -> int:
    progress = Progress(job.what, None, job.unit)
    done, bad = 0, []
    with opened(job.text.path) as reader:
        for lines in batched(reader, len, PIECE_LINES, MAX_BYTES):  # as `cut` does
            rows, more = job.block(lines, done + 1)
            bad += more
            write(STREAM, [rows])
            done += len(lines)
            progress.add(len(lines))
    progress.close()
    _report(bad, job.text)
    return done


# --- commands


def encode(encoder: Encoder, text: Text, out: Path, form: Form) -> None:
    """Write the vectors of a text to a .npy, to raw little-endian numbers (.f32), or to standard
    output (raw too): a row for each line, zeros for a skipped one.
    """
    job = Job(encoder, text, form)
    if out == STREAM:
        run(job, out)
        return
    width = encoder.width(text.languages[0], form.dimensions)

    def npy_head(lines: int) -> bytes:
        about = {"descr": form.dtype.str, "fortran_order": False, "shape": (lines, width)}
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, about)
        return head.getvalue()

    lines = run(job, out, npy_head if out.suffix != ".f32" else lambda lines: b"")
    log.info("%s: %s (%s, %s), one row a line", out, form.dtype.name, lines, width)


def score(encoder: Encoder, pairs: Text, out: Path, threshold: float | None) -> None:
    """Write the cosine of each pair of a TSV, a line a row, or the rows that reach a threshold.

    A pair of which one side has no text scores 0.
    """

    def scores(vectors: np.ndarray, rows: list[bytes | None]) -> bytes:
        return written(cosines(vectors[:, 0], vectors[:, 1]).tolist(), rows, threshold)

    job = Job(encoder, pairs, Form(normalise=True), "score", False, scores, [threshold])
    run(job, out)


def written(values: Sequence[float], rows: list[bytes | None], threshold: float | None) -> bytes:
    """Return a score a line, or the rows, as they are, whose score is at least the threshold."""
    both = list(zip(values, rows, strict=True))
    if threshold is None:
        scores = (BAD_SCORE if row is None else f"{value:.6f}" for value, row in both)
        return "".join(f"{score}\n" for score in scores).encode()
    return b"".join(row for value, row in both if row is not None and value >= threshold)
