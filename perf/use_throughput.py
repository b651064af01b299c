"""Measure a trained model in use: text to vectors, scores of pairs, mining of two large texts.

    python perf/use_throughput.py [--demo] [--model FOLDER] [--pairs FILE.tsv] [--no-peer]
        [--mine-lines 1000000] [--threads 2] [--out FILE]

Ours goes from text to vectors by `Encoder`, in float32, bfloat16 and int8. The peer is
sentence-transformers on `--exported`, the same model as `ems export` wrote it. `ems score` runs as
a user runs it, start included. Mining is `ems mine` without its encoding: two texts of
planted vectors at d = 128, and its peak of RssAnon. Each is a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from eval_steps import planted
from measured import figures, require_peer, say
from pairs_made import ROOT

from ems.bench.margin import pairs_of
from ems.files import write_json
from ems.use.encoder import Encoder
from ems.use.mining import Search, Vectors, compared
from ems.use.stream import LINES

PRECISIONS = ("float32", "bfloat16", "int8")
WIDTH = 128


@dataclass(frozen=True)
class Scale:
    """How much is measured: lines encoded, pairs scored, lines of each side mined."""

    lines: int
    pairs: int
    mined: int


FULL = Scale(100_000, 50_000, 1_000_000)
DEMO = Scale(300, 300, 500)
Options = argparse.Namespace


def encoded_by_us(options: Options) -> dict[str, float]:
    """Sentences per second of one precision, tokenising included."""
    encoder = Encoder(options.model, "cpu", options.inside.removeprefix("ours-"))
    return _speed(encoder.encode, options)


def encoded_by_peer(options: Options) -> dict[str, float]:
    """The same of sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(options.exported), device="cpu")
    return _speed(lambda lines: model.encode(lines, batch_size=64), options)


def _speed(encode: Callable[[list[str]], object], options: Options) -> dict[str, float]:
    lines = options.lines.read_text("utf-8").split("\n")[: options.scale.lines]
    encode(lines[:64])
    started = time.monotonic()
    encode(lines)
    return {"per_s": len(lines) / (time.monotonic() - started)}


def mined(options: Options) -> dict[str, float]:
    """Seconds of mining two sides of vectors, and the share of planted pairs among the pairs."""
    sides = [Vectors(sorted(options.folder.glob(f"{at}-*")), WIDTH) for at in (0, 1)]
    count = len(sides[0])
    started = time.monotonic()
    with compared(*sides, Search(), "", options.folder / "state") as found:
        pairs = pairs_of(*found)
    right = (pairs.first + pairs.second == count - 1).sum() / len(pairs.first)
    return {"seconds": time.monotonic() - started, "lines": count, "right": 100 * float(right)}


RUNS = {f"ours-{name}": encoded_by_us for name in PRECISIONS}
RUNS |= {"st": encoded_by_peer, "mine": mined}


def write_planted(folder: Path, count: int) -> None:
    """Write both sides, in files as an encoding leaves them, in opposite orders."""
    for at, side in enumerate(planted(count, WIDTH)):
        for number, start in enumerate(range(0, count, LINES)):
            side[start : start + LINES].astype(np.float32).tofile(folder / f"{at}-{number:05}")


def measure(name: str, options: Options) -> dict[str, float]:
    """The figures of one run in a fresh process, with its peak of RssAnon."""
    words = [sys.executable, __file__, "--inside", name, f"--threads={options.threads}"]
    places = {key: vars(options)[key] for key in ("model", "lines", "exported", "folder")}
    words += [f"--{key}={value}" for key, value in places.items() if value]
    results, anon_mb = figures(words + ["--demo"] * options.demo, name)
    say(f"{name:16}{json.dumps(results)} {anon_mb:,.0f} MB")
    return results | {"rss_anon_mb": anon_mb}


def scored(options: Options) -> float:
    """Rows per second of `ems score` as a filter."""
    count = options.scale.pairs
    rows = options.pairs.read_text("utf-8").split("\n")[:count]
    content = "".join(f"{row}\n" for row in rows)
    command = [sys.executable, "-m", "ems", "score", "--model", str(options.model)]
    started = time.monotonic()
    subprocess.run(command, input=content, text=True, stdout=-3, stderr=-3, check=True)
    return len(rows) / (time.monotonic() - started)


def options_of() -> Options:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--demo", action="store_true", help="a little, anywhere")
    parser.add_argument("--model", type=Path, required=True, help="a model without segmenters")
    parser.add_argument("--exported", type=Path, help="the same as `ems export` wrote it")
    parser.add_argument("--pairs", type=Path, help="TSV of pairs")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/use_throughput.json")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="without the peer")
    parser.add_argument("--mine-lines", type=int, help="(default: 1,000,000)")
    parser.add_argument("--threads", type=int, default=2)
    for name in ("lines", "folder"):
        parser.add_argument(f"--{name}", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--inside", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    scale = DEMO if options.demo else FULL
    options.scale = Scale(scale.lines, scale.pairs, options.mine_lines or scale.mined)
    return options


def main() -> None:
    options = options_of()
    if options.inside:
        torch.set_num_threads(options.threads)
        say(json.dumps(RUNS[options.inside](options)))
        return
    peer = options.peer and options.exported is not None
    if peer:
        require_peer(["sentence_transformers"], "peers")
    with tempfile.TemporaryDirectory() as name:
        options.folder, options.lines = Path(name), Path(name) / "lines.txt"
        options.lines.write_text(options.pairs.read_text("utf-8").replace("\t", "\n"), "utf-8")
        write_planted(options.folder, options.scale.mined)
        names = [name for name in RUNS if name != "st" or peer]
        rows = {name: measure(name, options) for name in names}
        last = {"encode_per_s": rows["ours-float32"]["per_s"]}
        last |= {"encode_vs_st": last["encode_per_s"] / rows["st"]["per_s"]} if peer else {}
        for name in PRECISIONS[1:]:
            last[f"{name}_vs_float"] = rows[f"ours-{name}"]["per_s"] / last["encode_per_s"]
        last |= {"score_rows_per_s": scored(options), "mine_s": rows["mine"]["seconds"]}
        last |= {"mine_lines": rows["mine"]["lines"], "mine_peak_mb": rows["mine"]["rss_anon_mb"]}
    write_json(options.out, {"torch": torch.__version__, "measured": rows, **last})
    say(" ".join(f"{name}={value:.2f}" for name, value in last.items()))


if __name__ == "__main__":
    main()
