"""Encode segmented pairs or documents into token shards, streaming, in parallel and resumable.

All tokens of a sentence are kept, because truncation (120 in the paper) belongs to the model. A
pair with an empty side is dropped and counted, as is an empty sentence of a document, and a
document left with fewer than two. Shards can be encoded independently: each is a fixed number of
lines of its source, to the end of the last document. Empty shards are left out.
"""

import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, compress, groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ems.base import files
from ems.base.errors import Damaged, EmsError
from ems.base.files import atomic_path, read_json, sha256_file, state_of, write_json
from ems.base.progress import Progress, log
from ems.base.provenance import source_hash
from ems.base.records import Count, Json
from ems.base.stamps import Stamp, make_each
from ems.base.texts import batched
from ems.shards.index import LIST, MANIFEST, Sums, is_several, is_shards, shards_in
from ems.shards.shard import DOCUMENTS, Shard, ShardManifest
from ems.text.pieces import Advance, Piece, cut, done_pieces
from ems.text.subwords import WordEncoder, load_vocabulary
from ems.text.tsv import BOUNDARY, MIN_SENTENCES, codes_of, read_columns
from ems.text.tsv import LIST as FILES

PAIRS = 1_000_000  # per shard: about 100 MB, 20 seconds of one core
ID = np.dtype(np.uint16)
MANY = 100  # documents encoded at once
MAX_PIECES = 65_535  # pieces of a vocabulary: ids are uint16; the papers have 60,000
BIN, BINS = 10, 26  # histogram of lengths: tokens per bin, number of bins (last: 250 and more)
VocabularyFile = tuple[Path, str]  # the file and its sha256


class _Part(ShardManifest):
    dropped: Count
    lengths: dict[str, list[Count]]


def write_shards(
    source: Path,
    vocabulary: Path,
    out: Path,
    state: Path | None = None,
    workers: int = 1,
    pairs: int = PAIRS,
    small: bool = False,
) -> Json:
    """Encode pairs `<a>-<b>.tsv`, or documents `<a>.tsv`, into shards; return their manifest.
    `workers` processes write them into `state` (default: next to `out`) until all are finished;
    `small`: see `Progress`. Raises `EmsError` if no pair has tokens on both sides.
    """
    files.check_target(out, is_shards)
    languages, vocabulary_sha256 = codes_of(source), sha256_file(vocabulary)
    work = partial(write_shard, (vocabulary, vocabulary_sha256))
    what, unit = f"encode {source.stem}", "pairs" if len(languages) > 1 else "lines"
    end_line = BOUNDARY if len(languages) == 1 else None
    pieces, sha256 = cut(source, pairs, size=None, end_line=end_line)
    if len(pieces) == 1:
        with atomic_path(out, is_shards) as folder:
            folder.mkdir()
            progress = Progress(what, pieces[0].lines, unit, small=small)
            work(pieces[0], folder / pieces[0].name, progress.add)
            progress.close()
            files.check_unchanged(source, pieces[-1].end)
            return close_folder(folder, source)
    key = {"source": sha256, "vocabulary": vocabulary_sha256, "pairs": pairs}
    key |= {"languages": languages, "code": source_hash(__name__)}
    with done_pieces(what, work, pieces, state or state_of(out), key, workers, unit) as results:
        folder = results[0].parent
        manifest = close_folder(folder, source)
        files.check_unchanged(source, pieces[-1].end)
        with atomic_path(out, is_shards) as temporary:
            shutil.move(folder, temporary)
    return manifest


def write_each(
    sources: list[Path],
    vocabulary: Path,
    out: Path,
    state: Path | None = None,
    workers: int = 1,
    pairs: int = PAIRS,
) -> dict[str, str]:
    """Encode pair files into a folder of shards each in `out`, except current ones;
    return {language pair: SHA-256 of its manifest}. Raises `EmsError` at the end if some failed.
    """
    what, begin, state = "/".join(out.parts[-2:]), time.monotonic(), state or state_of(out)
    size = sum(path.stat().st_size for path in sources)
    progress = Progress(f"encode {what}", size, "bytes", small=True)
    key, sums, made = {"code": source_hash(__name__), "pairs": pairs}, dict[str, str](), []

    def make(source: Path) -> None:
        folder = out / source.stem
        manifest = folder / MANIFEST
        path = out / ".stamps" / f"{source.stem}.json"
        stamp = Stamp(path, key, (source, vocabulary), (manifest,))
        done = stamp.sums()
        if not (done and _is_whole(folder)):
            job = (source, vocabulary, folder, state / source.stem, workers, pairs)
            with stamp.making() as done:
                made.append(write_shards(*job, small=True))
        sums[source.stem] = done[str(manifest)]
        progress.add(source.stat().st_size, lambda: f"{len(sums)} of {len(sources)} pairs")

    make_each(sources, make, lambda source: source.stem)
    with suppress(OSError):  # never used, or used by another part as well
        state.rmdir()
    rows = sum(manifest["pairs"] for manifest in made)
    tokens = sum(sum(manifest["tokens"].values()) for manifest in made) / 1e6
    rate = rows / max(time.monotonic() - begin, 1e-9)
    before = f" ({len(sums) - len(made):,} more were done before)" if len(made) < len(sums) else ""
    done = f"{len(made):,} pairs, {rows:,} rows, {tokens:,.1f}M tokens, {rate:,.0f} rows/s{before}"
    log.info("%s: %s", what, done)
    return sums


def _is_whole(folder: Path) -> bool:
    """Return whether all files that the manifests list are there, by their sizes."""
    with suppress(EmsError):
        return all(Shard(shard) for shard in shards_in(folder))
    return False


def write_several(
    source: Path,
    vocabulary: Path,
    out: Path,
    state: Path | None = None,
    workers: int = 1,
    pairs: int = PAIRS,
    languages: Collection[str] = (),
) -> dict[str, str]:
    """Encode the pair files of a folder in `languages` only (empty: all); return {language pair:
    SHA-256 of its manifest}. It is one job, since there may be a thousand small language pairs.
    """
    files.check_target(out, is_several)
    sums = read_json(source / FILES, Sums)
    paths = [source / name for name in sorted(sums)]
    paths = [path for path in paths if not languages or {*codes_of(path)} <= {*languages}]
    pieces, key = [], {}
    for path in paths:
        own, key[path.name] = cut(path, pairs, size=None)
        if key[path.name] != sums[path.name]:
            raise Damaged(path, f"its SHA-256 is not the one in {source / FILES}")
        pieces += own
    numbered = [replace(piece, number=number) for number, piece in enumerate(pieces)]
    sha256 = sha256_file(vocabulary)
    _processor((vocabulary, sha256))
    key |= {"vocabulary": sha256, "pairs": str(pairs), "code": source_hash(__name__)}
    work, state = partial(write_shard, (vocabulary, sha256)), state or state_of(out)
    shards = done_pieces(f"encode {source}", work, numbered, state, key, workers, "pairs")
    with shards as results, atomic_path(out, is_several) as folder:
        for result, piece in zip(results, pieces, strict=True):
            pair = folder / piece.source.stem
            pair.mkdir(parents=True, exist_ok=True)
            shutil.move(result, pair / piece.name)
        for path in paths:
            close_folder(folder / path.stem, path)
        listed = {path.stem: sha256_file(folder / path.stem / MANIFEST) for path in paths}
        write_json(folder / LIST, listed)
    return listed


def close_folder(folder: Path, source: Path) -> Json:
    """Remove shards without pairs, and write the manifest of the folder."""
    paths = sorted(folder.glob(f"*/{MANIFEST}"))
    parts = [read_json(path, _Part) for path in paths]
    languages, dropped = parts[0].languages, sum(part.dropped for part in parts)
    kept = [path for path, part in zip(paths, parts, strict=True) if part.pairs]
    if dropped and not kept:
        what = "pair with tokens on both sides" if len(languages) > 1 else "document"
        raise EmsError(f"{source}: no {what}")
    for path in set(paths).difference(kept):  # a small part of a corpus may be empty
        shutil.rmtree(path.parent)
    lengths = [part.lengths for part in parts]
    manifest = {
        "languages": languages,
        "pairs": sum(part.pairs for part in parts),
        "dropped": dropped,
        "tokens": {code: sum(part.tokens[code] for part in parts) for code in languages},
        "lengths": {code: np.sum([own[code] for own in lengths], 0).tolist() for code in languages},
        "vocabulary_sha256": parts[0].vocabulary_sha256,
        "shards": {path.parent.name: sha256_file(path) for path in kept},
    }
    if len(languages) == 1:
        manifest["documents"] = sum(part.documents for part in parts)
    _write_manifest(folder, manifest)
    return manifest


def _write_manifest(folder: Path, manifest: Json) -> None:
    """Write the manifest of a folder that gets its name, and is synced, later."""
    (folder / MANIFEST).write_text(files.as_json(manifest), encoding="utf-8", newline="\n")


# --- one shard


@lru_cache(maxsize=2)  # the language that the pairs of a job share stays
def _encoder(vocabulary: VocabularyFile, language: str) -> WordEncoder:
    return WordEncoder(_processor(vocabulary), language)


@lru_cache(maxsize=1)
def _processor(vocabulary: VocabularyFile) -> Any:
    """Load a `SentencePieceProcessor`. Raises `EmsError` if its ids do not fit uint16."""
    processor = load_vocabulary(vocabulary[0])
    size = processor.get_piece_size()
    if size > MAX_PIECES:
        raise EmsError(f"{vocabulary[0]}: {size:,} pieces; expected at most {MAX_PIECES:,}")
    return processor


def write_shard(vocabulary: VocabularyFile, piece: Piece, folder: Path, advance: Advance) -> None:
    languages = codes_of(piece.source)
    encoders = [_encoder(vocabulary, code) for code in languages]
    folder.mkdir()
    with ExitStack() as stack:

        def create(name: str) -> BinaryIO:
            return stack.enter_context(open(folder / name, "wb"))

        sides = [
            EncodedSide(create(f"{code}.ids"), create(f"{code}.offsets")) for code in languages
        ]
        lines = create("lines")
        documents = Documents() if len(languages) == 1 else None
        encode = documents.encoded if documents else _encoded
        for *encoded, origins in encode(encoders, piece, advance):
            lines.write(np.array(origins, np.int64).tobytes())
            for side, sentences in zip(sides, encoded, strict=True):
                side.append(sentences)
        if documents:
            create(DOCUMENTS).write(np.array(documents.bounds, np.int64).tobytes())
    codes = dict(zip(languages, sides, strict=True))
    manifest = {
        "languages": languages,
        "pairs": sides[0].sentences,
        **({"documents": len(documents.bounds) - 1} if documents else {}),
        "dropped": (documents.read if documents else piece.lines) - sides[0].sentences,
        "tokens": {code: side.tokens for code, side in codes.items()},
        "lengths": {code: side.lengths.tolist() for code, side in codes.items()},
        "vocabulary_sha256": vocabulary[1],
        "sha256": {path.name: sha256_file(path) for path in sorted(folder.iterdir())},
    }
    _write_manifest(folder, manifest)


def _encoded(
    encoders: list[WordEncoder], piece: Piece, advance: Advance
) -> Iterator[tuple[list[bytes], list[bytes], list[int]]]:
    """Yield batches of the pairs with tokens on both sides: packed ids of each, lines."""
    for *sides, origins in read_columns(piece.source, piece.start, piece.lines, piece.first):
        ids = [encoder.encode(side) for encoder, side in zip(encoders, sides, strict=True)]
        both = [bool(first and second) for first, second in zip(*ids, strict=True)]
        yield tuple(list(compress(column, both)) for column in (*ids, map(int, origins)))
        advance(len(origins))


class Documents:
    """Documents being encoded: number of sentences `read`, and `bounds`, the first row of each."""

    def __init__(self) -> None:
        self.read, self.bounds = 0, [0]

    def encoded(
        self, encoders: list[WordEncoder], piece: Piece, advance: Advance
    ) -> Iterator[tuple[list[bytes], list[int]]]:
        """Yield batches of the sentences that are kept: packed ids, lines."""
        for batch in batched(_documents(piece), lambda d: sum(len(text) for text, _ in d), MANY):
            texts, origins = zip(*chain.from_iterable(batch), strict=True)
            whole = zip(encoders[0].encode(texts), origins, strict=True)
            encoded: list[tuple[bytes, int]] = []
            for document in batch:
                rows = [(ids, line) for ids, line in islice(whole, len(document)) if ids]
                if len(rows) >= MIN_SENTENCES:
                    encoded += rows
                    self.bounds.append(self.bounds[-1] + len(rows))
            self.read += len(texts)
            yield [ids for ids, _ in encoded], [line for _, line in encoded]
            advance(len(texts) + len(batch))


def _documents(piece: Piece) -> Iterator[list[tuple[str, int]]]:
    batches = read_columns(piece.source, piece.start, piece.lines, piece.first, sides=1)
    rows = chain.from_iterable(zip(*columns, strict=True) for columns in batches)
    for is_text, document in groupby(rows, lambda row: bool(row[1])):  # else it ends a document
        if is_text:
            yield [(text, int(line)) for text, line in document]


class EncodedSide:
    def __init__(self, ids: BinaryIO, offsets: BinaryIO) -> None:
        self.ids, self.offsets = ids, offsets
        self.sentences = self.tokens = 0
        self.lengths = np.zeros(BINS, np.int64)
        offsets.write(np.zeros(1, np.int64).tobytes())

    def append(self, sentences: list[bytes]) -> None:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences)) // ID.itemsize
        self.ids.write(b"".join(sentences))
        self.offsets.write((self.tokens + np.cumsum(lengths)).tobytes())
        self.lengths += np.bincount(np.minimum(lengths // BIN, BINS - 1), minlength=BINS)
        self.sentences += len(sentences)
        self.tokens += int(lengths.sum())
