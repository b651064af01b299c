"""Segmented pairs -> token shards: in parallel, resumable shard by shard, streaming.

Notable choices:
- all tokens of a sentence are kept: truncation (120 in the paper) belongs to the model, not the
  data;
- a pair of which one side has no token at all (nothing but unknown spaces) is dropped and counted;
- ids are uint16, so a vocabulary holds at most 65,535 pieces (the papers: 60,000);
- a shard is a fixed number of lines of its source, so that shards do not wait for each other; one
  without a pair is left out, and its number with it;
- no Python per token: SentencePiece encodes the new words of a batch (words.py).
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ems.config.provenance import source_hash
from ems.errors import EmsError
from ems.files import atomic_path, check_target, read_json, sha256_file, write_json
from ems.shapes import COUNT, listing, mapping, record
from ems.shards.index import is_shards
from ems.shards.reader import SHARD
from ems.shards.words import WordEncoder
from ems.text.pieces import Advance, Piece, Work, alone, cut, kept
from ems.text.subwords import load_vocabulary
from ems.text.tsv import codes_of, read_columns

PAIRS = 1_000_000  # of a shard at most: some 100 MB, 20 seconds of one core
ID = np.dtype(np.uint16)
MAX_PIECES = 65_535
PART = record(  # of the manifest of a shard, what is added up
    {**SHARD["properties"], "dropped": COUNT, "lengths": mapping(listing(COUNT))}
)
BIN, BINS = 10, 26  # tokens per class of the histogram of lengths; the last: 250 and more


@dataclass(frozen=True)
class Encoding:
    """How pairs of two languages become tokens; called, it loads the vocabulary."""

    vocabulary: Path
    sha256: str
    languages: tuple[str, ...]

    def __call__(self) -> Work:
        processor = load_vocabulary(self.vocabulary)
        size = processor.get_piece_size()
        if size > MAX_PIECES:
            raise EmsError(f"{self.vocabulary}: {size:,} pieces; uint16 holds {MAX_PIECES:,}")
        return partial(_write_shard, self, WordEncoder(processor))


def write_shards(
    source: Path,
    vocabulary: Path,
    out: Path,
    state: Path | None = None,
    workers: int = 1,
    pairs: int = PAIRS,
) -> dict[str, Any]:
    """Encode the segmented pair file `<a>-<b>.tsv` into shards in the folder `out`; return the
    manifest of the folder.

    Several shards are written by `workers` processes and kept in `state` (default: beside `out`)
    until all are there. Raises `EmsError` when not one pair has tokens on both sides.
    """
    check_target(out, is_shards)
    start = Encoding(vocabulary, sha256_file(vocabulary), codes_of(source))
    what = f"encode {source.stem}"
    pieces, sha256 = cut(source, pairs, size=None)
    if len(pieces) == 1:
        with atomic_path(out, is_shards) as folder:
            folder.mkdir()
            alone(what, start, pieces[0], folder / pieces[0].name)
            return _close(folder, source)
    state = state or out.with_name(f".{out.name}.state")
    key = {"source": sha256, "vocabulary": start.sha256, "pairs": pairs}
    key |= {"languages": start.languages, "code": source_hash("ems.shards.writer")}
    with kept(what, start, pieces, state, key, workers) as results:
        folder = results[0].parent
        manifest = _close(folder, source)
        with atomic_path(out, is_shards) as temporary:
            shutil.move(folder, temporary)
    return manifest


def _close(folder: Path, source: Path) -> dict[str, Any]:
    """Write the manifest of a folder of shards, those without a pair taken out."""
    paths = sorted(folder.glob("*/manifest.json"))
    manifests = {path.parent: read_json(path, PART) for path in paths}
    whole = {shard: manifest for shard, manifest in manifests.items() if manifest["pairs"]}
    dropped = sum(part["dropped"] for part in manifests.values())
    if not whole and dropped:
        raise EmsError(f"{source}: no pair with tokens on both sides")
    for shard in manifests.keys() - whole.keys():  # of an empty file, which a small part may be
        shutil.rmtree(shard)
    first, *_ = parts = list(manifests.values())
    manifest = {
        "languages": first["languages"],
        "pairs": sum(part["pairs"] for part in parts),
        "dropped": dropped,
        "tokens": {
            code: sum(part["tokens"][code] for part in parts) for code in first["languages"]
        },
        "lengths": {
            code: np.sum([part["lengths"][code] for part in parts], axis=0).tolist()
            for code in first["languages"]
        },
        "vocabulary_sha256": first["vocabulary_sha256"],
        "shards": {shard.name: sha256_file(shard / "manifest.json") for shard in whole},
    }
    write_json(folder / "manifest.json", manifest)
    return manifest


# --- one shard


def _write_shard(
    encoding: Encoding, encoder: WordEncoder, piece: Piece, folder: Path, advance: Advance
) -> None:
    """Encode a piece of a pair file into the shard `folder`."""
    folder.mkdir()
    with ExitStack() as stack:

        def create(name: str) -> BinaryIO:
            return stack.enter_context(open(folder / name, "wb"))

        sides = [Side(create(f"{c}.ids"), create(f"{c}.offsets")) for c in encoding.languages]
        lines = create("lines")
        for *encoded, origins in _encoded(encoder, piece, advance):
            lines.write(np.array(origins, np.int64).tobytes())
            for side, sentences in zip(sides, encoded, strict=True):
                side.append(sentences)
    codes = dict(zip(encoding.languages, sides, strict=True))
    manifest = {
        "languages": encoding.languages,
        "pairs": sides[0].sentences,
        "dropped": piece.lines - sides[0].sentences,
        "tokens": {code: side.tokens for code, side in codes.items()},
        "lengths": {code: side.lengths.tolist() for code, side in codes.items()},
        "vocabulary_sha256": encoding.sha256,
        "sha256": {path.name: sha256_file(path) for path in sorted(folder.iterdir())},
    }
    write_json(folder / "manifest.json", manifest)


class Side:
    """One language of a shard while it is written."""

    def __init__(self, ids: BinaryIO, offsets: BinaryIO) -> None:
        self.ids, self.offsets = ids, offsets
        self.sentences = self.tokens = 0
        self.lengths = np.zeros(BINS, np.int64)
        offsets.write(np.zeros(1, np.int64).tobytes())

    def append(self, sentences: list[bytes]) -> None:
        """Write a batch of packed sentences."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences)) // ID.itemsize
        self.ids.write(b"".join(sentences))
        self.offsets.write((self.tokens + np.cumsum(lengths)).tobytes())
        self.lengths += np.bincount(np.minimum(lengths // BIN, BINS - 1), minlength=BINS)
        self.sentences += len(sentences)
        self.tokens += int(lengths.sum())


Encoded = tuple[list[bytes], list[bytes], list[int]]  # packed ids of both sides, lines


def _encoded(encoder: WordEncoder, piece: Piece, advance: Advance) -> Iterator[Encoded]:
    """The pairs of a piece, batch by batch, those without tokens on a side left out."""
    for *sides, origins in read_columns(piece.source, piece.start, piece.lines, piece.first):
        first, second = map(encoder.encode, sides)
        lines = list(map(int, origins))
        if not (all(first) and all(second)):
            rows = [at for at, both in enumerate(zip(first, second, strict=True)) if all(both)]
            first, second, lines = ([kept[at] for at in rows] for kept in (first, second, lines))
        yield first, second, lines
        advance(len(origins))
