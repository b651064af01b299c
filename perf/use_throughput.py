"""Measure a trained model in use: text to vectors, scores of pairs, mining of two large texts.

    python perf/use_throughput.py --model FOLDER --pairs FILE.tsv [--exported FOLDER] [--no-peer]
        [--demo] [--repeats 3] [--mine-lines 1000000] [--mine-seconds 600] [--threads 2]
    python perf/use_throughput.py --static --model FOLDER ...  (without layers: use_static.py)

Ours goes from text to vectors by `Encoder`, in float32, bfloat16 and int8. The peers are
sentence-transformers and onnxruntime on `--exported`, the same model as written by `ems export
--onnx --int8` (default: it is exported first). The time of loading is measured by `python -c`. `ems
score` runs like a user's call, including its start. Mining is `ems mine` without the encoding: two
texts of planted vectors at d = 128, and its peak of RssAnon. Lines that are not compared within
`--mine-seconds` get the neighbours of others, so memory is as for all lines. Each measurement is
a separate process (`use_steps.py`).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
import use_static
from measured import figures, require_peer, say
from pairs_made import ROOT
from use_steps import PEERS, PRECISIONS, RUNS, Figures, Options, write_planted

from ems.base.files import visible_files, write_json

LOADS = {
    "ours": ("model", "from ems import Encoder; Encoder({!r}, 'cpu')"),
    "st": (
        "exported",
        "from sentence_transformers import SentenceTransformer as S; "
        "S({!r}, device='cpu', trust_remote_code=True)",
    ),
}


@dataclass(frozen=True)
class Scale:
    """The amounts: lines to encode, pairs to score, lines of each side to mine."""

    lines: int
    pairs: int
    mined: int


FULL = Scale(20_000, 50_000, 1_000_000)
DEMO = Scale(300, 300, 500)


# --- models


def export(model: Path, out: Path, *flags: str) -> Path:
    """Export a model by the command."""
    command = [sys.executable, "-m", "ems", "export", "--model", str(model), "--out", str(out)]
    done = subprocess.run([*command, *flags], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"export of {model} failed: {done.stderr}")
    return out


# --- measurements


def measure(name: str, options: Options) -> Figures:
    """Return the figures of one run in a fresh process, with its peak of RssAnon."""
    words = [sys.executable, str(Path(__file__)), "--inside", name]
    kept = ("model", "lines", "exported", "folder", "pairs", "threads", "repeats")
    places = {key: vars(options)[key] for key in (*kept, "mine_seconds") if vars(options)[key]}
    words += [f"--{key.replace('_', '-')}={value}" for key, value in places.items()]
    results, anon_mb = figures(words + ["--demo"] * options.demo, name)
    say(f"{name:20}{json.dumps(results)} {anon_mb:,.0f} MB")
    return results | {"rss_anon_mb": anon_mb}


def load_seconds(name: str, options: Options) -> float:
    """Return the median seconds that a process takes to import a library and load its model."""
    place, code = LOADS[name]
    taken = []
    for _ in range(options.repeats):
        started = time.monotonic()
        command = [sys.executable, "-c", code.format(str(vars(options)[place]))]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        taken.append(time.monotonic() - started)
    return median(taken)


def scored(options: Options) -> float:
    """Measure the rows per second of `ems score` as a filter."""
    rows = options.pairs.read_text("utf-8").splitlines()[: options.scale.pairs]
    content = "".join(f"{row}\n" for row in rows)
    command = [sys.executable, "-m", "ems", "score", "--model", str(options.model)]
    started = time.monotonic()
    subprocess.run(command, input=content, text=True, stdout=-3, stderr=-3, check=True)
    return len(rows) / (time.monotonic() - started)


def compared(rows: dict[str, Figures], options: Options) -> Figures:
    """Return the figures of the last line."""
    speed = {name: row["per_s"] for name, row in rows.items() if "per_s" in row}
    own = speed["ours-float32"]
    last = {"load_s": load_seconds("ours", options), "encode_per_s": own}
    last |= {f"{name}_vs_float": speed[f"ours-{name}"] / own for name in PRECISIONS[1:]}
    if options.peer:
        size = sum(path.stat().st_size for path in visible_files(options.exported))
        last |= {"folder_mb": size / 1e6, "load_st_s": load_seconds("st", options)}
        last |= {"encode_vs_st": own / speed["st"]}
        last |= {"encode_vs_onnxruntime": own / speed["onnxruntime-float32"]}
        last |= {"int8_vs_onnxruntime": speed["ours-int8"] / speed["onnxruntime-int8"]}
    mined, million = rows["mine"], rows["mine"]["lines"] == FULL.mined
    last |= {"score_rows_per_s": scored(options), "mine_s": mined["seconds"]}
    last |= {"mine_lines": mined["lines"], "mine_compared_pct": mined["compared"]}
    return last | {"mine_1m_peak_mb" if million else "mine_peak_mb": mined["rss_anon_mb"]}


def options_of() -> Options:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--demo", action="store_true", help="a little, anywhere")
    parser.add_argument("--model", type=Path, required=True, help="a model without segmenters")
    parser.add_argument("--exported", type=Path, help="the same as `ems export` wrote it")
    parser.add_argument("--pairs", type=Path, help="TSV of pairs")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/use_throughput.json")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="without the peers")
    parser.add_argument("--mine-lines", type=int, help="(default: 1,000,000)")
    parser.add_argument("--mine-seconds", type=float, default=600, help="of comparing, about")
    parser.add_argument("--repeats", type=int, default=3, help="of which the median is taken")
    parser.add_argument("--threads", type=int, default=2)
    for name in ("lines", "folder"):
        parser.add_argument(f"--{name}", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--inside", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    scale = DEMO if options.demo else FULL
    options.scale = Scale(scale.lines, scale.pairs, options.mine_lines or scale.mined)
    return options


def main() -> None:
    if "--static" in sys.argv:
        return use_static.main([word for word in sys.argv[1:] if word != "--static"])
    options = options_of()
    if options.inside:
        torch.set_num_threads(options.threads)
        say(json.dumps(RUNS[options.inside](options)))
        return
    if options.peer:
        require_peer(
            ["onnxruntime", "onnx", "sentence_transformers"], "export", "sentence-transformers"
        )
    with tempfile.TemporaryDirectory() as name:
        options.folder, options.lines = Path(name), Path(name) / "lines.txt"
        options.lines.write_text(options.pairs.read_text("utf-8").replace("\t", "\n"), "utf-8")
        if options.peer:
            flags = ("--onnx", "--int8")
            options.exported = options.exported or export(
                options.model, Path(name) / "exported", *flags
            )
        write_planted(options.folder, options.scale.mined)
        names = [name for name in RUNS if options.peer or name not in PEERS]
        rows = {name: measure(name, options) for name in names}
        last = compared(rows, options)
    write_json(options.out, {"torch": torch.__version__, "measured": rows, **last})
    say(" ".join(f"{name}={value:.2f}" for name, value in last.items()))


if __name__ == "__main__":
    main()
