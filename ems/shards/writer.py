"""Segmented pairs -> a token shard, streaming.

Notable choices:
- all tokens of a sentence are kept: truncation (120 in the paper) belongs to the model, not the
  data;
- a pair of which one side has no token at all (nothing but unknown spaces) is dropped and counted;
- ids are uint16, so a vocabulary holds at most 65,535 pieces (the papers: 60,000).
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ems.errors import EmsError
from ems.files import atomic_path, sha256_file, write_json
from ems.progress import Progress
from ems.text.subwords import load_vocabulary
from ems.text.tsv import batched, count_lines, read_tsv

MAX_PIECES = 65_535


def write_shard(source: Path, vocabulary: Path, out: Path) -> dict[str, Any]:
    """Encode the segmented pair file `<a>-<b>.tsv` into the shard folder `out`; return its
    manifest.
    """
    languages = source.stem.split("-")
    processor = load_vocabulary(vocabulary)
    if processor.get_piece_size() > MAX_PIECES:
        raise EmsError(
            f"{vocabulary}: {processor.get_piece_size():,} pieces; uint16 holds {MAX_PIECES:,}"
        )
    progress = Progress(f"encode {source.stem}", count_lines(source), "pairs")
    with atomic_path(out) as folder:
        folder.mkdir()
        counts = _write_arrays(_encoded(source, processor, progress), languages, folder)
        if not counts["pairs"] and progress.done:
            raise EmsError(f"{source}: no pair with tokens on both sides")
        manifest = {
            "languages": languages,
            **counts,
            "dropped": progress.done - counts["pairs"],
            "vocabulary_sha256": sha256_file(vocabulary),
            "sha256": {path.name: sha256_file(path) for path in sorted(folder.iterdir())},
        }
        write_json(folder / "manifest.json", manifest)
    progress.close(f"{manifest['dropped']:,} without tokens dropped")
    return manifest


Encoded = tuple[list[list[int]], list[list[int]]]


def _encoded(source: Path, processor: Any, progress: Progress) -> Iterator[Encoded]:
    for batch in batched(read_tsv(source)):
        sides = [processor.encode([pair[at] for pair in batch], num_threads=1) for at in (0, 1)]
        whole = [(a, b) for a, b in zip(*sides, strict=True) if a and b]
        yield [a for a, _ in whole], [b for _, b in whole]
        progress.add(len(batch))


def _write_arrays(batches: Iterator[Encoded], languages: list[str], folder: Path) -> dict[str, Any]:
    tokens, pairs = [0, 0], 0
    with (
        open(folder / f"{languages[0]}.ids", "wb") as first_ids,
        open(folder / f"{languages[1]}.ids", "wb") as second_ids,
        open(folder / f"{languages[0]}.offsets", "wb") as first_offsets,
        open(folder / f"{languages[1]}.offsets", "wb") as second_offsets,
    ):
        files = ((first_ids, first_offsets), (second_ids, second_offsets))
        for _, offsets in files:
            offsets.write(np.zeros(1, np.int64).tobytes())
        for batch in batches:
            pairs += len(batch[0])
            for side, (ids, offsets) in enumerate(files):
                tokens[side] = _append(batch[side], ids, offsets, tokens[side])
    return {"pairs": pairs, "tokens": dict(zip(languages, tokens, strict=True))}


def _append(sentences: list[list[int]], ids: BinaryIO, offsets: BinaryIO, start: int) -> int:
    ends = start + np.cumsum([len(sentence) for sentence in sentences], dtype=np.int64)
    ids.write(np.fromiter(chain.from_iterable(sentences), np.uint16).tobytes())
    offsets.write(ends.tobytes())
    return int(ends[-1]) if len(ends) else start
