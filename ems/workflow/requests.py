"""What each job of an experiment will ask a cluster for, and which requests no node there can hold.

rules/ask.py, a program of its own as ems never imports Snakemake, lets it plan the run and writes
its jobs with their resources. How these become words of `sbatch` is said by Snakemake's executor
(https://snakemake.github.io/snakemake-plugin-catalog/plugins/executor/slurm.html). Slurm takes jobs
that no node can hold, and they wait in the queue until somebody looks.
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

from pydantic import Field

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.base.progress import clock, log
from ems.base.schema import Count, Json, NonBlank, Record

PROGRAM = Path("rules/ask.py")
GRES = re.compile(r"gpu(:(?P<type>[\w.]+?))??(:(?P<count>\d+))?")  # gpu, gpu:2, gpu:a100:2
ERROR = re.compile(r"\w*(Error|Exception)\b")  # begins why Snakemake stopped
# what the profile may add and no column shows
OTHERS = ("slurm_account", "qos", "constraint", "clusters", "gres", "slurm_extra")
# A line for all nodes that are alike, by -e: partition, how many, CPUs, memory in MB, generic
# resources, time limit (https://slurm.schedmd.com/sinfo.html).
SINFO = ("sinfo", "-h", "-e", "-o", "%P|%D|%c|%m|%G|%l")
SINFO_SECONDS = 30  # that Slurm has to answer
GPUS = re.compile(r"\bgpu:(?:([^:,(]+):)?(\d+)")  # gpu:2, gpu:a100:4(S:0-1)
TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")  # 2-00:00:00, 12:00:00, 30:00


@dataclass(frozen=True)
class JobRequest:
    """What a job asks for; `partition` and `gpu_type` are "" where the site's default holds.

    `cpus` and `gpus` are of the whole job, `memory_mb` of each of its `nodes`; None: not said.
    """

    partition: str
    nodes: int
    gpus: int
    gpu_type: str
    cpus: int
    minutes: int | None
    memory_mb: int | None
    others: tuple[str, ...] = ()

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


class AskedJob(Record):
    """A job as Snakemake would submit it, or run it beside itself (`local`): how often it has which
    rule, and the files in which they will write what they cost. rules/ask.py writes it.
    """

    local: bool
    threads: Count
    resources: Json
    rules: Annotated[dict[NonBlank, Count], Field(min_length=1)]
    costs: list[NonBlank]

    @property
    def request(self) -> JobRequest | None:
        """What it asks the cluster for; None for a local one."""
        return None if self.local else request_of(self.resources, self.threads)


def planned_jobs(experiment: str, profiles: list[str]) -> list[AskedJob]:
    """Return all jobs of an experiment, finished or not, as Snakemake would submit them.

    Where several profiles say the same key, the last one holds. Raises `EmsError` with Snakemake's
    own words if it cannot plan: no such profile, for example.
    """
    if not PROGRAM.exists():
        raise EmsError(f"{PROGRAM} is not here: run this in the folder of the project")
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
            reason = reason or "Snakemake could not plan the jobs and did not say why"
            raise EmsError(f"profile {named}: {reason}")
        jobs = read_json(out, list[AskedJob])
    log.info("%s jobs are planned", f"{len(jobs):,}")
    return jobs


def request_of(resources: Json, threads: int) -> JobRequest:
    """Return what a job with these resources asks Slurm for."""
    nodes, of_gpu = resources.get("nodes") or 1, resources.get("cpus_per_gpu")
    gpus, gpu_type = _gpus(resources, nodes)
    if gpus and of_gpu and not resources.get("cpus_per_task"):
        cpus = gpus * of_gpu
    else:
        cpus = _tasks(resources, nodes, gpus) * (resources.get("cpus_per_task") or threads)
    memory = resources.get("mem_mb")
    if per_cpu := resources.get("mem_mb_per_cpu"):
        memory = per_cpu * cpus // nodes
    others = tuple(f"{name}={resources[name]}" for name in OTHERS if resources.get(name))
    partition, minutes = str(resources.get("slurm_partition") or ""), resources.get("runtime")
    return JobRequest(partition, nodes, gpus, gpu_type, cpus, minutes, memory, others)


def _gpus(resources: Json, nodes: int) -> tuple[int, str]:
    """Return the GPUs of a job and their type: `gpu` counts those of the job, `gres` of a node."""
    model, count = str(resources.get("gpu_model") or ""), resources.get("gpu") or 0
    if model or count:
        return int(count or 1), model
    if match := GRES.fullmatch(str(resources.get("gres") or "")):
        return nodes * int(match["count"] or 1), match["type"] or ""
    return 0, ""


def _tasks(resources: Json, nodes: int, gpus: int) -> int:
    """Return the tasks of a job, each of which has CPUs of its own."""
    tasks = resources.get("tasks")
    if resources.get("mpi"):
        return tasks or nodes * (resources.get("tasks_per_node") or 1)
    if not gpus:
        return tasks or 1
    each = resources.get("tasks_per_gpu", tasks)
    return gpus * each if each else 1


@dataclass(frozen=True)
class Nodes:
    """Some nodes of a partition, all alike: what each has. `seconds` is the longest that a job may
    take there, None without a limit; `default` says whether jobs go there that name no partition.
    """

    partition: str
    default: bool
    count: int
    cpus: int
    memory_mb: int
    gpus: Counter[str]  # by type, "" where Slurm names none
    seconds: int | None

    @classmethod
    def read(cls, line: str) -> "Nodes":
        """Return the nodes of a line of `sinfo`. Raises `ValueError` for another line."""
        partition, count, cpus, memory, generic, limit = line.split("|")
        gpus, seconds = Counter(), None
        for kind, number in GPUS.findall(generic):
            gpus[kind] += int(number)
        if match := TIME.fullmatch(limit):
            days, hours, minutes, rest = (int(part or 0) for part in match.groups())
            seconds = ((24 * days + hours) * 60 + minutes) * 60 + rest
        name, default = partition.rstrip("*"), partition.endswith("*")
        return cls(name, default, int(count), int(cpus), int(memory), gpus, seconds)

    def holds(self, asked: JobRequest) -> bool:
        cpus, gpus = asked.of_node
        enough = self.cpus >= cpus and self.gpus_of(asked.gpu_type) >= gpus
        return enough and self.memory_mb >= (asked.memory_mb or 0)

    def gpus_of(self, kind: str) -> int:
        return self.gpus[kind] if kind else self.gpus.total()


def nodes_here() -> list[Nodes]:
    """Return the nodes of this cluster; none without Slurm. Raises `EmsError` if it is silent."""
    if shutil.which(SINFO[0]) is None:
        return []
    try:
        listed = subprocess.check_output(SINFO, text=True, timeout=SINFO_SECONDS, stderr=PIPE)
        return [Nodes.read(line) for line in listed.splitlines()]
    except subprocess.CalledProcessError as error:
        raise EmsError((error.stderr.strip() or str(error)).splitlines()[-1]) from error
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise EmsError(str(error)) from error


def obstacles(asked: JobRequest, nodes: list[Nodes]) -> Iterator[str]:
    """Yield why a job can start on none of these nodes, if so."""
    names = asked.partition.split(",") if asked.partition else []
    there = [each for each in nodes if (each.partition in names if names else each.default)]
    if not there:
        known = ", ".join(dict.fromkeys(each.partition for each in nodes))
        what = f"no partition {asked.partition}" if names else "no default partition"
        yield f"Slurm has {what}, only {known}"
        return
    where = f"partition {asked.partition}" if names else "the default partition"
    fitting = sum(each.count for each in there if each.holds(asked))
    if fitting < asked.nodes:
        cpus, memory = max(each.cpus for each in there), max(each.memory_mb for each in there)
        most = f"a node has at most {_counted(cpus, 'CPU')}, {memory:,} MB"
        if asked.gpus:
            gpus = max(each.gpus_of(asked.gpu_type) for each in there)
            most += f", {_counted(gpus, 'such GPU')}"
        yield f"asks for {asked}; {where} has {fitting or 'none'} of them ({most})"
    limits = [each.seconds for each in there if each.seconds is not None]
    if asked.minutes and len(limits) == len(there) and 60 * asked.minutes > (most := max(limits)):
        yield f"asks for {clock(60 * asked.minutes)}; {where} gives a job {clock(most)} at most"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
