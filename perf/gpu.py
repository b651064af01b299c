"""`make gpu`: what to run in the first hour on a GPU, and the same path in small on a CPU.

    python perf/gpu.py [--device cpu] [--parts laws,throughput,training] [--sizes ems]

Three parts, each of them programs that are there anyway: the tests of devices (`laws`),
train_throughput.py (`throughput`), and `ems train` with `ems eval` (`training`: a short run
measures the steps per second, then as many as fit into ten minutes are trained). A part may be run
by itself, and a training that was stopped goes on at its last checkpoint. A part leaves its figures
and logs in results/gpu/DEVICE; the table and the last line are of the last run of each part.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import torch
import yaml
from gpu_report import FAILED, PASSED, STOPPED, Figures, last_line, markdown
from measured import say

from ems.config.yaml12 import load_yaml
from ems.errors import REQUEUE
from ems.files import write_json, write_text
from ems.progress import clock
from ems.scores import read_score_file

PARTS = ("laws", "throughput", "training")
ROOT = Path(__file__).resolve().parents[1]
PEER = ("sentence_transformers", "datasets", "accelerate")
RECIPE = ("small62", "gpu-ten-minutes")  # experiment and system
MFU = re.compile(r"MFU (\d+\.\d) %")


@dataclass(frozen=True)
class Scale:
    """What is run on a device.

    `batches`: size -> pairs of a step, of train_throughput.py with `flags`. RECIPE, with `changes`
    to its settings, is trained on the data of `experiment` for about `seconds`, by the rate of a
    run of `steps`.
    """

    batches: dict[str, int]
    trainers: tuple[str, ...]
    flags: tuple[str, ...]
    experiment: str
    changes: dict[str, dict[str, Any]]
    steps: int
    seconds: int
    benchmarks: tuple[str, ...]


SCALES = {
    "cuda": Scale(
        batches={"ems": 608, "13x384": 1024, "12x512": 1024},
        trainers=("ems", "ems-compiled", "contrastive", "st"),
        flags=("--precision=bfloat16", "--warm=20", "--steps=60"),
        experiment="small62",
        changes={},
        steps=200,
        seconds=600,
        benchmarks=("tatoeba", "flores200"),
    ),
    "cpu": Scale(
        batches={"ems": 16, "13x384": 16},
        trainers=("ems", "st"),
        flags=("--demo",),
        experiment="tiny",
        changes={
            "model": {"table": 32, "ngrams": 1000},
            "train": {"device": "cpu", "batch_pairs": 32, "checkpoint_every": 10},
        },
        steps=200,
        seconds=20,
        benchmarks=("tatoeba",),
    ),
}


class Run:
    """The parts of one call, on one device."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.scale = options, SCALES[options.device]
        self.folder = ROOT / "results/gpu" / options.device
        self.stopped = False

    def call(self, log: str, *words: str, cwd: Path = ROOT) -> bool:
        """Run a Python program, its output shown and kept in `log`; return whether it succeeded."""
        own = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(ROOT), *([own] if own else [])])
        environment = {**os.environ, "PYTHONPATH": path, "EMS_NO_SKIP": "1"}
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        with (
            open(self.folder / "logs" / f"{log}.log", "w", 1, encoding="utf-8") as file,  # by line
            subprocess.Popen(
                [sys.executable, *words],
                cwd=cwd,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            ) as child,
            self.stopping(child),
        ):
            for line in child.stdout:
                say(line.rstrip("\n"))
                file.write(line)
        return child.returncode == 0

    @contextmanager
    def stopping(self, child: subprocess.Popen[str]) -> Iterator[None]:
        """Hand SIGTERM and Ctrl-C on to a program and to what it started; it may save and end."""

        def stop(*_: Any) -> None:
            self.stopped = True
            with suppress(psutil.NoSuchProcess):
                family = psutil.Process(child.pid)
                for process in [*family.children(recursive=True), family]:
                    process.terminate()

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # --- parts: each returns whether it succeeded, and its figures

    def laws(self) -> tuple[bool, Figures]:
        """Run the tests that have devices, on this one."""
        files = [
            str(path.relative_to(ROOT))
            for path in sorted((ROOT / "tests").glob("test_*.py"))
            if has_devices(path)
        ]
        report = self.folder / "laws.xml"
        report.unlink(missing_ok=True)
        flags = ("-v", "--no-header", "-k", self.options.device, f"--junitxml={report}")
        fine = self.call("laws", "-m", "pytest", *flags, *files)
        if not report.exists():
            return False, {}
        counts = ElementTree.parse(report).getroot().find("testsuite").attrib
        names = ("tests", "failures", "errors", "skipped")
        return fine, {name: int(counts[name]) for name in names}

    def throughput(self) -> tuple[bool, Figures]:
        """Measure the sizes that were asked for; others keep what was measured before."""
        trainers = self.scale.trainers
        if missing := [name for name in PEER if find_spec(name) is None]:
            say(
                f"sentence-transformers is left out: no {' and '.join(missing)} here; "
                "pip install '.[bench]'"
            )
            trainers = tuple(name for name in trainers if name != "st")
        fine = True
        for size in self.options.sizes:
            out = self.measured(size)
            out.unlink(missing_ok=True)
            flags = [f"--size={size}", f"--batch={self.scale.batches[size]}", "--repeats=1"]
            flags += [f"--device={self.options.device}", f"--trainers={','.join(trainers)}"]
            flags += [f"--out={out}", f"--shared={self.options.shared}", *self.scale.flags]
            if not self.stopped:
                say(f"size {size}, {', '.join(trainers)}")
                fine &= self.call(f"throughput-{size}", "perf/train_throughput.py", *flags)
        return fine, {}

    def training(self) -> tuple[bool, Figures]:
        """Train for about `seconds` and score; go on with what was not finished."""
        if all(path.exists() for path in self.scores().values()):  # of an earlier call
            for place in ("rate", "trained"):
                shutil.rmtree(self.folder / place, ignore_errors=True)
        fine = self.shards() and self.trained() and self.scored()
        return fine, self.of_training() if fine else {}

    def shards(self) -> bool:
        """Make the experiment's evaluation sets and shards, unless the shards are there."""
        if self.index.exists():
            return True
        experiment = ("--config", f"experiment={self.scale.experiment}")
        targets = {"evalsets": "evalsets", "shards": str(self.index.relative_to(ROOT))}
        return all(
            self.call(log, "-m", "snakemake", *experiment, "--", target)
            for log, target in targets.items()
        )

    @property
    def index(self) -> Path:
        return ROOT / "results" / self.scale.experiment / "shards/shared/index.json"

    def trained(self) -> bool:
        """Train, after a run that measures how many steps fit into the time."""
        settings = self.folder / "trained/configs" / f"{self.scale.experiment}.yaml"
        if settings.exists():  # of a training that was stopped, or not scored
            steps = load_yaml(settings)["systems"][RECIPE[1]]["train"]["steps"]
        else:
            if not self.train("rate", self.scale.steps):
                return False
            steps = max(1, round(self.options.seconds * self.rate()))
            say(f"{steps:,} steps take about {clock(self.options.seconds)}")
        return (self.folder / "trained/model/model.json").exists() or self.train("trained", steps)

    def rate(self) -> float:
        """Return the steps per second of the short run, without its start and its end."""
        rows = [row for row in times(self.folder / "rate") if row["step"]]
        last = next(row for row in rows if row["step"] == rows[-1]["step"])  # not yet validated
        return (last["step"] - rows[0]["step"]) / (last["seconds"] - rows[0]["seconds"])

    def train(self, name: str, steps: int) -> bool:
        """Train the recipe for so many steps, in a folder of its own with its experiment."""
        place, experiment = self.folder / name, self.scale.experiment
        value = settings_of(experiment)
        system = settings_of(RECIPE[0])["systems"][RECIPE[1]]
        for part, changes in [*self.scale.changes.items(), ("train", {"steps": steps})]:
            system[part] |= changes
        value["systems"][RECIPE[1]] = system
        write_text(place / "configs" / f"{experiment}.yaml", yaml.safe_dump(value, sort_keys=False))
        shutil.copyfile(ROOT / "config.yaml", place / "config.yaml")
        vocabulary = ROOT / "results" / experiment / "vocab/shared/vocabulary.model"
        words = ("--experiment", experiment, "--system", RECIPE[1])
        words += ("--shards", str(self.index), "--vocabulary", str(vocabulary))
        words += ("--state", "state", "--times", "times.jsonl", "--out", "model")
        return self.call(name, "-m", "ems", "train", *words, cwd=place)

    def scored(self) -> bool:
        """Score the model on the benchmarks."""
        place, scale = self.folder / "trained", self.scale
        words = ("--experiment", scale.experiment, "--name", RECIPE[1], "--no-cache")
        words += ("--model", str(place / "model"), "--bench", ",".join(scale.benchmarks))
        return self.call("scored", "-m", "ems", "eval", *words, "--out", str(place / "scores"))

    def scores(self) -> dict[str, Path]:
        """Return the score file of each benchmark."""
        names = self.scale.benchmarks
        return {name: self.folder / "trained/scores" / f"{name}.json" for name in names}

    def of_training(self) -> Figures:
        """Return the figures of a training that is scored."""
        place = self.folder / "trained"
        description = read(place / "model/model.json")
        last = times(place)[-1]
        log = (self.folder / "logs/trained.log").read_text(encoding="utf-8")
        used = sorted(map(float, MFU.findall(log)))
        files = {name: read_score_file(path) for name, path in self.scores().items()}
        return {
            "system": description["name"],
            "identity": description["identity"],
            "steps": last["step"],
            "pairs": last["pairs"],
            "seconds": last["seconds"],
            "mfu": used[len(used) // 2] / 100 if used else None,
            "scores": {
                name: {"mean": file.means()[0][1], "of": len(file.labelled())}
                for name, file in files.items()
            },
        }

    # --- what parts leave

    def measured(self, size: str) -> Path:
        """Return where the figures of a size are."""
        return self.folder / f"throughput-{size}.json"

    def run(self, part: str) -> str:
        """Run a part and keep its figures; return its status, which is `stopped` until it ends."""
        started, path = time.monotonic(), self.folder / f"{part}.json"
        write_json(path, {"status": STOPPED, "minutes": None})
        fine, figures = getattr(self, part)()
        status = STOPPED if self.stopped else PASSED if fine else FAILED
        seconds = time.monotonic() - started
        write_json(path, {"status": status, "minutes": round(seconds / 60, 2), **figures})
        say(f"{part}: {status} after {clock(seconds)}")
        return status

    def found(self) -> dict[str, Figures]:
        """Return what each part left when it was run last; nothing for one that never was."""
        parts = {part: read(self.folder / f"{part}.json") for part in PARTS}
        sizes = {size: read(self.measured(size)) for size in self.scale.batches}
        parts["throughput"]["sizes"] = {size: own for size, own in sizes.items() if own}
        return parts


def has_devices(path: Path) -> bool:
    """Return whether a file has tests that run on each device."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(line.startswith("from devices_made import") for line in lines)


def settings_of(experiment: str) -> dict[str, Any]:
    """Return the settings of an experiment as its file has them."""
    return load_yaml(ROOT / "configs" / f"{experiment}.yaml")


def read(path: Path) -> Figures:
    """Return the content of a JSON file; nothing if it is not there."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def times(place: Path) -> list[Figures]:
    """Return the rows of the times of a training."""
    text = (place / "times.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=SCALES, default="cuda")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run (default: all)")
    parser.add_argument("--sizes", help="sizes that `throughput` measures (default: all)")
    parser.add_argument("--seconds", type=int, help="of the training (default: 600, on a CPU 20)")
    parser.add_argument(
        "--shared", type=Path, default=ROOT.parent / "shared/data", help="folder of the corpora"
    )
    parser.add_argument("--out", type=Path, help="table (default: results/gpu.md)")
    options = parser.parse_args()
    scale = SCALES[options.device]
    options.parts = listed(parser, "--parts", options.parts, PARTS)
    options.sizes = listed(parser, "--sizes", options.sizes, tuple(scale.batches))
    options.seconds = options.seconds or scale.seconds
    name = "gpu.md" if options.device == "cuda" else "gpu-cpu.md"
    options.out = options.out or ROOT / "results" / name
    return options


def listed(
    parser: argparse.ArgumentParser, flag: str, text: str | None, known: tuple[str, ...]
) -> list[str]:
    """Return the names in `text`, in the order of `known`; all of them for None."""
    names = text.split(",") if text else known
    if unknown := set(names) - set(known):
        parser.error(f"{flag}: {', '.join(sorted(unknown))}; allowed: {', '.join(known)}")
    return [name for name in known if name in names]


def main() -> int:
    options = options_of()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit(
            "PyTorch finds no GPU here, and nothing was run. With one, this runs the tests of "
            "devices, measures the speed of training, and trains for ten minutes; the same in "
            "small on a CPU: make gpu DEVICE=cpu"
        )
    run, statuses = Run(options), []
    for at, part in enumerate(options.parts, 1):
        if not run.stopped:
            say(f"--- {part} on {options.device}, part {at} of {len(options.parts)}")
            statuses.append(run.run(part))
    parts = run.found()
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    table = markdown(device, str(date.today()), parts)
    write_text(options.out, table)
    say(f"\n{table}\n{options.out} has this table\n{last_line(device, parts)}")
    return REQUEUE if run.stopped else int(FAILED in statuses)


if __name__ == "__main__":
    sys.exit(main())
