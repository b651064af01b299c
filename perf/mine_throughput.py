"""Measure how fast pairs of similar sentences are mined, against faiss-cpu's exact index.

    python perf/mine_throughput.py [--demo] [--no-peer] [--rounds 100] [--threads 2] [--out FILE]

A round follows Wang et al. (CCL 2019): 10,000 x 10,000 sentences at 1,024 dimensions are drawn from
a larger file of embeddings, and the 1,000 best pairs by CSLS are kept. FAISS searches the
neighbours in both directions (IndexFlatIP). Their mean similarities give the same scores, and here
the same pairs. Each run is a separate process, whose memory is the peak of RssAnon, without the
mapped file.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from eval_steps import planted, timed
from measured import figures, require_peer, say
from pairs_made import ROOT

from ems.base.files import write_json
from ems.bench.margin import best_pairs
from ems.config.objectives import MiningSettings
from ems.train.mine_documents import Rounds


@dataclass(frozen=True)
class Scale:
    """The amounts: sentences per language and per round, pairs kept, and the width of vectors."""

    sentences: int
    sample: int
    keep: int
    width: int
    rounds: int


FULL = Scale(20_000, 10_000, 1_000, 1_024, 100)
NEIGHBOURS = MiningSettings().neighbours
DEMO = Scale(600, 300, 40, 16, 3)
Pairs = set[tuple[int, int]]
Search = Callable[[np.ndarray, np.ndarray, int], Pairs]


def ours(first: np.ndarray, second: np.ndarray, keep: int) -> Pairs:
    """Return the best pairs by our search."""
    pairs = best_pairs(first, second, keep, NEIGHBOURS, "cpu")
    return set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))


def by_faiss(first: np.ndarray, second: np.ndarray, keep: int) -> Pairs:
    """Return the best pairs among the neighbours that FAISS finds."""
    near, index = _searched(second, first)
    back, _ = _searched(first, second)
    scores = 2 * near - near.mean(1)[:, None] - back.mean(1)[index]  # [N, k]
    best = np.argpartition(-scores, keep, axis=None)[:keep]
    rows = best // scores.shape[1]
    return set(zip(rows.tolist(), index.ravel()[best].tolist(), strict=True))


def _searched(candidates: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import faiss

    index = faiss.IndexFlatIP(candidates.shape[1])
    index.add(candidates)
    return index.search(queries, NEIGHBOURS)


RUNS: dict[str, Search] = {"ours": ours, "faiss": by_faiss}


def run(name: str, folder: Path, scale: Scale, threads: int) -> dict[str, float]:
    """Mine all rounds; return the seconds, and the percentage of planted pairs among the mined."""
    if name == "faiss":
        import faiss

        faiss.omp_set_num_threads(threads)
    sides = [np.load(folder / f"{at}.npy", mmap_mode="r") for at in (0, 1)]
    settings = MiningSettings(sample=scale.sample, keep=scale.keep, pairs=scale.rounds * scale.keep)
    rounds = Rounds(settings, (scale.sentences,) * 2, 1)
    right = found = 0

    def mine() -> None:
        nonlocal right, found
        for at in range(rounds.count):
            drawn = rounds.drawn(at)
            taken = [
                np.ascontiguousarray(side[own]) for side, own in zip(sides, drawn, strict=True)
            ]
            pairs = RUNS[name](*taken, scale.keep)
            found += len(pairs)
            right += sum(drawn[0][i] == scale.sentences - 1 - drawn[1][j] for i, j in pairs)

    seconds, _ = timed(mine)
    return {"seconds": seconds, "rounds": rounds.count, "right": 100 * float(right) / found}


def write_planted(folder: Path, scale: Scale) -> None:
    """Write both sides, with near vectors for each planted pair."""
    for at, side in enumerate(planted(scale.sentences, scale.width)):
        np.save(folder / f"{at}.npy", side)


def measure(name: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Return the figures of one run in a fresh process, with its peak of RssAnon."""
    command = ["env", f"OMP_NUM_THREADS={options.threads}"]  # of numpy's products
    command += [sys.executable, __file__, "--inside", name, "--folder", str(folder)]
    command += [f"--threads={options.threads}", f"--rounds={options.scale.rounds}"]
    results, anon_mb = figures(command + ["--demo"] * options.demo, name)
    row = results | {"rss_anon_mb": anon_mb}
    time, memory = f"{row['seconds']:10,.1f} s", f"{row['rss_anon_mb']:10,.0f} MB"
    say(f"{name:8}{time}{memory}{row['right']:8.1f} % right")
    return row


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--demo", action="store_true", help="a little, anywhere")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/mine_throughput.json")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave out FAISS")
    parser.add_argument("--rounds", type=int, help="(default: 100)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--inside", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    scale = DEMO if options.demo else FULL
    options.scale = Scale(**{**vars(scale), "rounds": options.rounds or scale.rounds})
    return options


def main() -> None:
    options = options_of()
    if options.inside:
        say(json.dumps(run(options.inside, options.folder, options.scale, options.threads)))
        return
    if options.peer:
        require_peer(["faiss"], "faiss", "faiss-cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_planted(folder, options.scale)
        names = ["ours", *(["faiss"] if options.peer else [])]
        rows = {
            who: [measure(who, folder, options) for _ in range(options.repeats)] for who in names
        }
    best = {who: min(own, key=lambda row: row["seconds"]) for who, own in rows.items()}
    last = {"mine_s": best["ours"]["seconds"], "mine_peak_mb": best["ours"]["rss_anon_mb"]}
    if options.peer:
        last = {"mine_vs_faiss": best["faiss"]["seconds"] / last["mine_s"]} | last
    write_json(options.out, {"numpy": np.__version__, "measured": best, **last})
    say(" ".join(f"{name}={value:.2f}" for name, value in last.items()))


if __name__ == "__main__":
    main()
