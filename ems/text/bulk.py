"""Segmentation of whole pair files: in pieces, across processes, resumable (EMS v2 section IV-B).

Notable choices:
- a streamed tool (Perl, Juman++, MeCab) starts once for a piece and side, not once for a batch;
- a line that a piece has several times ("Yes.", or English beside several translations) is
  segmented once;
- lower case comes after segmentation, so that Moses sees the case that its abbreviations need.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from ems.config.provenance import source_hash
from ems.errors import EmsError
from ems.files import atomic_path
from ems.segmenters.base import Segment, module_name, segmenter
from ems.text.pieces import Advance, Piece, Work, alone, cut, kept
from ems.text.tsv import read_columns

# Pairs of a piece. Perl's start is then a twentieth of its work, and a worker's memory some 30 MB.
LINES = 20_000


@dataclass(frozen=True)
class Segmenting:
    """How the two sides of a pair file are segmented; called, it makes the two tools."""

    languages: tuple[str, str]
    names: tuple[str, str]

    def __call__(self) -> Work:
        names = zip(self.names, self.languages, strict=True)
        return partial(segment_piece, [segmenter(name, code) for name, code in names])


def segment_tsv(
    source: Path,
    out: Path,
    languages: tuple[str, str],
    names: tuple[str, str],
    state: Path | None = None,
    workers: int = 1,
    lines: int = LINES,
) -> int:
    """Segment and lower-case both sides of a pair file; return the number of pairs.

    A file of more than `lines` pairs is done in pieces by `workers` processes; they are kept in
    `state` (default: beside `out`) until the file is whole. The result depends on neither number.
    """
    pieces, sha256 = cut(source, lines)
    start = Segmenting(languages, names)
    what = f"segment {source.stem} ({', '.join(names)})"
    if len(pieces) == 1:
        with atomic_path(out) as temporary:
            alone(what, start, pieces[0], temporary)
        return pieces[0].lines
    state = state or out.with_name(f".{out.name}.state")
    key = {"source": sha256, "lines": lines, "languages": languages, "names": names}
    key["code"] = [source_hash(module) for module in ("ems.text.bulk", *map(module_name, names))]
    with kept(what, start, pieces, state, key, workers) as results, atomic_path(out) as temporary:
        _concatenate(results, temporary)
    return sum(piece.lines for piece in pieces)


def segment_piece(tools: list[Segment], piece: Piece, out: Path, advance: Advance) -> None:
    """Write the segmented pairs of a piece. Raises `EmsError` when the file has fewer lines now."""
    batches = read_columns(piece.source, piece.start, piece.lines, piece.first)
    columns = [list(chain.from_iterable(column)) for column in zip(*batches, strict=True)]
    if not columns:
        out.touch()
        return
    *sides, origins = columns
    if len(origins) != piece.lines:
        raise EmsError(f"{piece.source}: it changed while it was segmented; run again")
    words = [_segmented(tool, side) for tool, side in zip(tools, sides, strict=True)]
    with open(out, "w", encoding="utf-8", newline="\n") as writer:
        writer.writelines(_rows(*words, origins))
    advance(piece.lines)


def _segmented(tool: Segment, lines: list[str]) -> list[str]:
    """The words of all lines, those of equal lines found once."""
    distinct = list(dict.fromkeys(lines))
    found = dict(zip(distinct, tool(distinct), strict=True))
    return [found[line] for line in lines]


def _rows(firsts: list[str], seconds: list[str], origins: list[str]) -> Iterator[str]:
    for first, second, line in zip(firsts, seconds, origins, strict=True):
        yield f"{first.lower()}\t{second.lower()}\t{line}\n"


def _concatenate(parts: list[Path], out: Path) -> None:
    with open(out, "wb") as writer:
        for part in parts:
            with open(part, "rb") as reader:
                shutil.copyfileobj(reader, writer, 1 << 20)
