"""Describe a pair of the shards: its text, its pieces, and its line in the corpus.

A shard's path tells what it holds: `<experiment>/shards/<vocabulary>/<corpus>/<version>/<pair>/
<shard>`. The vocabulary and the report of the clean stage are read from the same experiment.
"""

from pathlib import Path

import numpy as np

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import read_json, sha256_file
from ems.base.records import Count, Record
from ems.shards.documents import DocumentStore, MinedStore
from ems.shards.index import MANIFEST, TRAIN, MinedManifest, read_index, shards_of
from ems.shards.shard import Shard, ShardRow
from ems.text.subwords import load_vocabulary


class _Origin(Record):
    threshold: float | None
    files: dict[str, Count]
    archives: dict[str, str]


def inspect_shards(shards: list[Path], pair: str | None, row: int, vocabulary: Path | None) -> str:
    """Describe row `row` (from 0, through all shards) of a language pair (None: of all)."""
    codes = tuple(sorted(pair.split("-"))) if pair else None
    opened = list(map(Shard, shards))
    chosen = [shard for shard in opened if codes in (None, shard.languages)]
    if not chosen:
        there = ", ".join(sorted({"-".join(shard.languages) for shard in opened}))
        raise EmsError(f"--pair {pair}: no shard holds it; the language pairs are {there}")
    total, left = sum(shard.pairs for shard in chosen), row
    for shard in chosen if row >= 0 else ():
        if left < shard.pairs:
            return describe(ShardRow(shard, left), vocabulary)
        left -= shard.pairs
    raise EmsError(f"--row {row}: found {total:,} pairs; give a row from 0 to {total - 1}")


def inspect_mined(
    mined: Path, index: Path, pair: str | None, row: int, vocabulary: Path | None
) -> str:
    """Describe mined pair `row` (from 0, best first) of a language pair (None: all)."""
    listed = read_index(index)[TRAIN]
    codes = read_json(mined / MANIFEST, MinedManifest).languages
    store = MinedStore(mined, shards_of(listed, codes, 1), codes, max_tokens=1, k=1)
    rows = store.select(pair)
    if not 0 <= row < len(rows):
        raise mistake("no such mined pair", row=row, count=len(rows), last=len(rows) - 1)
    chosen = rows[row]
    names = "-".join(codes[at] for at in chosen["languages"])
    places = DocumentStore.places(store, chosen["languages"], chosen["rows"])
    scores = f"CSLS {chosen['score']:.4f}, cosine {chosen['similarity']:.4f}"
    which = f"mined pair {row:,} of {len(rows):,}, {names}, round {int(chosen['round']):,}"
    return "\n\n".join([f"{which}: {scores}", *(describe(place, vocabulary) for place in places)])


def describe(place: ShardRow, vocabulary: Path | None = None) -> str:
    """Return where a pair comes from, and the text and pieces of its sides. `vocabulary` (default:
    the workflow's) must be the one that the shard was encoded with.
    """
    shard = place.shard
    folder = shard.folder.resolve()
    experiment, (name, corpus, version, pair) = folder.parents[:6][-1], folder.parts[-5:-1]
    path = vocabulary or experiment / "vocab" / name / "vocabulary.model"
    if not path.exists() or sha256_file(path) != shard.vocabulary_sha256:
        problem = f"not the vocabulary that {shard.folder} was encoded with"
        if vocabulary:
            raise EmsError(f"{path}: {problem}; give the right one")
        raise Damaged(path, problem)
    processor = load_vocabulary(path)
    shard.pieces = processor.get_piece_size()
    kind = "pair" if len(shard.languages) > 1 else "language"
    row = f"row {place.row:,} of {shard.pairs:,}"
    lines = [f"corpus {corpus} {version}, {kind} {pair}, shard {shard.folder.name}, {row}"]
    if kind == "language":
        bounds = shard.documents
        number = int(np.searchsorted(bounds, place.row, side="right")) - 1
        start, end = bounds[number : number + 2].tolist()
        sentence = f"{place.row - start:,} of {end - start:,} (rows {start:,} to {end - 1:,})"
        lines.append(f"document {number:,} of {len(bounds) - 1:,}, its sentence {sentence}")
    report = experiment / "text" / "clean" / corpus / version / f"{pair}.json"
    lines.append(_origin(report, int(shard.lines[place.row])))
    for side, code in enumerate(shard.languages):
        ids = shard.piece(side, place.row).tolist()
        pieces = " ".join(processor.id_to_piece(ids))
        lines += ["", f"{code}: {processor.decode(ids)}", f"  {len(ids)} tokens: {pieces}"]
    return "\n".join(lines)


def _origin(path: Path, line: int) -> str:
    """Return the file and line in the corpus, from the report of the clean stage."""
    if not path.exists():
        return f"line {line:,} of the corpus (the file is unknown without {path})"
    report, before = read_json(path, _Origin), 0
    mined = report.threshold is not None
    scored = f" of the lines with a score of {report.threshold:g} or more" if mined else ""
    for name, lines in report.files.items():
        if line <= before + lines:
            return f"line {line - before:,}{scored} of {report.archives.get(name, name)}"
        before += lines
    problem = f"its files have {before:,} lines, but the pair comes from line {line:,}"
    raise Damaged(path, f"{problem}; it is damaged or from another run")
