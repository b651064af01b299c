"""Measure what each stage costs against the number of pairs, and extrapolate it to a billion.

    python perf/scale.py [--demo] [--pairs 100000 1000000 10000000] [--folder FOLDER] [--out FILE]

For each number of pairs a mirror of OPUS is written (scale_mirror.py: NLLB v1 and CCMatrix v1, 61
languages with English), and Snakemake runs the product's own stages on it, from the fetch to the
first steps of a training, then `ems verify`. `--folder` needs 1.6 GB for a million pairs; what a
size has written is deleted before the next one.

- `--duplicates across` also removes the pairs that both corpora have.
- CPU and wall seconds are those of the jobs' own cost files, summed over the jobs of a stage, each
  with the start of Python. Where a job has no such file, the last sample of its process counts.
- Memory is anonymous: the most that one job of the stage had in a sample, its tools included, or
  what the largest job had. Mapped pages of shards are not in it.
- Files are the most that one process of the stage had open. Bytes are those of the stage's outputs.
- A figure at a billion pairs is on the line that fits the sizes best by relative errors
  (scale_lines.py). Its range is that of the lines through all sizes but one. `missed` says by how
  much the lines through the others miss the run with the largest files.
- Files as large as those of a larger size, without its hundred others: 1,458,000 pairs of Spanish
  alone (`--languages es`) are those that it has among 10 million.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from measured import anon, say
from scale_lines import BILLION, SAMPLE, Line, extrapolate
from scale_mirror import CCMATRIX, NLLB, VERSION, pair_counts, write_mirror

from ems.base.files import write_json
from ems.config.languages import load_languages

ROOT = Path(__file__).resolve().parents[1]
PAIRS = [100_000, 300_000, 1_000_000, 10_000_000]
SETTINGS = """
description: NLLB and CCMatrix of a made-up mirror, to see what each stage costs
seed: 1
splits: {}
validation: null
decontaminate: {key: folded, against: [tatoeba]}
model: {layers: 1, width: 32, heads: 2, feed_forward: 64, max_tokens: 120}
objectives: {xtr: {weight: 0}, contrastive: {weight: 1, width: 32}}
train: {steps: 20, batch_pairs: 608, sampling_alpha: 1, threads: 1, device: cpu}
systems: {ems: {}}
benchmarks: [tatoeba]
tables: {}
"""
SEGMENTERS = {"default": "moses", "zh": "jieba", "ja": "fugashi"}  # of ems62, but Juman++
PLACES = {  # where the outputs of a stage lie
    "fetch": "data/opus",
    "clean": "results/scale/text/clean",
    "segment": "results/scale/text/segmented",
    "sample": "results/scale/vocab/shared/sample.*",
    "vocabulary": "results/scale/vocab/shared/*.model",
    "shards": "results/scale/shards/shared/[NC]*",
    "index": "results/scale/shards/shared/index.json",
    "report": "results/scale/reports",
    "evalkeys": "results/scale/text/evalkeys.tsv",
}
EVERY = 0.05  # seconds between two looks at the processes: the shortest stage takes 0.15


@dataclass
class Cost:
    """What a stage costs: sums over its jobs, and of memory and files the most of one."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    anon_mb: float = 0.0
    disk_mb: float = 0.0
    files: int = 0
    jobs: int = 0


# --- one size


def run_size(
    folder: Path, pairs: int, languages: list[str], pieces: int, duplicates: str
) -> dict[str, Any]:
    """Write the mirror of a number of pairs and run the stages on it; return their costs."""
    started = time.monotonic()
    counts = write_mirror(folder / "mirror", pairs, languages)
    say(f"{sum(counts.values()):,} pairs, mirror written in {time.monotonic() - started:.0f} s")
    sample = min(SAMPLE, max(20_000, pairs // 10))
    write_project(
        folder,
        languages,
        {"size": pieces, "sample_lines": sample, "temperature": 1},
        duplicates,
    )
    watch = Watch()
    targets = ["results/scale/models/ems/model.json", "results/scale/reports/decontamination.json"]
    command = ["snakemake", "--cores", "2", "--quiet", "all", "--config", "experiment=scale", "--"]
    run(watch, folder, [*command, *targets])
    index, costs_file = "results/scale/shards/shared/index.json", "results/scale/costs/verify.json"
    run(watch, folder, ["ems", "verify", "--index", index, "--costs", costs_file])
    costs = watch.costs
    for stage, cost in costs_of_jobs(folder).items():
        costs[stage].cpu_s, costs[stage].wall_s = cost.cpu_s, cost.wall_s
        costs[stage].jobs = cost.jobs
    for stage, place in PLACES.items():
        costs[stage].disk_mb = sum(map(size_of, folder.glob(place))) / 1e6
    report = json.loads((folder / "results/scale/reports/decontamination.json").read_text())
    return {
        "pairs": sum(counts.values()),
        "largest": max(counts.values()),
        "files": len(counts),
        "kept": sum(entry["kept"] for entry in report["corpora"]),
        "removed": removed(report["corpora"]),
        "sample_lines": sample,
        "shards": len(list(folder.glob("results/scale/shards/shared/*/*/*/0*"))),
        "stages": {stage: asdict(cost) for stage, cost in sorted(costs.items())},
    }


def removed(entries: list[dict[str, Any]]) -> dict[str, int]:
    reasons: dict[str, int] = defaultdict(int)
    for entry in entries:
        for reason, count in entry["removed"].items():
            reasons[reason] += count
    return {reason: count for reason, count in reasons.items() if count}


def write_project(
    folder: Path, languages: list[str], vocabulary: dict[str, int], duplicates: str
) -> None:
    """Write a folder in which Snakemake runs the workflow of this checkout on the mirror."""
    for name in ("Snakefile", "rules", "report"):
        (folder / name).symlink_to(ROOT / name)
    mirror = folder / "mirror"
    sizes = [
        {"name": name, "version": VERSION, "languages": own_languages(mirror, name, languages)}
        for name in (NLLB, CCMATRIX)
    ]
    settings = yaml.safe_load(SETTINGS) | {
        "languages": ["en", *languages],
        "sources": {"opus": str(mirror / "opus")},
        "evalsets": {"tatoeba": {"version": VERSION, "path": str(mirror / "tatoeba")}},
        "corpora": [{**size, "source": str(mirror / "opus")} for size in sizes],
        "segmenters": SEGMENTERS,
        "clean": {"duplicates": duplicates},
        "vocabulary": vocabulary,
    }
    (folder / "configs").mkdir()
    write_yaml(folder / "configs" / "scale.yaml", settings)
    write_yaml(
        folder / "config.yaml", {"experiment": "scale", "data": "data", "sources": {}, "gpus": 0}
    )


def write_yaml(path: Path, value: Any) -> None:
    path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")


def own_languages(mirror: Path, corpus: str, languages: list[str]) -> list[str]:
    names = {path.name for path in (mirror / "opus" / corpus / VERSION / "moses").iterdir()}
    pairs = {code: "-".join(sorted(("en", code))) for code in languages}
    return [code for code, pair in pairs.items() if f"{pair}.txt.zip" in names]


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def costs_of_jobs(folder: Path) -> dict[str, Cost]:
    """Return the costs that the jobs wrote themselves, by stage."""
    costs: dict[str, Cost] = defaultdict(Cost)
    for path in folder.glob("results/scale/costs/**/*.json"):
        job = json.loads(path.read_text())
        cost = costs[job["stage"]]
        cost.cpu_s += job["cpu_seconds"]
        cost.wall_s += job["seconds"]
        cost.jobs += 1
    return costs


# --- looking at processes


def run(watch: "Watch", folder: Path, command: list[str]) -> None:
    """Run a command in a project and watch it. Ends the program if it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    log = folder / "run.log"
    with open(log, "ab") as writer:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=writer, stderr=subprocess.STDOUT
        )
        watch.follow(process)
    if process.returncode:
        sys.exit(f"{' '.join(command[:2])} failed:\n{log.read_text()[-3000:]}")


class Watch:
    """Looks at a process and its descendants until it ends, and keeps the most of each stage."""

    def __init__(self) -> None:
        self.costs: dict[str, Cost] = defaultdict(Cost)
        self.seen: dict[int, tuple[str, float, float]] = {}  # of jobs: stage, CPU, seconds

    def follow(self, process: subprocess.Popen[bytes]) -> None:
        """Look at the processes until the first one has ended."""
        ended = threading.Event()
        sampler = threading.Thread(target=self._sample, args=(process.pid, ended), daemon=True)
        sampler.start()
        process.wait()
        ended.set()
        sampler.join()
        for stage, cpu, seconds in self.seen.values():
            cost = self.costs[stage]
            cost.cpu_s, cost.wall_s, cost.jobs = (
                cost.cpu_s + cpu,
                cost.wall_s + seconds,
                cost.jobs + 1,
            )
        self.seen.clear()

    def _sample(self, pid: int, ended: threading.Event) -> None:
        main = psutil.Process(pid)
        while not ended.wait(EVERY):
            try:
                family = [main, *main.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            for process in family:
                with suppress(psutil.NoSuchProcess, FileNotFoundError):  # it has just ended
                    self._look(process)

    def _look(self, process: psutil.Process) -> None:
        stage = stage_of(process.cmdline())
        if not stage:
            return
        # the jobs of Snakemake are stages of their own
        tools = [] if stage == "snakemake" else process.children(recursive=True)
        own = [process, *tools]
        times = [one.cpu_times() for one in own]
        cost = self.costs[stage]
        cost.anon_mb = max(cost.anon_mb, sum(anon(one.pid) for one in own) / 1e6)
        cost.files = max(cost.files, *(one.num_fds() for one in own))
        before = self.seen.get(process.pid, (stage, 0.0, 0.0))
        cpu = sum(each.user + each.system for each in times)
        if stage != "snakemake":
            cpu += sum(each.children_user + each.children_system for each in times)
        seconds = time.time() - process.create_time()
        self.seen[process.pid] = stage, max(before[1], cpu), seconds


def stage_of(command: list[str]) -> str:
    """Return the stage of `python .../ems STAGE ...`; Snakemake is one too; "" for the others."""
    names = [Path(word).name for word in command[:2]]
    if "snakemake" in names:
        return "snakemake"
    return command[2] if len(command) > 2 and names[1] == "ems" else ""


# --- the report


def show(runs: list[dict[str, Any]], lines: dict[str, dict[str, Line]]) -> None:
    for one in runs:
        say(f"\n{one['pairs']:,} pairs, {one['kept']:,} kept, {one['shards']} shards")
        names = ("CPU s", "wall s", "anon MB", "disk MB")
        say(f"{'':12}{'jobs':>6}{''.join(f'{name:>10}' for name in names)}{'files':>7}")
        for stage, cost in one["stages"].items():
            say(
                f"{stage:12}{cost['jobs']:6}{cost['cpu_s']:10.1f}{cost['wall_s']:10.1f}"
                f"{cost['anon_mb']:10.0f}{cost['disk_mb']:10.1f}{cost['files']:7}"
            )
    say("\nat a billion pairs (lines without one size; by how much the largest is missed)")
    for stage, measures in lines.items():
        for measure, line in measures.items():
            missed = "" if line.missed is None else f"   {100 * line.missed:+.0f} %"
            say(
                f"{stage:12}{measure:8}{line.billion:14,.0f}  ({line.low:,.0f} to {line.high:,.0f})"
                f"{missed}"
            )
    hours = sum(each["cpu_s"].billion for each in lines.values() if "cpu_s" in each) / 3600
    disk = sum(each["disk_mb"].billion for each in lines.values() if "disk_mb" in each) / 1000
    memory = max(each["anon_mb"].billion for each in lines.values() if "anon_mb" in each)
    say(
        f"pairs={runs[-1]['pairs']} cpu_hours_1b={hours:.1f} disk_gb_1b={disk:.0f} "
        f"anon_mb_1b={memory:.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, nargs="*", default=PAIRS)
    parser.add_argument("--languages", nargs="*", help="beside English (default: all 61)")
    parser.add_argument("--demo", action="store_true", help="a few thousand pairs, two languages")
    parser.add_argument("--duplicates", choices=["keep", "drop", "across"], default="drop")
    parser.add_argument("--folder", type=Path, help="where the mirror and results lie meanwhile")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/scale.json")
    parser.add_argument("--figure", type=Path, help="also draw the lines: FILE.svg and FILE.png")
    parser.add_argument("--from", dest="read", type=Path, help="an earlier --out, to add to")
    options = parser.parse_args()
    everyone = [code for code in load_languages() if code != "en"]
    languages, sizes, pieces = options.languages or everyone, options.pairs, 60_000
    if options.demo:
        languages, sizes, pieces = ["de", "yo"], [1_000, 2_000, 4_000], 1_000
    runs = json.loads(options.read.read_text())["runs"] if options.read else []
    for pairs in sizes:
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="scale-") as folder:
            runs.append(run_size(Path(folder), pairs, languages, pieces, options.duplicates))
        write_json(options.out, {"runs": runs})
    runs.sort(key=lambda one: one["pairs"])
    lines = extrapolate(runs, pair_counts(BILLION, everyone))
    fits = {stage: {name: asdict(x) for name, x in each.items()} for stage, each in lines.items()}
    write_json(options.out, {"runs": runs, "billion": fits})
    if options.figure:
        from scale_figure import plot

        plot(runs, lines, options.figure)
    show(runs, lines)


if __name__ == "__main__":
    main()
