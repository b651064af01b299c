"""Measurements of use_throughput.py, each in a separate process: encoders, scores, mining."""

import argparse
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from eval_steps import planted

from ems.bench.margin import pairs_of
from ems.bench.nearest import Distinct
from ems.text.pieces import Advance, Piece
from ems.use import mining
from ems.use.encoder import Encoder, score
from ems.use.files import PIECE_LINES
from ems.use.mining import SearchOptions, Vectors

PRECISIONS = ("float32", "bfloat16", "int8")
GRAPHS = {"float32": "onnx/model.onnx", "int8": "onnx/model_qint8.onnx"}
WIDTH = 128
BATCH = 64  # texts in a batch of the peers
Options = argparse.Namespace
Figures = dict[str, float]


def _speed(encode: Callable[[list[str]], object], options: Options) -> Figures:
    """Return lines per second from text to vectors, by wall and CPU time (medians of repeats)."""
    lines = options.lines.read_text("utf-8").split("\n")[: options.scale.lines]
    encode(lines[:BATCH])
    wall, cpu = [], []
    for _ in range(options.repeats):
        started = time.monotonic(), time.process_time()
        encode(lines)
        wall.append(time.monotonic() - started[0])
        cpu.append(time.process_time() - started[1])
    return {"per_s": len(lines) / median(wall), "per_cpu_s": len(lines) / median(cpu)}


def by_us(options: Options, precision: str = "float32") -> Figures:
    """Measure our encoder in one precision."""
    encoder = Encoder(options.model, "cpu", precision)
    return _speed(partial(encoder.encode, normalise=True), options)


def by_st(options: Options) -> Figures:
    """Measure sentence-transformers on the exported folder."""
    from sentence_transformers import SentenceTransformer

    code = any(options.exported.glob("*.py"))
    model = SentenceTransformer(str(options.exported), device="cpu", trust_remote_code=code)
    return _speed(lambda lines: model.encode(lines, batch_size=BATCH), options)


def by_onnxruntime(options: Options, precision: str) -> Figures:
    """Measure onnxruntime on a graph of the exported folder, with the folder's tokenizer."""
    from onnxruntime import InferenceSession, SessionOptions
    from tokenizers import Tokenizer

    threads = SessionOptions()
    threads.intra_op_num_threads = options.threads
    session = InferenceSession(options.exported / GRAPHS[precision], threads)
    path = options.exported / "tokenizer.json"
    if not path.is_file():  # of a static table
        path = options.exported / "0_StaticEmbedding/tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(Encoder(options.model, "cpu")._lines.encoder.settings.max_tokens)

    def encode(lines: list[str]) -> None:
        ordered = sorted(lines, key=len)
        for start in range(0, len(ordered), BATCH):
            texts = tokenizer.encode_batch(ordered[start : start + BATCH])
            given = {
                "input_ids": np.array([text.ids for text in texts]),
                "attention_mask": np.array([text.attention_mask for text in texts]),
            }
            session.run(["sentence_embedding"], given)

    return _speed(encode, options)


def scored(options: Options) -> Figures:
    """Measure scores of pairs in memory: rows per second without the start."""
    rows = options.pairs.read_text("utf-8").split("\n")[: options.scale.pairs]
    sides = zip(*(row.split("\t")[:2] for row in rows if row), strict=True)
    first, second = map(list, sides)
    encoder = Encoder(options.model, "cpu")
    started = time.monotonic()
    score(encoder, first, second)
    return {"per_s": len(first) / (time.monotonic() - started)}


# --- mining


def write_planted(folder: Path, count: int) -> None:
    """Write both sides in opposite orders, in files like an encoding's."""
    for at, side in enumerate(planted(count, WIDTH)):
        for number, start in enumerate(range(0, count, PIECE_LINES)):
            side[start : start + PIECE_LINES].astype(np.float32).tofile(
                folder / f"{at}-{number:05}"
            )


@dataclass(frozen=True)
class _Hurried:
    """A search with a time limit; the remaining lines get the neighbours of a searched part."""

    compare: Any
    ends: float
    made: list[tuple[Piece, Path]]

    def __call__(self, piece: Piece, out: Path, advance: Advance) -> None:
        whole = not self.made or piece.lines == self.made[0][0].lines
        if not self.made or (whole and time.monotonic() < self.ends):
            self.compare(piece, out, advance)
            self.made.append((piece, out.with_name(piece.name)))
        elif whole:
            shutil.copy(self.made[0][1], out)
        else:  # the last part is smaller
            self.compare(piece, out, advance)


def mined(options: Options) -> Figures:
    """Mine two sides of vectors; return the seconds, `compared` and `right`.

    `compared`: percentage of lines searched within `--mine-seconds`; `right`: percentage of these
    whose nearest line is the planted one.
    """
    files = [sorted(options.folder.glob(f"{side}-*")) for side in (0, 1)]
    sides = [Distinct(Vectors(own, WIDTH)) for own in files]
    count, made = len(sides[0]), []
    started, compare = time.monotonic(), mining._compare
    ends = started + options.mine_seconds
    mining._compare = lambda *of: _Hurried(partial(compare, *of[:3]), ends, made)(*of[3:])
    with mining.compared(sides, SearchOptions(), "", options.folder / "state") as found:
        pairs = pairs_of(found, sides)
    compared = sum(piece.lines for piece, _ in made)
    own = found[0].index[:compared, 0] + np.arange(compared) == count - 1
    return {
        "seconds": time.monotonic() - started,
        "lines": count,
        "compared": 100 * compared / count,
        "right": 100 * float(own.mean()),
        "pairs": len(pairs.first),
    }


RUNS: dict[str, Callable[[Options], Figures]] = {
    **{f"ours-{name}": partial(by_us, precision=name) for name in PRECISIONS},
    "st": by_st,
    **{f"onnxruntime-{name}": partial(by_onnxruntime, precision=name) for name in GRAPHS},
    "score": scored,
    "mine": mined,
}
PEERS = ("st", *(f"onnxruntime-{name}" for name in GRAPHS))
