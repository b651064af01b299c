"""Segmentation of text as it arrives, in parallel and resumable pieces (EMS v2 IV-B).

Text arrives in blocks of whole lines of a TSV, of pairs or of documents. With the segmenter `none`
on all sides a block is only lower-cased; otherwise blocks make up pieces for the tools.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

from ems.base.files import drop_state
from ems.base.provenance import source_hash
from ems.base.texts import batched
from ems.text.normalise import is_spaced
from ems.text.pieces import MAX_BYTES, done_texts
from ems.text.segmenters.base import Segment, module_name, segmenter

# pairs per piece: starting Perl then costs a twentieth of the work, and a worker takes about 30 MB
LINES = 20_000
NONE = "none"  # the segmenter that leaves text as it is
Names = tuple[str, ...]  # one per language: two for pairs, one for documents


@dataclass(frozen=True)
class Segmenting:
    """The segmentation of a file of pairs or documents. `workers` processes share pieces of `lines`
    lines, which stay in the folder `state` until `finish`. The result depends on neither number.
    """

    languages: Names
    names: Names
    state: Path
    workers: int = 1
    lines: int = LINES

    def write(self, out: Path, blocks: Iterable[str]) -> None:
        """Write blocks segmented and lower-cased; a text of one piece leaves no state."""
        work = partial(segment_text, self.languages, self.names)
        with open(out, "w", encoding="utf-8", newline="\n") as writer:
            if {*self.names} == {NONE}:
                writer.writelines(map(work, blocks))
                return
            pieces = _pieces(blocks, self.lines)
            first, *more = [*islice(pieces, 2)] or [""]
            if not more:
                writer.write(work(first))
                return
            key = [self.lines, self.languages, self.names, segmenter_hashes(self.names)]
            what, texts = f"segment {out.name}", chain([first, *more], pieces)
            writer.writelines(done_texts(what, work, texts, self.state, key, self.workers))

    def finish(self) -> None:
        drop_state(self.state)


def segmenter_hashes(names: Names) -> list[str]:
    return [source_hash(name) for name in ("ems.text.bulk", *map(module_name, names))]


def _pieces(blocks: Iterable[str], lines: int) -> Iterator[str]:
    """Gather blocks into pieces of `lines` lines, fewer if they are long."""
    rows = chain.from_iterable(block.split("\n")[:-1] for block in blocks)
    return ("\n".join([*piece, ""]) for piece in batched(rows, len, lines, MAX_BYTES))


def segment_text(languages: Names, names: Names, text: str) -> str:
    """Return lines with segmented sides, lower-cased afterwards because Moses needs the case."""
    tools = [segmenter(name, code) for name, code in zip(names, languages, strict=True)]
    sides = text.replace("\n\n", "\n").replace("\t", " | ").replace("\n", " | ")
    if {*names} == {NONE} and is_spaced(f"| {sides}|"):  # all sides are, and none is empty
        return text.lower()  # a tab ends a word, so that each side has its own final sigma
    rows = [line.split("\t") if line else [""] * (len(names) + 1) for line in text.split("\n")[:-1]]
    *sides, origins = zip(*rows, strict=True) if rows else [()] * (len(names) + 1)
    words = map(_segmented, tools, sides)
    rows = zip(*words, origins, strict=True)
    return "".join(["\t".join(row) + "\n" if row[-1] else "\n" for row in rows]).lower()


def _segmented(tool: Segment, lines: tuple[str, ...]) -> list[str]:
    """Segment lines in one call of the tool, each distinct line once; "" ends a document."""
    distinct = list(dict.fromkeys(filter(None, lines)))
    words = {"": "", **dict(zip(distinct, tool(distinct), strict=True))}
    return [words[line] for line in lines]
