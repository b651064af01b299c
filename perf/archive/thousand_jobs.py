"""What Snakemake itself costs on a real Slurm: an experiment's jobs, each of which does nothing.

Each job makes empty files in the place of its outputs. The plan, the submissions, Slurm's queue and
the questions to it are real. With `--kill` Snakemake is killed (kill -9) when half of the jobs have
started; the same command is given again, and no job may be lost or run twice.

    python perf/thousand_jobs.py --private            a Slurm of this machine alone (as root)
    python perf/thousand_jobs.py --experiment ems62   the Slurm that `sbatch` submits to

Notable choices:
- Stand-ins for `ems` and `sbatch` come first on PATH. They look up a job's outputs, by its command
  or by its rule and wildcards, in what a dry run prints.
- A job of Slurm does not start the Snakemake that a real one starts: that costs another machine
  some seconds, not this one. `--starts` lets it, and so does `--kill`, since that Snakemake is what
  leaves a finished job finished when the one that submitted it is gone.
"""

import argparse
import json
import logging
import math
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from hashlib import md5
from pathlib import Path

import psutil

from ems.base.progress import Progress

MANY = 256  # CPUs: all jobs that the profile allows run at once
FEW = 8  # CPUs where each job starts its Snakemake: what a training asks for
ROOT = Path(__file__).resolve().parent.parent
JOB = re.compile(r"^ *(?:local)?rule (\w+):\n(.*?)^Shell command: ([^\n]*)", re.M | re.S)
IDLE = """#!/bin/sh
# Make the outputs of some jobs: empty files, folders where there is no suffix.
cd {project}
for key in "$@"; do
  echo "$key" >> {root}/started
  sleep {seconds}
  while read -r path; do
    case "${{path##*/}}" in
      *.*) mkdir -p "${{path%/*}}"; : > "$path" ;;
      *) mkdir -p "$path" ;;
    esac
  done < {root}/outputs/$key
  echo "$key" >> {root}/ended
done
"""
EMS = """#!/bin/sh
# `ems` in a job of this machine: its command line is the key.
exec {root}/bin/idle $(printf '%s\\0' "$@" | md5sum | cut -c-32)
"""
SBATCH = """#!{python} -SE
# `sbatch`, whose job does nothing: the keys are the rules and wildcards that it was to run.
import os, shlex, sys
from hashlib import md5
open("{root}/submitted", "a").write("job\\n")
for at, word in enumerate(sys.argv):
    if word.startswith("--wrap="):
        words = shlex.split(word[7:])
        words = words[words.index("--target-jobs") + 1 :]
        names = words[: next(i for i, word in enumerate(words) if word[:2] == "--")]
        keys = " ".join(md5(name.encode()).hexdigest() for name in names)
        sys.argv[at] = "--wrap={root}/bin/idle " + keys
os.execv("{sbatch}", ["sbatch", *sys.argv[1:]])
"""
SQUEUE = """#!/bin/sh
date +%s >> {root}/asked
exec {squeue} "$@"
"""


def write_outputs(plan: str, folder: Path) -> dict[str, str]:
    """Write the outputs of each job of a dry run, under both its keys; return its name by key."""
    folder.mkdir()
    names = {}
    for rule, lines, command in JOB.findall(plan):
        if command == "None":  # a target that collects files
            continue
        fields = dict(re.findall(r"^ *(output|wildcards): (.*)$", lines, re.M))
        wildcards = fields.get("wildcards", "").replace(", ", ",")
        arguments = shlex.split(command)
        arguments = arguments[arguments.index("ems") + 1 :]
        name = f"{rule}:{wildcards}"
        keys = [name, "".join(f"{word}\0" for word in arguments)]
        for key in (md5(key.encode()).hexdigest() for key in keys):
            paths = [path.removesuffix(" (update)") for path in fields["output"].split(", ")]
            (folder / key).write_text("".join(f"{path}\n" for path in paths))
            names[key] = name
    return names


def write_programs(root: Path, project: Path, seconds: float, starts: bool) -> None:
    """Write the stand-ins into root/bin; with `starts` a job of Slurm starts its Snakemake."""
    (root / "bin").mkdir()
    names = {"root": root, "project": shlex.quote(str(project)), "seconds": seconds}
    names |= {"python": sys.executable}
    names |= {program: shutil.which(program) for program in ("sbatch", "squeue")}
    programs = {"idle": IDLE, "ems": EMS, "squeue": SQUEUE}
    programs |= {} if starts else {"sbatch": SBATCH}
    for name, text in programs.items():
        (root / "bin" / name).write_text(text.format(**names))
        (root / "bin" / name).chmod(0o755)


def lines(path: Path) -> list[str]:
    """The lines of a file; none if it is not there."""
    return path.read_text().splitlines() if path.exists() else []


def watched(run: subprocess.Popen[bytes], root: Path, total: int, until: float) -> dict[str, float]:
    """Wait for a Snakemake, and show how far it is; kill it when `until` jobs have started.

    Returns the seconds until its first job, and the CPU seconds and the MB of its own process.
    """
    process, began = psutil.Process(run.pid), time.monotonic()
    costs = {"first_job_s": 0.0, "cpu_s": 0.0, "mb": 0.0}
    progress = Progress("jobs", total, "jobs", before=len(lines(root / "ended")))
    while run.poll() is None:
        started, seconds = len(lines(root / "started")), time.monotonic() - began
        costs["first_job_s"] = costs["first_job_s"] or (started and seconds)
        with suppress(psutil.Error):  # it may end meanwhile
            costs["cpu_s"] = sum(process.cpu_times()[:2])
            costs["mb"] = max(costs["mb"], process.memory_info().rss / 1e6)
        progress.add(len(lines(root / "ended")) - progress.done)
        if started >= until:
            run.kill()
        time.sleep(0.5)
    progress.close()
    return costs


class Workflow:
    """A copy of the project whose jobs do nothing; `names` has each job's name by its keys."""

    def __init__(self, options: argparse.Namespace, root: Path, environment: dict[str, str]):
        self.root, self.project = root, root / "project"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(self.project)], check=True)
        self.words = ["--profile", "slurm", "--config", f"experiment={options.experiment}"]
        self.target = options.target
        self.environment = environment
        self.names = write_outputs(self._plan(), root / "outputs")
        self.total = len(set(self.names.values()))
        write_programs(root, self.project, options.seconds, options.starts)
        path = f"{root / 'bin'}{os.pathsep}{environment['PATH']}"
        self.environment = {**environment, "PATH": path}

    def _plan(self) -> str:
        """The dry run, with each job's shell command."""
        done = self.call("-n", "-p", *self.words, "--", self.target)
        return done.stdout + done.stderr

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake, which must succeed."""
        command = ["snakemake", *words]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
        return done

    def run(self, until: float = math.inf) -> tuple[int, dict[str, float]]:
        """Run Snakemake, killed when `until` jobs have started; its status, and what it took."""
        with open(self.root / "snakemake.log", "a") as log:
            command = ["snakemake", *self.words, "--", self.target]
            started = subprocess.Popen(
                command, cwd=self.project, env=self.environment, stdout=log, stderr=log
            )
            costs = watched(started, self.root, self.total, until)
        return started.returncode, costs

    def kill(self) -> dict[str, float]:
        """Kill Snakemake in the middle; run it again, which is refused; wait for its jobs."""
        self.run(self.total / 2)
        queued = self.queued()
        status, _ = self.run()
        if status == 0:
            sys.exit("a Snakemake was expected to refuse to start where another one was killed")
        began = time.monotonic()
        while self.queued():
            time.sleep(1)
        self.call(*self.words, "--unlock")
        waited, ended = time.monotonic() - began, len(lines(self.root / "ended"))
        return {"queued_at_kill": queued, "waited_s": waited, "ended_before": ended}

    def queued(self) -> int:
        """The number of jobs in Slurm's queue."""
        command = ["squeue", "--me", "--noheader"]
        return len(subprocess.check_output(command, env=self.environment).splitlines())


def measure(
    options: argparse.Namespace, root: Path, environment: dict[str, str]
) -> dict[str, float]:
    """Run the experiment; return what it took."""
    workflow = Workflow(options, root, environment)
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    killed = workflow.kill() if options.kill else {}
    status, costs = workflow.run()
    if status:
        sys.exit((root / "snakemake.log").read_text()[-3000:])
    minutes = (time.monotonic() - clock) / 60
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    asked = Counter(int(second) // 60 for second in lines(root / "asked"))
    counts = Counter(workflow.names[key] for key in lines(root / "started"))
    return {
        "jobs": workflow.total,
        "submitted": len(lines(root / "submitted")),
        "minutes": minutes,
        **costs,
        "cpu_with_children_s": sum(after[:2]) - sum(before[:2]),
        "squeue_a_minute": sum(asked.values()) / minutes,
        "squeue_busiest_minute": max(asked.values(), default=0),
        **killed,
        "lost": len(set(workflow.names.values()) - set(counts)),
        "twice": sum(count > 1 for count in counts.values()),
    }


@contextmanager
def private(root: Path, cpus: int) -> Iterator[dict[str, str]]:
    """A Slurm of this machine that believes in so many CPUs; yields its users' environment."""
    sys.path.insert(0, str(ROOT / "tests"))
    from made.slurm import running

    with running(root, port=17867, cpus=cpus) as cluster:
        yield cluster.environment


def main() -> None:
    """Print what it took, and last the line that is compared."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", default="ems62", help="default: ems62")
    parser.add_argument("--target", default="all", help="what Snakemake makes (default: all)")
    parser.add_argument("--private", action="store_true", help="start a Slurm of this machine")
    parser.add_argument("--kill", action="store_true", help="kill Snakemake in the middle")
    parser.add_argument("--starts", action="store_true", help="jobs start their Snakemake too")
    parser.add_argument(
        "--seconds", type=float, default=0.1, help="that a job takes (default: 0.1)"
    )
    parser.add_argument("--folder", type=Path, help="one that the cluster's machines see")
    parser.add_argument("--out", type=Path, help="JSON file")
    options = parser.parse_args()
    if options.kill:
        options.starts = True  # the Snakemake of a job says in the project that it is finished
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        root = Path(folder)
        (root / "slurm").mkdir()
        cpus = FEW if options.starts else MANY
        cluster = nullcontext(dict(os.environ))
        if options.private:
            cluster = private(root / "slurm", cpus)
        with cluster as environment:
            results = measure(options, root, environment)
    rounded = {name: round(value, 1) for name, value in results.items()}
    for name, value in rounded.items():
        print(f"{name.replace('_', ' '):28}{value:12,}")
    if options.out:
        options.out.write_text(json.dumps(rounded, indent=2) + "\n")
    print(" ".join(f"{name}={value}" for name, value in rounded.items()))


if __name__ == "__main__":
    main()
