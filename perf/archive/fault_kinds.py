"""What can befall a running `snakemake`: the kinds of faults of perf/faults.py.

A kind is a function of a case and its running Snakemake. It returns what it did, or None if the run
ended before there was anything to strike.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from fault_case import Case, Run, role_of, words_of
from fault_mirror import WAYS

DAY = 86_400.0  # seconds
# what a Snakemake says that is refused: another one runs, its files are dated in the future, or it
# ends at this moment and takes the folder of locks with it (Snakemake 9.27 prints a stack trace)
REFUSED = ("cannot be locked", "hours in the future", ".snakemake/locks/0.input.lock")
LONGEST = 60.0  # seconds to wait for something to strike
PATIENCE = 20.0  # seconds to wait for a download that can fail
LONG = 0.1  # the share of faults of the network that outlast the patience of `ems fetch`


Details = dict[str, Any] | None
Kind = Callable[[Case, Run], Details]


# --- kills and signals


def kill_snakemake(case: Case, run: Run) -> Details:
    """`kill -9` of Snakemake alone: its jobs go on until they see that it is gone."""
    run.process.kill()
    return {}


def kill_one(role: str) -> Kind:
    """`kill -9` of a random process below Snakemake, of one role."""

    def strike(case: Case, run: Run) -> Details:
        for _ in run.waiting(LONGEST):
            victims = [each for each in run.family()[1:] if role_of(each) == role]
            if victims:
                victim = case.draw.choice(victims)
                words = words_of(victim)
                with suppress(psutil.NoSuchProcess):
                    victim.kill()
                    return {"killed": " ".join(words)}
        return None

    return strike


def terminate(case: Case, run: Run) -> Details:
    """SIGTERM of Snakemake, as `kill` or a shutdown sends."""
    run.process.terminate()
    return {}


def interrupt(case: Case, run: Run) -> Details:
    """Ctrl-C: SIGINT of all processes of the terminal, or of Snakemake alone."""
    everyone = case.draw.random() < 0.5
    with suppress(ProcessLookupError):
        (os.killpg if everyone else os.kill)(run.process.pid, signal.SIGINT)
    return {"to": "the terminal" if everyone else "Snakemake"}


# --- disks and files


def full_disk(case: Case, run: Run) -> Details:
    """A disk without a free byte, for some seconds or until Snakemake has ended."""
    to_the_end, seconds = case.draw.random() < 0.5, case.draw.uniform(1, 8)
    filler = case.disk / "filler"
    try:
        with open(filler, "wb", buffering=0) as writer:
            for _ in run.waiting(60 if to_the_end else seconds):
                _fill(writer)
    finally:
        filler.unlink()
    return {"seconds": None if to_the_end else round(seconds, 1), "ended": not run.alive()}


def _fill(writer: Any) -> None:
    for size in (1 << 20, 1 << 12):
        block = bytes(size)
        with suppress(OSError):
            while True:
                writer.write(block)


def truncate(case: Case, run: Run) -> Details:
    """A finished file that something is still going to read is cut in the middle."""
    for _ in run.waiting(LONGEST):
        files = [path for path in _cuttable(case) if path.stat().st_size > 100]
        if files:
            path = case.draw.choice(sorted(files))
            size = path.stat().st_size // 2
            os.truncate(path, size)
            if case.now.startswith("+"):  # the time is that of the machine
                _shift(path, DAY)
            return {"file": str(path.relative_to(case.project)), "bytes": size}
    return None


def _cuttable(case: Case) -> Iterator[Path]:
    """Files whose damage is seen: by a job to come, as a newer input, or by `ems verify`."""
    results = f"results/{case.experiment}"
    patterns = ["data/opus/*/*/moses/*.zip", f"{results}/vocab/*/sample.txt"]
    patterns += [f"{results}/{place}" for place in ("text/*/*/*/*.tsv", "shards/**/*.ids")]
    patterns += [f"{results}/state/**/*"]
    if not (case.project / results / "scores").is_dir():  # then nothing reads them any more
        patterns += ["data/evalsets/*/*/*.*-*.*"]
    for pattern in patterns:
        for path in case.project.glob(pattern):
            with suppress(FileNotFoundError):
                if path.is_file() and not path.name.startswith("."):
                    yield path


# --- the world outside


def network(case: Case, run: Run) -> Details:
    """The server of the corpora fails for a while, in one of its ways, from a request on."""
    way = case.draw.choice(WAYS)
    seconds = case.draw.uniform(20, 70) if case.draw.random() < LONG else case.draw.uniform(1, 8)
    case.mirror.arm(way, seconds)
    for _ in run.waiting(PATIENCE):
        if case.mirror.hit.is_set():
            return {"way": way, "seconds": round(seconds, 1)}
    case.mirror.disarm()
    return None


def clock(case: Case, run: Run) -> Details:
    """The clock jumps by a day: for what was written, or for a machine that crashes and starts."""
    sign = case.draw.choice("+-")
    if shutil.which("faketime") and case.draw.random() < 0.5:
        run.process.kill()
        case.clock = f"{sign}1d"
        return {"starts again at": f"{sign}1 day"}
    for _ in run.waiting(LONGEST):
        folders = [case.project / "data", case.project / "results" / case.experiment]
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        if files:
            chosen = case.draw.sample(sorted(files), min(len(files), case.draw.randint(1, 5)))
            for path in chosen:
                _shift(path, DAY if sign == "+" else -DAY)
            names = [str(path.relative_to(case.project)) for path in chosen]
            return {"files of": f"{sign}1 day", "files": names}
    return None


def _shift(path: Path, seconds: float) -> None:
    with suppress(FileNotFoundError):
        written = path.stat().st_mtime + seconds
        os.utime(path, (written, written))


def second(case: Case, run: Run) -> Details:
    """The same command in the same folder, at the same time: it must be refused."""
    for _ in run.waiting(LONGEST):
        if case.locked():
            break
    if not run.alive():
        return None
    other = case.start()
    hangs = other.lasts(600)
    said = other.log.read_text()
    failed = not hangs and other.process.returncode != 0
    refused = failed and any(words in said for words in REFUSED)
    if not refused and not run.alive():  # the first one had ended
        return None
    if not refused:
        case.problems.append(f"a second Snakemake was not refused: {other.log.name}")
    return {"refused": refused}


# name -> what strikes, and how often it is drawn
KINDS: dict[str, tuple[Kind, int]] = {
    "kill-snakemake": (kill_snakemake, 3),
    "kill-shell": (kill_one("shell"), 1),
    "kill-ems": (kill_one("ems"), 3),
    "kill-child": (kill_one("child"), 1),
    "sigterm": (terminate, 2),
    "sigint": (interrupt, 2),
    "disk": (full_disk, 2),
    "truncate": (truncate, 3),
    "network": (network, 2),
    "clock": (clock, 2),
    "second": (second, 2),
}
