"""Segmentation of whole files of pairs or documents, in parallel pieces (EMS v2 IV-B)."""

from functools import lru_cache, partial
from itertools import chain
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import atomic_path, check_unchanged, state_of
from ems.base.provenance import source_hash
from ems.text.pieces import Advance, Piece, cut, do_only, done_pieces
from ems.text.segmenters.base import Segment, module_name, segmenter
from ems.text.tsv import read_columns, unit_of

# pairs per piece: starting Perl then costs a twentieth of the work, and a worker takes about 30 MB
LINES = 20_000
Names = tuple[str, ...]  # one per language: two for pairs, one for documents


def segment_tsv(
    source: Path,
    out: Path,
    languages: Names,
    names: Names,
    state: Path | None = None,
    workers: int = 1,
    lines: int = LINES,
) -> int:
    """Segment and lower-case a file of pairs or documents; return the number of lines.

    `workers` processes share pieces of `lines` pairs, which stay in the folder `state` (default:
    next to `out`) until all are finished. The result depends on neither number.
    """
    pieces, sha256 = cut(source, lines)
    work, unit = partial(segment_piece, languages, names), unit_of(languages)
    what = f"segment {source.stem} ({', '.join(names)})"
    if len(pieces) == 1:
        with atomic_path(out) as temporary:
            do_only(what, work, pieces[0], temporary, unit)
            check_unchanged(source, pieces[-1].end)
        return pieces[0].lines
    state = state or state_of(out)
    key = {"source": sha256, "lines": lines, "languages": languages, "names": names}
    key["code"] = [source_hash(name) for name in ("ems.text.bulk", *map(module_name, names))]
    with (
        done_pieces(what, work, pieces, state, key, workers, unit) as results,
        atomic_path(out) as temporary,
        open(temporary, "wb") as writer,
    ):
        for result in results:
            writer.write(result.read_bytes())
        check_unchanged(source, pieces[-1].end)
    return sum(piece.lines for piece in pieces)


@lru_cache(maxsize=1)
def tools(languages: Names, names: Names) -> list[Segment]:
    return [segmenter(name, code) for name, code in zip(names, languages, strict=True)]


def segment_piece(
    languages: Names, names: Names, piece: Piece, out: Path, advance: Advance
) -> None:
    """Write the segmented pairs of a piece, lower-cased afterwards because Moses needs the case."""
    batches = read_columns(piece.source, piece.start, piece.lines, piece.first, len(languages))
    columns = [list(chain.from_iterable(column)) for column in zip(*batches, strict=True)]
    *sides, origins = columns or [[] for _ in (*languages, "lines")]
    if len(origins) != piece.lines:
        raise EmsError(f"{piece.source}: changed while it was being segmented; run again")
    words = map(_segmented, tools(languages, names), sides)
    with open(out, "w", encoding="utf-8", newline="\n") as writer:
        rows = zip(*words, origins, strict=True)
        if len(languages) == 1:  # an empty line ends a document
            writer.writelines(f"{text.lower()}\t{line}\n" if line else "\n" for text, line in rows)
        else:
            writer.writelines(f"{a.lower()}\t{b.lower()}\t{line}\n" for a, b, line in rows)
    advance(piece.lines)


def _segmented(tool: Segment, lines: list[str]) -> list[str]:
    """Segment lines in one call of the tool, each distinct line once; "" ends a document."""
    distinct = list(dict.fromkeys(filter(None, lines)))
    words = {"": "", **dict(zip(distinct, tool(distinct), strict=True))}
    return [words[line] for line in lines]
