"""The runs that eval_throughput.py compares, each in the process that calls it.

Encoding goes from token ids to embeddings with random weights, on the same sentences in shuffled
order. sentence-transformers runs `encode` of a BERT of the same shape, whose tokeniser reads ids
written as words (train_steps.py). Mining runs on random vectors with planted pairs, so that the
result can be checked. FLORES-200 is the benchmark itself on generated lines and random vectors.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from pairs_made import ROOT, SETTINGS, SIZES, load, store_of
from train_steps import Job, peer_modules

from ems.config.languages import pair_name

K = 4
SEGMENTED = (("moses", "de"), ("sacremoses", "de"), ("fugashi", "ja"))
BATCHES = (32, 128)  # for sentence-transformers: its default, and a faster one


@dataclass(frozen=True)
class Scale:
    """The amounts to measure."""

    sentences: dict[str, int]  # encoded with an encoder of that size, an even number
    mined: int  # rows of each side, for memory
    compared: int  # rows of each side, for sentence-transformers too
    width: int  # of the vectors that are mined and searched
    languages: int  # of FLORES-200
    lines: int  # of a language of FLORES-200
    segmented: int  # lines of a language


FULL = Scale({"small": 6_000, "ems": 600}, 200_000, 20_000, 1024, 62, 1012, 5_000)
DEMO = Scale({"small": 64, "ems": 32}, 600, 300, 16, 4, 20, 50)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall seconds of a call, and its result."""
    started = time.perf_counter()
    result = run()
    return time.perf_counter() - started, result


# --- encoding


def job_of(options: argparse.Namespace, count: int) -> Job:
    """Return the sentences of `count` / 2 pairs, and an encoder of the requested size."""
    settings, store = store_of(options.folder / f"{options.pieces}")
    if not options.demo:
        settings = settings.overridden({"model": SIZES[options.size]})
    run = (count // 2, 0, 1, torch.device("cpu"), "float32", False)
    return Job(settings, store, options.pieces, *run, options.folder / "scratch")


def encode(options: argparse.Namespace) -> dict[str, float]:
    """Run our `embed_tokens`."""
    from ems.model.encoder import Encoder, embed_tokens

    job = job_of(options, options.scale.sentences[options.size])
    tokens = [np.array(side) for pair in job.sentences() for side in pair]
    encoder = Encoder(job.settings.model, job.pieces)
    embed_tokens(encoder, tokens[:16])
    seconds, _ = timed(lambda: embed_tokens(encoder, tokens))
    count = sum(map(len, tokens))
    return {"per_s": len(tokens) / seconds, "tokens_per_s": count / seconds}


def encode_peer(options: argparse.Namespace, batch: int) -> dict[str, float]:
    """Run `encode` of sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    job = job_of(options, options.scale.sentences[options.size])
    words = [" ".join(map(str, side)) for pair in job.sentences() for side in pair]
    model = SentenceTransformer(modules=peer_modules(job), device="cpu")
    model.encode(words[:16], show_progress_bar=False)
    run = partial(model.encode, words, batch_size=batch, show_progress_bar=False)
    seconds, _ = timed(run)
    count = sum(len(line.split()) for line in words)
    return {"per_s": len(words) / seconds, "tokens_per_s": count / seconds}


def segment(options: argparse.Namespace) -> dict[str, float]:
    """Time raw lines to words (microseconds a line, by segmenter), and words to pieces."""
    from ems.text.segmenters.base import segmenter
    from ems.text.subwords import load_vocabulary

    processor = load_vocabulary(options.folder / f"{options.pieces}" / "bpe.model")
    by_language, words = {}, []
    for name, code in SEGMENTED:
        lines = text_of(options, code)
        split = segmenter(name, code)
        split(lines[:10])
        seconds, split_lines = timed(partial(split, lines))
        by_language[f"{name} ({code})"] = 1e6 * seconds / len(lines)
        words += split_lines
    seconds, _ = timed(partial(processor.encode, words, num_threads=1))
    return by_language | {"pieces": 1e6 * seconds / len(words)}


def text_of(options: argparse.Namespace, code: str) -> list[str]:
    """Return lines of a language, from the text of the shards."""
    pair = pair_name("en", code)
    side = pair.split("-").index(code)
    with open(options.folder / "text" / f"{pair}.tsv", encoding="utf-8") as handle:
        return [row.split("\t")[side] for row in islice(handle, options.scale.segmented)]


# --- mining


def planted(rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two float32[rows, width] of length 1; row i of one matches row -1 - i of the other."""
    random = np.random.default_rng(1)
    first = random.standard_normal((rows, width), np.float32)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = random.standard_normal((rows, width), np.float32)
    second *= np.float32(0.5 / np.sqrt(width))
    second += first[::-1]
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    return first, second


def mine(options: argparse.Namespace) -> dict[str, float]:
    """Run our mining by margin."""
    from ems.bench.margin import Mined, pairs_of
    from ems.bench.nearest import Distinct, nearest

    def search() -> Mined:
        sides = Distinct(first), Distinct(second)
        return pairs_of(nearest(*sides, K), sides)

    first, second = planted(options.rows, options.scale.width)
    seconds, pairs = timed(search)
    right = pairs.first[: options.rows] == options.rows - 1 - pairs.second[: options.rows]
    return {"per_s": options.rows / seconds, "seconds": seconds, "right": 100 * right.mean()}


def mine_peer(options: argparse.Namespace) -> dict[str, float]:
    """Run the searches of sentence-transformers' margin mining, without the margin."""
    from sentence_transformers.util import semantic_search

    first, second = map(torch.from_numpy, planted(options.rows, options.scale.width))

    def search() -> None:
        semantic_search(first, second, top_k=K)
        semantic_search(second, first, top_k=K)

    seconds, _ = timed(search)
    return {"per_s": options.rows / seconds, "seconds": seconds}


# --- FLORES-200


class Drawn:
    """Vectors of a language: the sentence vectors, shared by all languages, plus noise."""

    identity = "drawn"

    def __init__(self, rows: int, width: int) -> None:
        self.meaning = np.random.default_rng(1).standard_normal((rows, width), np.float32)
        self.asked = 0

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        self.asked += 1
        noise = np.random.default_rng(self.asked).standard_normal(self.meaning.shape, np.float32)
        return self.meaning + noise


def flores(options: argparse.Namespace) -> dict[str, float]:
    """Time the benchmark from the cached vectors of every language to the scores."""
    from ems.bench.encoders import cached
    from ems.bench.task import Task
    from ems.benchmarks.flores200.score import score

    place = options.folder / "flores"
    experiment = load(place)
    codes = experiment.evalsets["flores200"].languages
    for code in codes:
        path = place / "devtest" / f"{code}.devtest"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{code} {at}\n" for at in range(options.scale.lines)))
    encoder = Drawn(options.scale.lines, options.scale.width)
    kept = cached(encoder, place / "embeddings", 4000)
    task = Task(kept, experiment, "ems", "flores200", {"flores200": place}, place)
    first = score(task)
    seconds, again = timed(lambda: score(task))
    if encoder.asked != len(codes) or again != first:
        sys.exit(f"flores: expected {len(codes)} languages encoded once, found {encoder.asked}")
    return {"seconds": seconds, "directions": len(codes) * (len(codes) - 1)}


def write_flores_experiment(folder: Path, count: int) -> None:
    """Write an experiment with the first `count` languages of the paper."""
    paper = yaml.safe_load((ROOT / "configs" / "ems62.yaml").read_text())["languages"]
    settings = yaml.safe_load(SETTINGS) | {
        "languages": paper[:count],
        "evalsets": {"flores200": {"version": "v1"}},
        "benchmarks": ["flores200"],
        "vocabulary": {"size": 1000, "sample_lines": 1000},
        "model": {},
    }
    (folder / "flores").mkdir()
    (folder / "flores" / "bench.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))


RUNS: dict[str, Callable[[argparse.Namespace], dict[str, float]]] = {
    "encode": encode,
    **{
        f"encode-st{size}": lambda options, size=size: encode_peer(options, size)
        for size in BATCHES
    },
    "segment": segment,
    "mine": mine,
    "mine-st": mine_peer,
    "flores": flores,
}
