"""Run experiments under random faults, each to its end, and compare every byte with a quiet run.

    python perf/faults.py [--experiments tiny small5] [--runs 50] [--seed 1] [--only KIND ...]

Each run has a copy of the project, and its corpora on a web server of its own. Faults strike at
random moments of the running Snakemake (fault_kinds.py has them). Then this script does what
docs/running.md says, and no more: the same command again, `--unlock` before it if the folder is
locked, and the advice at the end of an error, word by word. A run is lost if that does not bring it
to its end. It is different if a table, a score, a model, a vocabulary, text or a shard has another
byte than in the run without faults. A run of the same number and seed draws the same faults, and
moments that are the same share of a run without faults: `--first 17 --runs 1` repeats one.
"""

import argparse
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import psutil
from fault_case import (
    EXPERIMENTS,
    Case,
    Lost,
    Original,
    Run,
    case_of,
    copy_tree,
    differences,
    disks_work,
    environment_of,
    processes_in,
    sums_of,
)
from fault_kinds import KINDS
from measured import say
from pairs_made import ROOT, SHARED

from ems.base.errors import EmsError
from ems.base.files import write_json

ADVICE = re.compile(r"(?:delete (\S.*?) and )?make it(?: again)?: `([^`]+)`")
AGAIN = re.compile(r"delete (\S.*?) and run the same command again")
AHEAD = re.compile(r"in the future, when a clock was ahead.*: `([^`]+)`")
PLAIN = 4  # starts in a row that may fail without a fault, while the server serves
LONGEST = 3600  # seconds of a command that an advice names
DEEP = 5  # how often the command of an advice may fail with an advice of its own
OTHERS = 10  # one run in so many is of an experiment after the first


# --- what a user does after a fault


def mend(case: Case, output: str, done: list[str], depth: int = 0) -> None:
    """Unlock the folder if it is locked, and follow the advice of every error."""
    if case.locked():
        run_here(case, f"{shlex.join(case.command)} --unlock", done)
    if ahead := AHEAD.search(output):
        run_here(case, ahead[1], done)
    for line in dict.fromkeys(output.splitlines()):
        advice, again = ADVICE.search(line), AGAIN.search(line)
        if again:
            delete(case, again[1], done)
        elif advice and depth < DEEP:
            delete(case, advice[1] or "", done)
            code, said = run_here(case, advice[2], done)
            if code:
                mend(case, said, done, depth + 1)
                run_here(case, advice[2], done)


def delete(case: Case, words: str, done: list[str]) -> None:
    """Delete files or folders of a case, and nothing else."""
    for name in shlex.split(words):
        path = case.project / name
        if not path.resolve().is_relative_to(case.project.resolve()):
            raise Lost(f"an advice deletes a file of another folder: {name}")
        done.append(f"rm -r {name}")
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def run_here(case: Case, command: str, done: list[str]) -> tuple[int, str]:
    """Run a command in a case; its exit status and output."""
    done.append(command)
    with open(case.folder / "mended.log", "a+") as log:
        begin = log.seek(0, os.SEEK_END)
        try:
            code = subprocess.run(
                ["sh", "-c", command],
                cwd=case.project,
                env=case.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=LONGEST,
            ).returncode
        except subprocess.TimeoutExpired:
            raise Lost(f"it hangs: {command}") from None
        log.seek(begin)
        return code, log.read()


# --- a run


def plan(draw: random.Random, kinds: list[str], count: int, seconds: float) -> list[dict]:
    """Draw faults: those of downloads first, and those of Perl, which is only at the beginning."""
    weights = [KINDS[kind][1] for kind in kinds]
    first = {"network": 0, "kill-child": 1}
    drawn = sorted(draw.choices(kinds, weights, k=count), key=lambda kind: first.get(kind, 2))
    return [
        {"kind": kind, "delay": draw.uniform(0, 3 if kind in first else 2 * seconds / count)}
        for kind in drawn
    ]


def strike(case: Case, run: Run, left: list[dict], faults: list[dict], seed: str) -> None:
    """Let the faults that are left strike a run, one after the other, until it ends."""
    while left and run.lasts(left[0]["delay"]):
        fault = left[0]
        case.draw = random.Random(f"{seed} {len(left)}")
        log, jobs, at = run.log.name, run.jobs(), time.monotonic() - run.began
        details = KINDS[fault["kind"]][0](case, run)
        fault["tries"] = fault.get("tries", 0) + 1
        if details is not None:
            faults.append(
                {"kind": fault["kind"], **details, "log": log, "second": round(at, 1), "jobs": jobs}
            )
        if details is not None or fault["tries"] == 3:
            left.pop(0)


def to_the_end(case: Case, left: list[dict], record: dict, limit: float, seed: str) -> None:
    """Run an experiment under faults, again and again until it has ended. Raises `Lost`."""
    plain = 0
    while True:
        before, offline = len(record["faults"]), case.mirror.failing()
        run = case.start()
        strike(case, run, left, record["faults"], seed)
        if run.lasts(limit):
            raise Lost(f"it hangs: {run.log.name}")
        code, output = run.process.returncode, run.log.read_text(errors="replace")
        start = {"log": run.log.name, "status": code, "then": []}
        start["seconds"] = round(time.monotonic() - run.began, 1)
        start["traceback"] = "Traceback (most recent call last)" in output
        record["starts"].append(start)
        if code == 0:
            return
        plain = 0 if offline or len(record["faults"]) > before else plain + 1
        if plain == PLAIN:
            raise Lost(f"{PLAIN} starts without a fault have failed: {run.log.name}")
        mend(case, output, start["then"])


def verify(case: Case, record: dict, limit: float) -> None:
    """Look for cut files: a new start sees newer inputs, `ems verify` the rest."""
    to_the_end(case, [], record, limit, "")
    index = Path(f"results/{case.experiment}/shards/shared/index.json")
    places = "--data data" + (f" --index {index}" if (case.project / index).is_file() else "")
    done: list[str] = []
    for _ in range(DEEP):
        code, output = run_here(case, f"ems verify {places} --experiment {case.experiment}", done)
        if code == 0:
            return
        record["starts"].append({"log": "mended.log", "status": code, "then": done})
        mend(case, output, done)
        to_the_end(case, [], record, limit, "")
    raise Lost("`ems verify` finds damage again and again")


def one_run(number: int, experiment: str, original: Original, options: Any) -> dict[str, Any]:
    """Run an experiment under the faults of a number; what struck and what came of it."""
    folder = options.folder / f"run-{number}"
    seed = f"{options.seed} {number}"
    record = {"run": number, "experiment": experiment, "faults": [], "starts": [], "lost": ""}
    record["different"] = []
    limit = max(900.0, 10 * original.seconds)
    with case_of(original, experiment, folder, options.words, options.stop) as case:
        left = plan(random.Random(seed), options.kinds, options.faults, original.seconds)
        try:
            to_the_end(case, left, record, limit, seed)
            if any(fault["kind"] == "truncate" for fault in record["faults"]):
                verify(case, record, limit)
            if problems := case.problems + left_over(case):
                raise Lost("; ".join(problems))
            record["different"] = differences(original.sums, sums_of(case.project, experiment))
        except (Lost, EmsError) as error:
            record["lost"] = str(error)
        if case.disk and (record["lost"] or record["different"]):  # it goes with its disk
            shutil.copytree(case.disk, folder / "kept")
    if not record["lost"] and not record["different"]:
        shutil.rmtree(folder)
    return record


def left_over(case: Case) -> list[str]:
    """Processes that still run some seconds after the end."""
    end = time.monotonic() + 10
    while (left := processes_in(case.project)) and time.monotonic() < end:
        time.sleep(0.5)
    return [f"process {each.pid} is left over" for each in left]


def original_of(experiment: str, options: Any, disks: bool) -> Original:
    """Run an experiment without faults."""
    folder = options.folder / experiment
    folder.mkdir()
    original = Original(copy_tree(folder / "copy"), options.shared)
    if experiment == "tiny":
        original.mirror = folder / "mirror"
        command = ["ems", "demo-mirror", "--out", str(original.mirror)]
        environment = environment_of(original.project)
        subprocess.run(command, env=environment, check=True, capture_output=True, cwd=folder)
    with case_of(original, experiment, folder / "quiet", options.words, options.stop) as case:
        run = case.start()
        if run.process.wait():
            sys.exit(f"{experiment} fails without any fault: {run.log}")
        original.seconds = time.monotonic() - run.began
        original.sums = sums_of(case.project, experiment)
        files = [path for name in ("results", "data") for path in (case.project / name).rglob("*")]
        used = sum(path.stat().st_size for path in files if path.is_file())
    original.disk = 2 * used + (64 << 20) if disks else 0
    shutil.rmtree(folder / "quiet")
    say(f"{experiment} without faults: {original.seconds:.0f} s, {len(original.sums)} files")
    return original


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=["tiny"])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--first", type=int, default=1, help="number of the first run")
    parser.add_argument("--faults", type=int, default=8, help="faults that are drawn for a run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--at-once", type=int, default=1, help="runs side by side")
    parser.add_argument("--cores", type=int, help="cores of a run (default: all)")
    parser.add_argument("--target", default="all", help="what Snakemake is asked for")
    parser.add_argument("--shared", type=Path, default=SHARED, help="the corpora of small5")
    parser.add_argument("--folder", type=Path, default=ROOT / "results/perf", help="for the runs")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/faults.json")
    options = parser.parse_args()
    options.folder = options.folder.resolve()  # commands run in folders of their own
    return options


def campaign(options: argparse.Namespace, originals: dict[str, Original]) -> Iterator[dict]:
    """Run all runs, some at once; yield what came of each."""
    first, *others = options.experiments
    numbers = range(options.first, options.first + options.runs)
    with ThreadPoolExecutor(options.at_once) as pool:
        futures = []
        for number in numbers:
            turn, rest = divmod(number, OTHERS)
            name = others[turn % len(others)] if others and rest == 0 else first
            futures.append(pool.submit(one_run, number, name, originals[name], options))
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            options.stop.set()
            for process in psutil.Process().children(recursive=True):
                process.kill()
            pool.shutdown(cancel_futures=True)
            raise


def progress(records: list[dict], options: argparse.Namespace, began: float) -> str:
    """Say what the last run brought, and how long the others will take."""
    last = records[-1]
    left = (time.monotonic() - began) / len(records) * (options.runs - len(records))
    came = last["lost"] or ("different: " + ", ".join(last["different"][:3]))
    came = came if last["lost"] or last["different"] else "the same"
    return (
        f"run {last['run']} ({last['experiment']}), {len(last['faults'])} faults in "
        f"{len(last['starts'])} starts: {came}; {len(records)} of {options.runs} runs, "
        f"{summary(records)}; {left / 60:.0f} min left"
    )


def summary(records: list[dict]) -> str:
    """The line that is compared."""
    return (
        f"faults={sum(len(each['faults']) for each in records)} "
        f"lost={sum(bool(each['lost']) for each in records)} "
        f"different={sum(bool(each['different']) for each in records)}"
    )


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    options = options_of()
    if "small5" in options.experiments and not (options.shared / "opus").is_dir():
        sys.exit(f"{options.shared}/opus is not there; give --shared FOLDER, or leave small5 out")
    options.folder.mkdir(parents=True, exist_ok=True)
    options.folder = Path(mkdtemp(prefix="faults-", dir=options.folder))
    disks = disks_work(options.folder / "disks")
    options.kinds = [kind for kind in options.only if disks or kind != "disk"]
    if len(options.kinds) < len(options.only):
        say("no full disk: only root may mount one (tmpfs)")
    if not options.kinds:
        sys.exit("no kind of fault is left")
    cores = ["--cores", str(options.cores)] if options.cores else []
    options.words, options.stop = [*cores, "--", options.target], threading.Event()
    originals = {name: original_of(name, options, disks) for name in options.experiments}
    began, records = time.monotonic(), []
    try:
        for record in campaign(options, originals):
            records.append(record)
            say(progress(records, options, began))
            write_json(options.out, {"seed": options.seed, "runs": records})
    except KeyboardInterrupt:
        say("interrupted; the runs that had ended:")
    counts = Counter(fault["kind"] for record in records for fault in record["faults"])
    for kind, count in sorted(counts.items()):
        say(f"{kind:16}{count:6}")
    if bad := any(record["lost"] or record["different"] for record in records):
        say(f"the runs that were not right are in {options.folder}")
    else:
        shutil.rmtree(options.folder)
    say(summary(records))
    sys.exit(bad)


if __name__ == "__main__":
    main()
