"""Check and measure EMS on a GPU in a few minutes: from a bare checkout, without network or setup.

    python perf/gpu.py [--wheels FOLDER] [--minutes 8] [--device cpu] [--out FOLDER]
    python perf/gpu.py --collect FOLDER --python 3.12    # before, on a machine with a network
    python perf/gpu.py --show FOLDER

It runs four parts (gpu_parts.py): the laws of devices, training throughput against
sentence-transformers, one minute of training, and a profile. Each part runs in separate processes
with a time limit. The program itself needs only Python's standard library. It rewrites figures.json
and report.md after every figure, so that a later failure loses nothing. Exit status: 0, 1 if a part
failed, 75 if it was stopped.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "perf")) if path not in sys.path]

import gpu_wheels  # noqa: E402
from gpu_report import FAILED, MARK, PARTS, PASSED, STOPPED, Figures, last_line, markdown  # noqa: E402

from ems.base.errors import REQUEUE, Damaged, EmsError  # noqa: E402
from ems.base.files import parse_json, write_json, write_text  # noqa: E402
from ems.base.progress import clock  # noqa: E402

FIGURES = "figures.json"
DEVICES = ("cuda", "cpu")
SHARES = {"laws": 2.0, "throughput": 4.0, "training": 1.2, "profile": 0.8}  # of the time
SIZES = ("ems", "lightweight", "12x512")  # in the order in which they are measured
DATA = 60.0  # seconds, at most
GRACE = 2.0  # seconds from SIGTERM to SIGKILL
LATE = "ended at the time limit"
LINES = 30  # of the output of a process that failed
MEASURED = {  # the figures that each part is for
    "data": "pairs",
    "laws": "cases",
    "throughput": "runs",
    "training": "steps",
    "profile": "profiles",
}
Calls = list[tuple[str, list[str]]]  # (name, flags) per process


class Kit:
    """One call: the parts to run and their figures."""

    def __init__(
        self,
        options: argparse.Namespace,
        paths: list[str],
        scratch: Path,
        missing: list[gpu_wheels.Need],
    ) -> None:
        self.options, self.scratch, self.out = options, scratch, options.out
        self.missing = missing
        self.end = time.monotonic() + 60 * options.minutes
        if own := os.environ.get("PYTHONPATH", "") if not sys.flags.ignore_environment else "":
            paths = [*paths, own]
        self.environment = {
            **os.environ,
            **({"PYTHONNOUSERSITE": "1"} if sys.flags.no_user_site else {}),  # python -I, -s
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONUNBUFFERED": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # ignore plug-ins of the machine
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "TMPDIR": str(scratch),
        }
        self.child: subprocess.Popen[str] | None = None
        self.stopped = False
        self.figures: Figures = {"device": options.device, "minutes": options.minutes}
        self.figures["missing"] = [gpu_wheels.explained(need) for need in missing]
        self.figures["machine"], self.figures["data"] = {}, {}
        self.figures["parts"] = {}
        if set(options.parts) != set(PARTS) and (self.out / FIGURES).exists():
            self.figures["parts"] = read_figures(self.out / FIGURES)["parts"]

    def run(self) -> int:
        """Run all parts; return the exit status."""
        say(f"--- machine and data, at most {clock(DATA)}")
        if not self.part("data", min(DATA, 60 * self.options.minutes), [("", [])]):
            return REQUEUE if self.stopped else 1
        fine = True
        for at, part in enumerate(self.options.parts):
            if self.stopped:
                break
            ahead = sum(SHARES[name] for name in self.options.parts[at:])
            limit = max(0.0, self.end - time.monotonic()) * SHARES[part] / ahead
            say(f"--- {part}, part {at + 1} of {len(self.options.parts)}, at most {clock(limit)}")
            fine &= self.part(part, limit, self.calls(part))
        return REQUEUE if self.stopped else int(not fine)

    def calls(self, part: str) -> Calls:
        """Return the processes of a part."""
        flags = {"laws": ["--cases", str(self.options.cases)]}
        flags["training"] = ["--seconds", str(self.options.seconds)]
        if part != "throughput":
            return [("", flags.get(part, []))]
        first, *others = self.options.sizes
        lacks_peer = any(need.use == gpu_wheels.PEER for need in self.missing)
        own, later = ["ems"] if lacks_peer else ["ems", "st-loop"], ["ems-compiled"]
        runs = [(first, trainer) for trainer in own + later]
        runs += [(size, trainer) for size in others for trainer in own]
        runs += [(size, trainer) for size in others for trainer in later]
        return [
            (f"{size} {trainer}", ["--size", size, "--trainer", trainer]) for size, trainer in runs
        ]

    def part(self, name: str, limit: float, calls: Calls) -> bool:
        """Run a part within its limit and record its status; return True if it passed.

        A process is left out if less time remains than the last one of its kind took, and if it is
        still running at the limit.
        """
        started = time.monotonic()
        until, took = started + limit, {}
        figures: Figures = {"status": STOPPED, "date": f"{datetime.now():%Y-%m-%d %H:%M}"}
        figures["limit"] = round(limit, 1)
        place = self.figures if name == "data" else self.figures["parts"]
        place[name] = figures
        (self.out / "logs" / f"{name}.log").unlink(missing_ok=True)
        self.write()
        for label, flags in calls:
            kind, before = label.rpartition(" ")[2], time.monotonic()
            if self.stopped or until - before <= took.get(kind, 0.0):
                figures.setdefault("left_out", []).append(label or name)
                continue
            ended, tail = self.process(name, [*flags, "--until", str(until)], until, figures)
            took[kind] = time.monotonic() - before
            running = figures.pop("running", label)
            if ended == LATE:
                figures.setdefault("left_out", []).append(f"{running or name} ({ended})")
            elif ended != PASSED and not self.stopped:
                error = {"what": label, "ended": ended, "output": tail}
                figures.setdefault("errors", []).append(error)
        seconds = time.monotonic() - started
        figures["took"] = round(seconds, 1)
        bad = "errors" in figures or MEASURED[name] not in figures
        figures["status"] = STOPPED if self.stopped else FAILED if bad else PASSED
        self.write()
        say(f"{name}: {figures['status']} after {clock(seconds)}")
        return figures["status"] == PASSED

    def process(
        self, part: str, flags: list[str], until: float, figures: Figures
    ) -> tuple[str, list[str]]:
        """Run one process of a part and collect its figures. Return (how it ended, the last lines
        of its output).
        """
        command = [sys.executable, str(ROOT / "perf/gpu_parts.py"), part, str(self.scratch)]
        command += ["--device", self.options.device, "--shared", str(self.options.shared), *flags]
        path = self.out / "logs" / f"{part}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines: list[str] = []
        with open(path, "a", 1, encoding="utf-8") as log:
            self.child = child = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # a process group, ended as a whole
            )
            late = threading.Event()
            timer = threading.Timer(max(0.1, until - time.monotonic()), end, [child, late])
            timer.start()
            try:
                self.follow(child.stdout, log, figures, lines)
                status = child.wait()
            finally:
                timer.cancel()
                kill(child, signal.SIGKILL)  # remaining descendants
        if late.is_set():
            return LATE, lines
        if status < 0:
            return f"killed by {signal.Signals(-status).name}", lines
        return f"exit status {status}" if status else PASSED, lines

    def follow(self, output: TextIO, log: TextIO, figures: Figures, lines: list[str]) -> None:
        """Print and log the output of a process; record its figures immediately."""
        for line in output:
            log.write(line)
            text, _, values = line.rstrip("\n").partition(MARK)
            if text or not values:
                say(text)
                lines.append(text)
                del lines[:-LINES]
            if values:
                self.take(values, figures)

    def take(self, line: str, figures: Figures) -> None:
        """Merge a line of figures into the figures of its part and write the report."""
        try:
            values = json.loads(line)
        except ValueError:  # the process was killed within the line
            return
        for key, value in values.items():
            if key == "machine":
                self.figures[key] = value
            elif isinstance(value, list):
                figures.setdefault(key, []).extend(value)
            else:
                figures[key] = value
        self.write()

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: end the running process; the report keeps every figure so far."""
        self.stopped = True
        if self.child:
            end(self.child)

    def write(self) -> None:
        """Write figures and report. An earlier report is kept until the machine proves usable."""
        if MEASURED["data"] not in self.figures["data"]:
            return
        write_json(self.out / FIGURES, self.figures)
        write_text(self.out / "report.md", markdown(self.figures))


def end(child: subprocess.Popen[str], late: threading.Event | None = None) -> None:
    """Send SIGTERM to a process group, and SIGKILL after GRACE seconds."""
    if late:
        late.set()
    kill(child, signal.SIGTERM)
    timer = threading.Timer(GRACE, lambda: child.poll() is None and kill(child, signal.SIGKILL))
    timer.daemon = True
    timer.start()


def kill(child: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to the process group of `child`."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def read_figures(path: Path) -> Figures:
    """Return the figures of a call. Raises `Damaged`, since pydantic may be missing here."""
    try:
        figures = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Damaged(path, f"not valid JSON ({error})") from None
    for key in ("machine", "data", "parts"):
        if not isinstance(figures, dict) or not isinstance(figures.get(key), dict):
            raise Damaged(path, f"expected a JSON object under `{key}`")
    return figures


def show(folder: Path) -> None:
    """Print the report of a folder. Exits with one line if there is none."""
    path = folder / FIGURES
    if not path.is_file():
        sys.exit(f"{path}: expected the figures of an earlier call, found none")
    figures = read_figures(path)
    say(f"{markdown(figures)}\n{last_line(figures)}")


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=DEVICES, default="cuda", help="default: cuda")
    parser.add_argument("--minutes", type=float, default=8, help="for all parts (default: 8)")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run (default: all)")
    parser.add_argument("--sizes", default=",".join(SIZES), help="sizes to measure (default: all)")
    parser.add_argument("--cases", type=int, default=0, help="cases of each law (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="of training (default: 60)")
    parser.add_argument("--wheels", type=Path, help="folder of wheels for this machine")
    parser.add_argument("--out", type=Path, help="folder of the report (results/gpu/DEVICE)")
    parser.add_argument(
        "--shared", type=Path, default=ROOT.parent / "shared/data", help="folder of the corpora"
    )
    parser.add_argument("--show", type=Path, metavar="FOLDER", help="print an earlier report")
    parser.add_argument("--collect", type=Path, metavar="FOLDER", help="download wheels into it")
    parser.add_argument("--python", help="version of the other machine, for --collect: 3.12")
    parser.add_argument("--machine", default="x86_64", help="its kind, for --collect (x86_64)")
    parser.add_argument("--also", default="", help="further packages, for --collect: regex,pytest")
    options = parser.parse_args()
    if options.collect and not options.python:
        parser.error("--collect: expected --python too, the version of the other machine: 3.12")
    if options.minutes <= 0:
        parser.error(f"--minutes: expected a positive number, found {options.minutes:g}")
    options.parts = listed(parser, "--parts", options.parts, PARTS)
    options.sizes = listed(parser, "--sizes", options.sizes, SIZES)
    options.out = (options.out or ROOT / "results/gpu" / options.device).resolve()
    return options


def listed(
    parser: argparse.ArgumentParser, flag: str, text: str, known: tuple[str, ...]
) -> list[str]:
    """Return the names in `text`, in the order of `known`."""
    names = text.split(",")
    if unknown := set(names) - set(known):
        parser.error(f"{flag}: {', '.join(sorted(unknown))}; allowed: {', '.join(known)}")
    return [name for name in known if name in names]


def measure(options: argparse.Namespace, scratch: Path) -> int:
    """Run the parts and print the report; return the exit status."""
    paths = [str(ROOT), str(ROOT / "perf")]
    if options.wheels:
        (scratch / "site").mkdir()
        names = gpu_wheels.unpack(options.wheels, scratch / "site")
        say(f"{options.wheels}: {', '.join(names)}")
        paths.append(str(scratch / "site"))
        sys.path.append(paths[-1])
    missing = gpu_wheels.missing()
    for need in missing:
        say(gpu_wheels.explained(need))
    if missing:
        say(gpu_wheels.advice())
    if any(need.use == gpu_wheels.EVERY for need in missing):
        return 1
    kit = Kit(options, paths, scratch, missing)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, kit.stop)
    status = kit.run()
    if MEASURED["data"] not in kit.figures["data"]:
        return status  # the part has printed the reason
    say(f"\n{markdown(kit.figures)}\n{options.out} has this report\n{last_line(kit.figures)}")
    return status


def main() -> int:
    options = options_of()
    if options.show:
        show(options.show)
        return 0
    if options.collect:
        also = [name for name in options.also.split(",") if name]
        gpu_wheels.collect(options.collect, options.python, options.machine, also)
        return 0
    with tempfile.TemporaryDirectory(prefix="ems-gpu-") as scratch:
        return measure(options, Path(scratch))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EmsError as error:
        sys.exit(str(error))
