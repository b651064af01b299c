"""Measure how fast encoders are evaluated: encoding, mining and FLORES-200.

    python perf/eval_throughput.py [--demo] [--no-peer] [--shared FOLDER] [--threads 2] [--out FILE]

Each run (eval_steps.py) is a separate process, whose memory is the peak of RssAnon. Compared runs
are interleaved, round after round. A figure is the median over the rounds, and a ratio is the ratio
of two medians.

- Encoding is measured in two sizes, against the faster of two batch sizes of sentence-transformers.
  Segmentation, which both need, is timed separately: raw lines to words, words to pieces.
- Mining is `mine` with its defaults: 200,000 x 200,000 at width 1024 once, for memory; a tenth of
  that against two semantic searches of sentence-transformers, one for each direction.
- FLORES-200 goes from the cache on disk to the scores: 62 languages, 1,012 sentences, width 1024.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from eval_steps import BATCHES, DEMO, FULL, RUNS, SEGMENTED, Scale, write_flores_experiment
from measured import figures, require_peer, require_segmenters, say
from pairs_made import ROOT, SHARED, SIZES, prepare
from train_steps import PEER_ENCODER

from ems.base.files import write_json
from ems.base.progress import log

REPEATS = 3
PIECES, DEMO_PIECES = 8_000, 1_200
NAMES = {
    "encode": "ours",
    "encode-st32": "sentence-transformers, batches of 32",
    "encode-st128": "sentence-transformers, batches of 128",
    "mine": "ours",
    "mine-st": "sentence-transformers, two searches",
}
Found = dict[str, dict[str, float]]  # program -> its figures


def measure(name: str, folder: Path, options: argparse.Namespace, **more: Any) -> dict[str, float]:
    """Return the figures of one run in a fresh process, with its peak of RssAnon."""
    command = [sys.executable, __file__, "--inside", name, "--folder", str(folder)]
    command += [f"--threads={options.threads}", *(["--demo"] if options.demo else [])]
    command += [f"--{key}={value}" for key, value in more.items()]
    results, anon_mb = figures(command, " ".join([name, *map(str, more.values())]))
    return results | {"rss_anon_mb": anon_mb}


def medians(names: list[str], folder: Path, options: argparse.Namespace, **more: Any) -> Found:
    """Run each of `names` in turn, round after round; return the medians of their figures."""
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for at in range(options.repeats):
        for name in names:
            rows[name].append(measure(name, folder, options, **more))
            speed = rows[name][-1]["per_s"]
            say(f"round {at + 1}, {' '.join(map(str, more.values()))}, {name}: {speed:,.0f} per s")
    return {
        name: {key: statistics.median(row[key] for row in own) for key in own[0]}
        for name, own in rows.items()
    }


def run_all(folder: Path, options: argparse.Namespace) -> dict[str, Found]:
    """Run everything; return measurement -> program -> its figures."""
    wanted = DEMO_PIECES if options.demo else PIECES
    shared = None if options.demo else options.shared
    pieces = prepare(folder, shared, "small", (wanted,))[wanted]
    write_flores_experiment(folder, options.scale.languages)
    batches = BATCHES[:1] if options.demo else BATCHES
    encoders = ["encode", *(f"encode-st{size}" for size in batches if options.peer)]
    results = {
        f"encode {size}": medians(encoders, folder, options, size=size, pieces=pieces)
        for size in options.scale.sentences
    }
    miners = ["mine", *(["mine-st"] if options.peer else [])]
    results["mine"] = medians(miners, folder, options, rows=options.scale.compared)
    results["segment"] = {"segment": measure("segment", folder, options, pieces=pieces)}
    results["flores"] = {"flores": measure("flores", folder, options)}
    say(f"mining {options.scale.mined:,} x {options.scale.mined:,}: minutes, its progress below")
    results["mine all"] = {"mine": measure("mine", folder, options, rows=options.scale.mined)}
    return results


def summary(results: dict[str, Found]) -> dict[str, float]:
    """Return the figures of the last line; a ratio uses the faster of the other's batch sizes."""
    names = {"encode_vs_st": "encode small", "encode1024_vs_st": "encode ems"}
    ratios = {name: _ratio(results[what]) for name, what in names.items() if len(results[what]) > 1}
    peak = results["mine all"]["mine"]["rss_anon_mb"]
    return ratios | {"mine_peak_mb": peak, "flores_s": results["flores"]["flores"]["seconds"]}


def _ratio(rows: Found) -> float:
    """Return the speed of the first relative to the fastest of the others."""
    first, *others = [row["per_s"] for row in rows.values()]
    return first / max(others)


def show(results: dict[str, Found], last: dict[str, float], scale: Scale) -> None:
    say(f"\n{'encoding':58}{'sentences/s':>12}{'tokens/s':>10}{'RssAnon MB':>12}")
    for size, count in scale.sentences.items():
        shape = "{layers} x {width}".format(**SIZES[size])
        for name, row in results[f"encode {size}"].items():
            figure = f"{row['per_s']:12,.0f}{row['tokens_per_s']:10,.0f}{row['rss_anon_mb']:12,.0f}"
            say(f"{f'{shape}, {count:,}: {NAMES[name]}':58}{figure}")
    say(f"\n{'mining, both ways':58}{'seconds':>12}{'RssAnon MB':>12}")
    sizes = {"mine": scale.compared, "mine all": scale.mined}
    for what, rows in sizes.items():
        for name, row in results[what].items():
            label = f"{rows:,}: {NAMES[name]}"
            say(f"{label:58}{row['seconds']:12,.1f}{row['rss_anon_mb']:12,.0f}")
    right = results["mine all"]["mine"]["right"]
    speed = (
        f"; speed against two searches: {_ratio(results['mine']):.2f}"
        if len(results["mine"]) > 1
        else ""
    )
    say(f"mined rightly: {right:.1f} %{speed}")
    cells = results["segment"]["segment"].items()
    say(
        "\nmicroseconds a line: "
        + ", ".join(f"{n} {us:,.0f}" for n, us in cells if n != "rss_anon_mb")
    )
    row = results["flores"]["flores"]
    say(f"FLORES-200, {row['directions']:,.0f} directions from the cache: {row['seconds']:.1f} s")
    ratios = [f"{name}={value:.2f} " for name, value in last.items() if name.endswith("_vs_st")]
    say(f"{''.join(ratios)}mine_peak_mb={last['mine_peak_mb']:.0f} flores_s={last['flores_s']:.1f}")


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--demo", action="store_true", help="a little of everything, anywhere")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/eval_throughput.json")
    parser.add_argument(
        "--no-peer", dest="peer", action="store_false", help="leave out sentence-transformers"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--inside", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--size", choices=SIZES, help=argparse.SUPPRESS)
    parser.add_argument("--pieces", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.scale = DEMO if options.demo else FULL
    return options


def main() -> None:
    options = options_of()
    if options.inside:
        torch.set_num_threads(options.threads)
        log.addHandler(logging.StreamHandler())  # progress
        log.setLevel(logging.INFO)
        say(json.dumps(RUNS[options.inside](options)))
        return
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    require_segmenters(name for name, _ in SEGMENTED)
    if options.peer:
        require_peer(PEER_ENCODER, "peers")
    with tempfile.TemporaryDirectory() as folder:
        results = run_all(Path(folder), options)
    last = summary(results)
    write_json(options.out, {"torch": torch.__version__, "measured": results, **last})
    show(results, last, options.scale)


if __name__ == "__main__":
    main()
