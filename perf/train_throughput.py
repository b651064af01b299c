"""Measure how fast the trainer is, against sentence-transformers and a plain padded loop.

    python perf/train_throughput.py [--demo] [--no-peer] [--shared FOLDER] [--device cuda ...]

Each run is a separate process, whose memory is the peak of RssAnon, or PyTorch's peak on the GPU. A
failed run is left out, and the exit status is 1. All runs see the same pairs, in batches shuffled
over all languages by a seed, without buckets by length. They are interleaved, round after round. A
figure is the median over the rounds, and a ratio is the ratio of two medians. Pairs/s counts whole
steps (batch, forward, backward, optimiser) after a warm-up. TFLOP/s and MFU are counted as in the
trainer's log (ems.train.measures), for all trainers.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from measured import FailedRun, figures, require_peer, say
from pairs_made import DEMO_SIZES, ROOT, SHARED, SIZES, prepare, store_of
from torch.overrides import TorchFunctionMode
from train_steps import OURS, PEER_ENCODER, PEER_TRAINER, TRAINERS, Job

from ems.base.errors import EmsError
from ems.base.files import write_json
from ems.base.schema import merge
from ems.config.train import TrainSettings
from ems.model.devices import check_precision, choose_device
from ems.model.objectives.system import System
from ems.train.measures import peak_flops, step_flops

REPEATS = 3
PRECISIONS = get_args(TrainSettings.model_fields["precision"].annotation)
PIECES = {
    "small": (8_000, 32_000),
    "ems": (60_000,),
    "13x384": (32_000,),
    "12x512": (32_000,),
    "lightweight": (50_000,),
    "plus": (32_000,),
}
DEMO_PIECES = 1_200
NAMES = {
    "contrastive": "ours, contrastive only",
    "ems": "ours, full EMS loss",
    "ems-quarter": "ours, xtr.share 0.25",
    "plus": "ours, ems-plus",
    "plus-pieces": "ours, ems-plus without n-grams",
    "plain": "a plain padded loop",
    "st": "sentence-transformers",
    "st-both": "sentence-transformers, our loss",
    "st-loop": "sentence-transformers, plain loop",
    "contrastive-compiled": "ours, contrastive only, compiled",
    "ems-compiled": "ours, full EMS loss, compiled",
}
ALL = ("contrastive", "ems", "ems-quarter", "plain", "st")
ALL_PLUS = ("plus", "plus-pieces", "st", "st-both", "st-loop")
BATCH, BATCH_PLUS = 152, 2048
RATIOS = {  # of two trainers, with the smallest (0) or the largest vocabulary
    "contrastive_vs_st": ("contrastive", "st", 0),
    "ems_vs_st": ("ems", "st", 0),
    "ems32k_vs_st": ("ems", "st", -1),
    "quarter32k_vs_contrastive": ("ems-quarter", "contrastive", -1),
    "contrastive_vs_plain": ("contrastive", "plain", 0),
}
RATIOS |= {
    f"{ours.replace('-', '_')}_vs_{peer.replace('-', '_')}": (ours, peer, 0)
    for ours in ("plus", "plus-pieces")
    for peer in ("st", "st-both", "st-loop")
}
Results = dict[str, dict[str, dict[str, float]]]  # trainer -> vocabulary size -> its figures

# --- one run, in a process of its own


def inside(options: argparse.Namespace) -> None:
    """Run one of TRAINERS in this process; print its figures as JSON."""
    settings, store = store_of(options.folder / f"{options.pieces}")
    device = choose_device(options.device)
    torch.set_num_threads(options.threads)
    run = (options.batch, options.warm, options.steps, device, options.precision, options.compile)
    job = Job(settings, store, options.pieces, *run, options.folder / "scratch")
    say(json.dumps(timed(job, options.inside)))


def timed(job: Job, trainer: str) -> dict[str, float]:
    """Run one of TRAINERS; return its speed, and on a GPU its peak memory and MFU."""
    seconds = TRAINERS[trainer](job)
    needed, tokens = work(job, trainer)
    pairs, rate = job.steps * job.batch, needed / seconds
    figure = {"pairs_per_s": pairs / seconds, "tokens_per_s": tokens / seconds}
    figure |= {"ms_per_step": 1000 * seconds / job.steps, "tflops": rate / 1e12}
    if job.device.type == "cuda":
        figure["gpu_mb"] = torch.cuda.max_memory_allocated() / 1e6
        if peak := peak_flops(job.device, job.precision != "float32"):
            figure["mfu"] = rate / peak
    return figure


class Unstarted(TorchFunctionMode):
    """Skips start values, for which the meta device imports PyTorch's compiler.

    The import takes a second, and memory that would count as the trainer's.
    """

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        if function.__name__ in ("normal_", "uniform_"):  # of torch.nn.init, or of a tensor
            return arguments[0] if arguments else named["tensor"]
        return function(*arguments, **named)


def work(job: Job, trainer: str) -> tuple[int, int]:
    """Return the (FLOPs, tokens) of the measured steps, FLOPs as the trainer's log counts them."""
    default = "plus-pieces" if not job.settings.model.layers else "contrastive"
    overrides = OURS.get(trainer.removesuffix("-compiled"), OURS[default])
    if trainer.startswith("st"):
        overrides = merge(overrides, {"objectives": {"contrastive": {"width": 0}}})  # no MLP
    with torch.device("meta"), Unstarted():  # shapes only
        languages = len(job.store.languages)
        system = System(job.settings.overridden(overrides), languages, job.pieces)
    lengths = np.array([len(side) for pair in job.sentences() for side in pair])
    steps = lengths.reshape(-1, 2 * job.batch)[job.warm :]
    return sum(step_flops(system, step) for step in steps), int(steps.sum())


# --- measuring


def measure(name: str, pieces: int, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of one run in a fresh process, with its peak of RssAnon."""
    keys = ("device", "precision", "threads", "batch", "warm", "steps")
    command = [sys.executable, __file__, "--inside", name, "--folder", str(folder)]
    command += [f"--{key}={getattr(options, key)}" for key in keys] + [f"--pieces={pieces}"]
    command += ["--compile"] if options.compile else []
    results, anon_mb = figures(command, f"{name} with {pieces:,} pieces")
    return {"rss_anon_mb": anon_mb} | results


def run_all(folder: Path, options: argparse.Namespace) -> tuple[Results, list[str]]:
    """Return the medians over the rounds, and the trainers of which a run failed."""
    wanted = (DEMO_PIECES,) if options.demo else PIECES[options.size]
    true = prepare(folder, None if options.demo else options.shared, options.size, wanted)
    runs: dict[tuple[str, int], list[dict[str, float]]] = {}
    failed: list[str] = []
    for at in range(options.repeats):
        for size, pieces in true.items():
            for name in (name for name in options.trainers if name not in failed):
                try:
                    row = measure(name, size, folder, options)
                except FailedRun as error:
                    say(str(error))
                    failed.append(name)
                    continue
                runs.setdefault((name, pieces), []).append(row)
                say(f"round {at + 1}, {pieces:,} pieces, {NAMES[name]}: {row['pairs_per_s']:,.0f}")
    results: Results = {}
    for (name, pieces), rows in runs.items():
        if name not in failed:
            medians = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
            spread = [row["pairs_per_s"] for row in rows]
            medians |= {"slowest": min(spread), "fastest": max(spread)}
            results.setdefault(name, {})[str(pieces)] = medians
    return results, failed


def summary(results: Results) -> dict[str, float]:
    """Return the figures of the last line: RATIOS, and the memory of the full loss if it ran."""
    rates = {
        name: [row["pairs_per_s"] for row in sizes.values()] for name, sizes in results.items()
    }
    ratios = {
        key: rates[name][at] / rates[other][at]
        for key, (name, other, at) in RATIOS.items()
        if {name, other} <= rates.keys()
    }
    *_, largest = results.get("ems", next(iter(results.values()))).values()
    return ratios | {"peak_mb": largest.get("gpu_mb", largest["rss_anon_mb"])}


def show(results: Results, last: dict[str, float]) -> None:
    columns = f"{'pieces':>8}{'pairs/s':>10}{'slowest':>9}{'fastest':>9}{'ms/step':>9}"
    say(f"\n{'':34}{columns}{'RssAnon MB':>12}{'GPU MB':>9}{'TFLOP/s':>9}{'MFU %':>7}")
    for name, sizes in results.items():
        for pieces, row in sizes.items():
            speed = "".join(f"{row[key]:9,.0f}" for key in ("slowest", "fastest", "ms_per_step"))
            gpu = f"{row['gpu_mb']:9,.0f}" if "gpu_mb" in row else f"{'-':>9}"
            mfu = f"{100 * row['mfu']:7.1f}" if "mfu" in row else f"{'-':>7}"
            rate = f"{int(pieces):8,}{row['pairs_per_s']:10,.0f}{speed}{row['rss_anon_mb']:12,.0f}"
            say(f"{NAMES[name]:34}{rate}{gpu}{row['tflops']:9,.2f}{mfu}")
    *ratios, peak = last.items()
    say(" ".join(f"{name}={value:.2f}" for name, value in ratios) + f" {peak[0]}={peak[1]:.0f}")


def words(text: str) -> list[str]:
    return text.split(",")


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--demo", action="store_true", help="300 pairs each of the demo corpus")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/train_throughput.json")
    parser.add_argument(
        "--no-peer", dest="peer", action="store_false", help="leave out sentence-transformers"
    )
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--trainers", type=words, help=f"some of {','.join(TRAINERS)}")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--compile", action="store_true", help="torch.compile, for all of them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, help="pairs of a step (default: 152, of `plus` 2,048)")
    parser.add_argument("--warm", type=int, default=5, help="steps off the clock")
    parser.add_argument("--steps", type=int, default=30, help="steps on the clock")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--inside", choices=TRAINERS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--pieces", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    plus = options.size == "plus"
    options.trainers = options.trainers or (ALL_PLUS if plus else ALL)
    options.batch = options.batch or (BATCH_PLUS if plus else BATCH)
    if unknown := set(options.trainers) - set(TRAINERS):
        parser.error(f"--trainers: {', '.join(sorted(unknown))}; allowed: {', '.join(TRAINERS)}")
    if not options.peer:
        options.trainers = [name for name in options.trainers if not name.startswith("st")]
    if options.demo:
        options.batch, options.warm, options.steps, options.threads = 16, 1, 3, 1
    return options


def main() -> None:
    options = options_of()
    if options.inside:
        inside(options)
        return
    try:
        check_precision(options.precision, torch.device(options.device))
    except EmsError as error:
        sys.exit(str(error))
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    if {"st", "st-both"} & {*options.trainers}:
        require_peer(PEER_TRAINER, "bench")
    elif "st-loop" in options.trainers:
        require_peer(PEER_ENCODER, "bench")
    with tempfile.TemporaryDirectory() as folder:
        results, failed = run_all(Path(folder), options)
    if not results:
        sys.exit("nothing was measured")
    last = summary(results)
    facts = {key: getattr(options, key) for key in ("size", "device", "precision", "batch")}
    facts["model"] = (DEMO_SIZES if options.demo else SIZES)[options.size]
    write_json(options.out, {**facts, "torch": torch.__version__, "trainers": results, **last})
    show(results, last)
    if failed:
        sys.exit(f"not measured: {', '.join(NAMES[name] for name in failed)}")


if __name__ == "__main__":
    main()
