"""Measure a static model in use, next to model2vec and sentence-transformers' StaticEmbedding.

    python perf/use_throughput.py --static --model FOLDER [--no-peer] [--demo] [--repeats 5]
        [--cores 1 2] [--texts million flores tatoeba] [--million 1000000] [--cache-mb 64]

The peers have random vectors for the model's pieces, equally many numbers, and the same tokenizer;
they have no n-grams. Each measurement is a separate process on so many cores, which loads a model,
encodes a text to vectors of length 1 (50,000 lines in a call) and then, as a warm pass, the text
again; the million only once. All are interleaved, round after round. A figure is the median over
the rounds, a ratio the ratio of two medians of wall time. Ratios of CPU time are printed before.
`ours-all` has a cache for all words. `load_s` is `python -c` from its start to the first vector, on
one core, and `peak_mb` the peak of RssAnon of `ems encode --precision int8` with the first text on
its standard input. The last line has the figures of the first number of cores.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from measured import figures, require_peer, say, watch

TEXTS = ("million", "flores", "tatoeba")
CALL = 50_000  # lines; model2vec uses threads from 10,000 on
ALL_MB = 4000  # a cache for all words; memory is taken only for words that occur
PEERS = ("model2vec", "st")
NAMES = ("ours", "model2vec", "ours-all", "st")  # in the order of a round
LOADS = {
    "ours": "from ems import Encoder; Encoder({!r}).encode(['a'])",
    "model2vec": "from model2vec import StaticModel as S; S.from_pretrained({!r}).encode(['a'])",
    "st": "from sentence_transformers import SentenceTransformer as S; "
    "S({!r}, device='cpu').encode(['a'])",
}
Encode = Callable[[list[str]], Any]

# --- one measurement, in a process of its own


def ours(options: argparse.Namespace, cache_mb: float) -> Encode:
    from ems.use.encoder import Encoder

    encoder = Encoder(options.model, "cpu", threads=options.cores[0], cache_mb=int(cache_mb))
    return partial(encoder.encode, normalise=True)


def model2vec(options: argparse.Namespace) -> Encode:
    from model2vec import StaticModel

    return StaticModel.from_pretrained(options.folder / "model2vec").encode


def st(options: argparse.Namespace) -> Encode:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(options.cores[0])
    model = SentenceTransformer(str(options.folder / "st"), device="cpu")
    return partial(model.encode, batch_size=1024, normalize_embeddings=True)


def inside(options: argparse.Namespace) -> dict[str, float]:
    """Encode a text with one library; return lines per second of wall and of CPU time."""
    encoders = {"ours": partial(ours, cache_mb=options.cache_mb), "model2vec": model2vec, "st": st}
    encoders["ours-all"] = partial(ours, cache_mb=ALL_MB)
    encode = encoders[options.inside](options)
    encode(["a"])
    lines = (options.folder / f"{options.texts[0]}.txt").read_bytes().decode().split("\n")[:-1]
    row = {}
    for name in ("first", "warm")[: 1 if options.texts == ["million"] else 2]:
        started = time.monotonic(), time.process_time()
        for start in range(0, len(lines), CALL):
            encode(lines[start : start + CALL])
        taken = time.monotonic() - started[0], time.process_time() - started[1]
        row |= {f"{name}_per_s": len(lines) / taken[0], f"{name}_per_cpu_s": len(lines) / taken[1]}
    return row


# --- measuring


def write_peers(options: argparse.Namespace) -> None:
    """Write the folders of the peers: random vectors of the model's shape, with its tokenizer."""
    import numpy as np
    from model2vec import StaticModel
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from ems.base.files import VOCABULARY
    from ems.export.tokenizer import make_tokenizer
    from ems.model.folder import describe
    from ems.model.static import StaticEncoder

    about, encoder = describe(options.model), StaticEncoder(options.model)
    of_tokenizer = ("none", about.format_characters, encoder.max_tokens)
    tokenizer = make_tokenizer(options.model / VOCABULARY, *of_tokenizer)
    shape = encoder.vocabulary.get_piece_size(), about.model.pooled_width
    vectors = np.random.default_rng(1).standard_normal(shape, np.float32)
    of_model2vec = {"normalize": True, "max_length": encoder.max_tokens}
    StaticModel(vectors, tokenizer, **of_model2vec).save_pretrained(options.folder / "model2vec")
    module = StaticEmbedding(tokenizer, embedding_weights=vectors)
    SentenceTransformer(modules=[module], device="cpu").save(str(options.folder / "st"))


def pinned(cores: int) -> list[int]:
    """Use so many of this process's cores from now on; children too."""
    os.sched_setaffinity(0, chosen := sorted(os.sched_getaffinity(0))[-cores:])
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if cores > 1 else "false"
    return chosen


def measure(name: str, text: str, cores: int, options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of one run in a fresh process."""
    command = [sys.executable, __file__, "--inside", name, "--texts", text, f"--cores={cores}"]
    command += [f"--model={options.model}", f"--folder={options.folder}"]
    row, mb = figures([*command, f"--cache-mb={options.cache_mb}"], f"{name}, {text}")
    return row | {"rss_anon_mb": mb}


def load_seconds(name: str, folder: Path) -> float:
    """Return the seconds from the start of a process on one core to its first vector."""
    started = time.monotonic()
    words = [sys.executable, "-c", LOADS[name].format(str(folder))]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL, preexec_fn=partial(pinned, 1))
    return time.monotonic() - started


def peak_mb(options: argparse.Namespace) -> float:
    """Return the peak of RssAnon of `ems encode` with the first text on its standard input."""
    words = [sys.executable, "-m", "ems", "encode", "--model", str(options.model), "--source=-"]
    with (options.folder / f"{options.texts[0]}.txt").open() as text:
        run = subprocess.Popen(
            [*words, "--out=-", "--precision=int8"], stdin=text, stdout=subprocess.DEVNULL
        )
        peak = [0]
        sampler = threading.Thread(target=watch, args=(run.pid, peak))
        sampler.start()
        if run.wait():
            sys.exit("ems encode failed")
        sampler.join()
    return peak[0] / 1e6


def measured(options: argparse.Namespace) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Measure everything, round after round; return the medians: speeds by text, cores and
    library, and seconds to the first vector by library.
    """
    from ems.base.files import visible_files

    names = [name for name in NAMES if options.peer or name.startswith("ours")]
    folders = {"ours": options.model}
    folders |= {name: options.folder / name for name in names if name in PEERS}
    rows: dict[str, list[dict[str, float]]] = {}
    loads: dict[str, list[float]] = {}
    for _ in range(options.repeats):
        for name, folder in folders.items():
            loads.setdefault(name, []).append(load_seconds(name, folder))
        for text, cores, name in product(options.texts, options.cores, names):
            row = measure(name, text, cores, options)
            rows.setdefault(f"{text} {cores} {name}", []).append(row)
            shown = "".join(f"{value:>10,.0f}" for value in row.values())
            say(f"{text:8} {cores} {name:10}{shown}")
    for name, folder in folders.items():
        size = sum(path.stat().st_size for path in visible_files(folder)) / 1e6
        say(f"{name:10} first vector after {median(loads[name]):.2f} s, {size:.1f} MB on disk")
    medians = {
        what: {key: median(row[key] for row in own) for key in own[0]} for what, own in rows.items()
    }
    return medians, {name: median(seconds) for name, seconds in loads.items()}


def ratios(rows: dict[str, dict[str, float]], options: argparse.Namespace, per: str) -> Any:
    """Return `<text>_<pass>_vs_model2vec` of wall (per_s) or CPU time (per_cpu_s).

    A warm pass is the second pass of `ours` with the cache of --cache-mb; `ours-all` has its own
    keys.
    """
    found = {}
    for text, way, own in product(TEXTS, ("first", "warm"), ("ours", "ours-all")):
        pair = [rows.get(f"{text} {options.cores[0]} {name}", {}) for name in (own, "model2vec")]
        if all(f"{way}_{per}" in row for row in pair):
            key = f"{text}_{way}{own.removeprefix('ours').replace('-', '_')}_vs_model2vec"
            found[key] = pair[0][f"{way}_{per}"] / pair[1][f"{way}_{per}"]
    return found


def options_of(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    root = Path(__file__).resolve().parents[1]
    parser.add_argument("--demo", action="store_true", help="a little, anywhere")
    parser.add_argument("--model", type=Path, required=True, help="a model without layers")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="without the peers")
    parser.add_argument("--repeats", type=int, default=5, help="of which the median is taken")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=TEXTS)
    parser.add_argument("--million", type=int, default=1_000_000, help="its lines")
    parser.add_argument("--cache-mb", type=float, default=64)
    parser.add_argument("--out", type=Path, default=root / "results/perf/use_static.json")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.demo:
        options.repeats, options.cores = 1, options.cores[:1]
    return options


def main(words: list[str]) -> None:
    options = options_of(words)
    if options.inside:
        pinned(options.cores[0])
        say(json.dumps(inside(options)))
        return
    if options.peer:
        require_peer(["model2vec", "sentence_transformers"], "bench,export", "model2vec")
    from static_texts import write_texts

    from ems.base.files import write_json

    with tempfile.TemporaryDirectory() as name:
        options.folder = Path(name)
        write_texts(options.folder, options.texts, options.million, options.demo)
        if options.peer:
            write_peers(options)
        rows, loads = measured(options)
        last = {"load_s": loads["ours"], "peak_mb": peak_mb(options)}
    by_wall, by_cpu = (ratios(rows, options, per) for per in ("per_s", "per_cpu_s"))
    for kind, found in (("wall", by_wall), ("CPU", by_cpu)):
        shown = ", ".join(f"{key} {value:.2f}" for key, value in found.items())
        say(f"{kind} time, cache of {options.cache_mb:g} MB (all: of all words): {shown}")
    about = {"cache_mb": options.cache_mb, "first_vector_s": loads, "measured": rows}
    write_json(options.out, about | {"wall": by_wall, "cpu": by_cpu} | last)
    last = {key: value for key, value in by_wall.items() if "_all_" not in key} | last
    say(" ".join(f"{key}={value:.2f}" for key, value in last.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
