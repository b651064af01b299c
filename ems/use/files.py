"""Encode the lines of a text, and score the pairs of a TSV, line by line (`ems.use.stream`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ems.use import stream
from ems.use.encoder import Encoder, cosines
from ems.use.stream import STREAM, Transform

BAD_SCORE = "nan"  # of a bad row


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
class Text:
    """A file of lines, or of pairs, and the language of the (first) side."""

    path: Path
    language: str | None = None


@dataclass(frozen=True)
class _Vectors:
    """Makes the vectors of lines, or of both sides of pairs, one after the other in a row."""

    encoder: Encoder
    languages: tuple[str | None, ...]
    form: Form
    blank: bool = True  # lines without text have a vector

    def rows(self, items: list[Any], progress: Any) -> np.ndarray:
        """Return float[len(items), sides, d]; zeros for a bad line."""
        texts = [item if isinstance(item, tuple) else (item,) for item in items]
        sides = []
        for at, language in enumerate(self.languages):
            own = [text[at] if None not in text else "" for text in texts]
            counted = progress if at == len(self.languages) - 1 else None
            vectors = self.encoder.encode(own, language, **vars(self.form), progress=counted)
            empty = [None in text or not (self.blank or text[at].strip()) for text in texts]
            vectors[np.flatnonzero(empty)] = 0
            sides.append(vectors.astype(self.form.dtype, copy=False))
        return np.stack(sides, 1)

    def in_bytes(self, items: list[Any], progress: Any) -> bytes:
        return self.rows(items, progress).tobytes()

    def scores(self, threshold: float | None, items: list[Any], progress: Any) -> bytes:
        """Return a line with the score of each pair, or the rows that reach a threshold."""
        rows = self.rows([item and item[:2] for item in items], progress)
        values = cosines(rows[:, 0], rows[:, 1]).tolist()
        return written(values, [item and item[2] for item in items], threshold)


def encoding(
    encoder: Encoder,
    languages: tuple[str | None, ...],
    form: Form,
    skip: bool,
    what: str = "encode",
    blank: bool = True,
) -> Transform:
    """Return how lines (one language), or pairs (two), become vectors."""
    pairs = len(languages) > 1
    parse, unit = (stream.pair_of, "pairs") if pairs else (stream.text_of, "lines")
    make = _Vectors(encoder, languages, form, blank).in_bytes
    key = [what, encoder.identity, languages, vars(form), blank]
    return Transform(what, parse, make, key, skip, unit)


def encode(encoder: Encoder, text: Text, out: Path, form: Form, skip: bool) -> None:
    """Write the vectors of a text to a .npy, to raw little-endian numbers (.f32), or to standard
    output (raw too): a row for each line, zeros for a skipped one.
    """
    transform = encoding(encoder, (text.language,), form, skip)
    if out == STREAM:
        stream.to_stdout(transform, text.path)
        return
    width = encoder.width(text.language, form.dimensions)
    head = partial(_npy_head, form.dtype, width) if out.suffix != ".f32" else lambda lines: b""
    lines = stream.to_file(transform, text.path, out, head)
    stream.log.info("%s: %s (%s, %s), one row a line", out, form.dtype.name, lines, width)


def _npy_head(dtype: np.dtype, width: int, lines: int) -> bytes:
    about = {"descr": dtype.str, "fortran_order": False, "shape": (lines, width)}
    head = BytesIO()
    np.lib.format.write_array_header_1_0(head, about)
    return head.getvalue()


def score(
    encoder: Encoder,
    source: Text,
    target_language: str | None,
    out: Path,
    threshold: float | None,
    skip: bool,
) -> None:
    """Write the cosine of each pair of a TSV, a line a row, or the rows that reach a threshold.

    A pair of which one side has no text scores 0.
    """
    languages = (source.language, target_language)
    vectors = _Vectors(encoder, languages, Form(normalise=True), blank=False)
    key = ["score", encoder.identity, languages, threshold]
    make = partial(vectors.scores, threshold)
    transform = Transform("score", _row_of, make, key, skip, "pairs")
    if out == STREAM:
        stream.to_stdout(transform, source.path)
    else:
        stream.to_file(transform, source.path, out)


def _row_of(line: bytes) -> tuple[str, str, bytes]:
    return (*stream.pair_of(line), line)


def written(values: Sequence[float], rows: list[bytes | None], threshold: float | None) -> bytes:
    """Return a score a line, or the rows, as they are, whose score is at least the threshold."""
    both = list(zip(values, rows, strict=True))
    if threshold is None:
        scores = (BAD_SCORE if row is None else f"{value:.6f}" for value, row in both)
        return "".join(f"{score}\n" for score in scores).encode()
    return b"".join(row for value, row in both if row is not None and value >= threshold)
