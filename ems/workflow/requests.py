"""The resources that each job requests from a cluster, and requests that no node can satisfy.

rules/ask.py, a separate program since ems never imports Snakemake, plans the run and writes its
jobs with their resources. Snakemake's executor turns these into flags of `sbatch`
(https://snakemake.github.io/snakemake-plugin-catalog/plugins/executor/slurm.html). Slurm accepts
jobs that no node can run, and leaves them in the queue.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from subprocess import PIPE
from typing import Annotated

from ems.base.errors import EmsError
from ems.base.files import read_json, read_text
from ems.base.progress import clock, log
from ems.base.records import Bounds, Count, Json, NonBlank, Record

PROGRAM = Path("rules/ask.py")
GRES = re.compile(r"gpu(:(?P<type>[\w.]+?))??(:(?P<count>\d+))?")  # gpu, gpu:2, gpu:a100:2
ERROR = re.compile(r"\w*(Error|Exception)\b")  # begins Snakemake's reason
# resources of a profile without a column
OTHERS = ("slurm_account", "qos", "constraint", "clusters", "gres", "slurm_extra")
# A line per kind of node (-e): partition, number, CPUs, memory in MB, generic resources, time
# limit (https://slurm.schedmd.com/sinfo.html).
SINFO = ("sinfo", "-h", "-e", "-o", "%P|%D|%c|%m|%G|%l")
SINFO_SECONDS = 30  # timeout
GPUS = re.compile(r"\bgpu:(?:([^:,(]+):)?(\d+)")  # gpu:2, gpu:a100:4(S:0-1)
TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")  # 2-00:00:00, 12:00:00, 30:00


@dataclass(frozen=True)
class JobRequest:
    """The resources of a job; "" for `partition` and `gpu_type` means the site's default. `cpus`
    and `gpus` are for the whole job, `memory_mb` per node; None: not set.
    """

    partition: str
    nodes: int
    gpus: int
    gpu_type: str
    cpus: int
    minutes: int | None
    memory_mb: int | None
    extras: tuple[str, ...] = ()

    @property
    def of_node(self) -> tuple[int, int]:
        """CPUs and GPUs of each node."""
        return ceil(self.cpus / self.nodes), ceil(self.gpus / self.nodes)

    def __str__(self) -> str:
        cpus, gpus = self.of_node
        words = [_counted(cpus, "CPU")]
        if self.memory_mb:
            words.append(f"{self.memory_mb:,} MB")
        if self.gpus:
            words.append(f"{_counted(gpus, 'GPU')} {self.gpu_type}".rstrip())
        return f"{_counted(self.nodes, 'node')} of {', '.join(words)}"


class PlannedJob(Record):
    """A job that Snakemake would submit, or run here (`local`), as rules/ask.py writes it. `rules`:
    rule -> number of its jobs in this one; `costs`: the files of their costs.
    """

    local: bool
    threads: Count
    resources: Json
    rules: Annotated[dict[NonBlank, Count], Bounds(min_length=1)]
    costs: list[NonBlank]

    @property
    def request(self) -> JobRequest | None:
        """The request to the cluster; None for a local job."""
        return None if self.local else request_of(self.resources, self.threads)


def planned_jobs(experiment: str, profiles: list[str]) -> list[PlannedJob]:
    """Return all jobs of an experiment, finished or not, as Snakemake would submit them; the last
    profile with a key counts. Raises `EmsError` with Snakemake's reason if it cannot plan.
    """
    if not PROGRAM.exists():
        raise EmsError(f"{PROGRAM}: file not found; run this in the folder of the project")
    for file in (Path(place, name) for place in profiles for name in ("", "config.yaml")):
        if file.is_file():
            read_text(file)  # raises for text that is not UTF-8, which Snakemake does not explain
    named = " ".join(profiles)
    log.info("profile %s: Snakemake plans the jobs of %s", named, experiment)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "jobs.json"
        words = [word for profile in profiles for word in ("--profile", profile)]
        words += ["--config", f"experiment={experiment}", "--", "all"]
        command = [sys.executable, str(PROGRAM), str(out), *words]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode or not out.exists():
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            errors = (at for at, line in enumerate(lines) if ERROR.match(line))
            reason = " ".join(lines[next(errors, -1) :])[:500]
            reason = reason or "Snakemake could not plan the jobs and gave no reason"
            raise EmsError(f"profile {named}: {reason}")
        jobs = read_json(out, list[PlannedJob])
    log.info("%s jobs planned", f"{len(jobs):,}")
    return jobs


def request_of(resources: Json, threads: int) -> JobRequest:
    nodes, of_gpu = resources.get("nodes") or 1, resources.get("cpus_per_gpu")
    gpus, gpu_type = _gpus(resources, nodes)
    if gpus and of_gpu and not resources.get("cpus_per_task"):
        cpus = gpus * of_gpu
    else:
        cpus = _tasks(resources, nodes, gpus) * (resources.get("cpus_per_task") or threads)
    memory = resources.get("mem_mb")
    if per_cpu := resources.get("mem_mb_per_cpu"):
        memory = per_cpu * cpus // nodes
    extras = tuple(f"{name}={resources[name]}" for name in OTHERS if resources.get(name))
    partition, minutes = str(resources.get("slurm_partition") or ""), resources.get("runtime")
    return JobRequest(partition, nodes, gpus, gpu_type, cpus, minutes, memory, extras)


def _gpus(resources: Json, nodes: int) -> tuple[int, str]:
    """Return the number and type of a job's GPUs; `gpu` counts per job, `gres` per node."""
    model, count = str(resources.get("gpu_model") or ""), resources.get("gpu") or 0
    if model or count:
        return int(count or 1), model
    if match := GRES.fullmatch(str(resources.get("gres") or "")):
        return nodes * int(match["count"] or 1), match["type"] or ""
    return 0, ""


def _tasks(resources: Json, nodes: int, gpus: int) -> int:
    """Return the tasks of a job; each has its own CPUs."""
    tasks = resources.get("tasks")
    if resources.get("mpi"):
        return tasks or nodes * (resources.get("tasks_per_node") or 1)
    if not gpus:
        return tasks or 1
    each = resources.get("tasks_per_gpu", tasks)
    return gpus * each if each else 1


@dataclass(frozen=True)
class Nodes:
    """Equal nodes of a partition, the resources of each; `default`: for jobs that name none."""

    partition: str
    default: bool
    count: int
    cpus: int
    memory_mb: int
    gpus: Counter[str]  # by type, "" if Slurm names none
    seconds: int | None  # the time limit of a job

    @classmethod
    def read(cls, line: str) -> "Nodes":
        """Parse a line of `sinfo`. Raises `ValueError` if it has another form."""
        partition, count, cpus, memory, generic, limit = line.split("|")
        gpus, seconds = Counter(), None
        for kind, number in GPUS.findall(generic):
            gpus[kind] += int(number)
        if match := TIME.fullmatch(limit):
            days, hours, minutes, last = (int(part or 0) for part in match.groups())
            seconds = ((24 * days + hours) * 60 + minutes) * 60 + last
        name, default = partition.rstrip("*"), partition.endswith("*")
        return cls(name, default, int(count), int(cpus), int(memory), gpus, seconds)

    def satisfy(self, request: JobRequest) -> bool:
        cpus, gpus = request.of_node
        enough = self.cpus >= cpus and self.gpus_of(request.gpu_type) >= gpus
        return enough and self.memory_mb >= (request.memory_mb or 0)

    def gpus_of(self, kind: str) -> int:
        return self.gpus[kind] if kind else self.gpus.total()


def nodes_here() -> list[Nodes]:
    """Return the nodes of this cluster, [] without Slurm. Raises `EmsError` if `sinfo` fails."""
    if shutil.which(SINFO[0]) is None:
        return []
    try:
        listed = subprocess.check_output(SINFO, text=True, timeout=SINFO_SECONDS, stderr=PIPE)
        return [Nodes.read(line) for line in listed.splitlines()]
    except subprocess.CalledProcessError as error:
        raise EmsError((error.stderr.strip() or str(error)).splitlines()[-1]) from error
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise EmsError(str(error)) from error


def obstacles(request: JobRequest, nodes: list[Nodes]) -> Iterator[str]:
    """Yield the reasons why a job can start on none of the nodes."""
    names = request.partition.split(",") if request.partition else []
    there = [each for each in nodes if (each.partition in names if names else each.default)]
    if not there:
        known = ", ".join(dict.fromkeys(each.partition for each in nodes))
        wanted = f"partition {request.partition}" if names else "default partition"
        yield f"Slurm has no {wanted}, only {known}"
        return
    place = f"partition {request.partition}" if names else "the default partition"
    fitting = sum(each.count for each in there if each.satisfy(request))
    if fitting < request.nodes:
        cpus, memory = max(each.cpus for each in there), max(each.memory_mb for each in there)
        most = f"a node has at most {_counted(cpus, 'CPU')}, {memory:,} MB"
        if request.gpus:
            gpus = max(each.gpus_of(request.gpu_type) for each in there)
            most += f", {_counted(gpus, 'such GPU')}"
        yield f"asks for {request}; {place} has {fitting or 'none'} of them ({most})"
    limits = [each.seconds for each in there if each.seconds is not None]
    seconds = 60 * (request.minutes or 0)
    if seconds and len(limits) == len(there) and seconds > max(limits):
        yield f"asks for {clock(seconds)}; {place} gives a job {clock(max(limits))} at most"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
