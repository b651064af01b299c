"""Measure how fast the text path is, from zip to shard, against bare Perl and a plain loop.

    python perf/text_throughput.py [--demo] [--chinese rjieba] [--moses moses-fast]
        [--shared FOLDER] [--out FILE]

Everything runs on one core. A figure is CPU seconds of a process and its tools, the median of 3
runs at 1x. Memory is the peak of RssAnon, summed over the processes of a stage, at 1x, 4x and 16x:
the same pairs with a number appended, so that none is a duplicate.

- Bare Perl is the script of the package mosestokenizer, streamed over the same lines.
- The plain loop uses its Python object, jieba, fugashi and SentencePiece, a sentence at a time and
  without decontamination. It omits pyknp for Japanese, which needs Juman++.
- Dictionaries load before the clock starts, here and in the plain loop, because one load serves a
  job of a million pairs.
- The data are 60,000 pairs of tico-19, NTREX and Tatoeba, as many of each language, decontaminated
  against FLORES-200. Chinese and Japanese are a seventh each, about their share in the EMS paper.
"""

import argparse
import json
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measured import figures, require_segmenters, say
from text_steps import MEASURED, ROOT, SCALES, Work, write_data

from ems.base.files import write_json
from ems.corpora.moses import read_pairs

STAGES = ("prepare", "sample", "encode")
OTHERS = ("perl", "plain")
REPEATS = 3
PAPER_LINES = 2 * 143_000_000


# --- one run, in a process of its own


def inside(name: str, folder: Path, scale: int) -> None:
    """Run one of MEASURED in this process; print its CPU and wall seconds as JSON."""
    import ems.shards.writer
    import ems.text.prepare  # noqa: F401
    from ems.text.segmenters.base import segmenter

    work = Work(folder)
    if name in ("prepare", "plain"):  # dictionaries
        chinese = "jieba" if name == "plain" else work.experiment.segmenters["zh"]
        segmenter(chinese, "zh")(["预热"])
        segmenter("fugashi", "ja")(["準備"])
    before, started = cpu_seconds(), time.monotonic()
    MEASURED[name](work, scale)
    print(json.dumps({"cpu": cpu_seconds() - before, "wall": time.monotonic() - started}))


def cpu_seconds() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


# --- measuring


def measure(name: str, work: Work, scale: int) -> dict[str, float]:
    """Return {"cpu", "wall", "anon_mb"} of one run in a fresh process."""
    command = [sys.executable, __file__, "--inside", name, "--folder", str(work.folder)]
    results, anon_mb = figures([*command, "--scale", str(scale)], f"{name} at {scale}x")
    return {**results, "anon_mb": anon_mb}


def run_all(work: Work, repeats: int) -> dict[str, dict[int, dict[str, float]]]:
    """Run everything; return name -> scale -> medians of its measurements."""
    from ems.text.subwords import train_vocabulary

    results: dict[str, dict[int, dict[str, float]]] = {}
    for scale in SCALES:
        for name in STAGES if scale > 1 else (*STAGES, *OTHERS):
            if name == "encode" and scale == 1:
                shutil.copy(work.folder / "1" / "sample.txt", work.sample)
                train_vocabulary(work.experiment, work.sample, work.vocabulary)
            if name == "perl":
                write_plain_text(work)
            runs = [measure(name, work, scale) for _ in range(repeats if scale == 1 else 1)]
            medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            results.setdefault(name, {})[scale] = medians
            say(f"{name} at {scale}x: {medians['cpu']:.1f} s CPU, {medians['anon_mb']:.0f} MB")
        if scale > 1:
            shutil.rmtree(work.folder / f"{scale}")
    return results


def write_plain_text(work: Work) -> None:
    for pair in work.pairs:
        sides = zip(*read_pairs(work.archive(1, pair), "Bench", pair), strict=True)
        for code, lines in zip(pair.split("-"), sides, strict=True):
            path = work.folder / "1" / "perl" / f"{pair}.{code}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def size_of(work: Work) -> tuple[int, int]:
    """Return (lines, bytes of text) at 1x, of both sides."""
    lines = size = 0
    for pair in work.pairs:
        for sides in read_pairs(work.archive(1, pair), "Bench", pair):
            lines += 2
            size += sum(len(side.encode()) + 1 for side in sides)
    return lines, size


def summary(
    results: dict[str, dict[int, dict[str, float]]], lines: int, size: int
) -> dict[str, Any]:
    """Return the rows of the table, and the figures of the last line."""
    path = {
        scale: {
            "cpu": sum(results[stage][scale]["cpu"] for stage in STAGES),
            "wall": sum(results[stage][scale]["wall"] for stage in STAGES),
            "anon_mb": max(results[stage][scale]["anon_mb"] for stage in STAGES),
        }
        for scale in SCALES
    }
    rows = {**{stage: results[stage] for stage in STAGES}, "zip to shard": path}
    rows |= {"bare Perl": results["perl"], "the plain way": results["plain"]}
    table = {
        name: {
            "lines_per_s_core": lines / scales[1]["cpu"],
            "mb_per_s_core": size / 1e6 / scales[1]["cpu"],
            "cpu_s": scales[1]["cpu"],
            "wall_s": scales[1]["wall"],
            "anon_mb": {scale: value["anon_mb"] for scale, value in scales.items()},
        }
        for name, scales in rows.items()
    }
    rate = table["zip to shard"]["lines_per_s_core"]
    last = {
        "vs_perl": rate / table["bare Perl"]["lines_per_s_core"],
        "vs_plain": rate / table["the plain way"]["lines_per_s_core"],
        "lines_per_s_core": rate,
        "anon_growth_16x": path[SCALES[-1]]["anon_mb"] / path[1]["anon_mb"],
    }
    hours = PAPER_LINES / rate / 3600
    return {"lines": lines, "bytes": size, "table": table, "core_hours_143m": hours, **last}


def show(results: dict[str, Any]) -> None:
    say(f"\n{results['lines']:,} lines, {results['bytes'] / 1e6:.1f} MB, 1x; CPU of one core")
    say(f"{'':14}{'lines/s':>10}{'MB/s':>7}{'CPU s':>8}{'wall s':>8}   RssAnon MB at 1x, 4x, 16x")
    for name, row in results["table"].items():
        memory = "  ".join(f"{value:6.0f}" for value in row["anon_mb"].values())
        say(
            f"{name:14}{row['lines_per_s_core']:10,.0f}{row['mb_per_s_core']:7.2f}"
            f"{row['cpu_s']:8.2f}{row['wall_s']:8.2f}   {memory}"
        )
    say(f"143M pairs (286M lines) from zip to shard: {results['core_hours_143m']:.1f} core-hours")
    say(
        f"vs_perl={results['vs_perl']:.2f} vs_plain={results['vs_plain']:.2f} "
        f"lines_per_s_core={results['lines_per_s_core']:.0f} "
        f"anon_growth_16x={results['anon_growth_16x']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--demo", action="store_true", help="300 pairs each of the demo corpus")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/text_throughput.json")
    parser.add_argument("--chinese", choices=["jieba", "rjieba"], default="jieba", help="ours")
    parser.add_argument("--moses", choices=["moses", "moses-fast"], default="moses", help="ours")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--inside", choices=MEASURED, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--scale", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.inside, options.folder, options.scale)
        return
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    require_segmenters(
        ("moses", options.moses, options.chinese, "jieba", "fugashi")
    )  # ours and the others'
    with tempfile.TemporaryDirectory() as folder:
        shared = None if options.demo else options.shared
        work = write_data(Path(folder), shared, options.chinese, options.moses)
        results = summary(run_all(work, options.repeats), *size_of(work))
    write_json(options.out, results)
    show(results)


if __name__ == "__main__":
    main()
