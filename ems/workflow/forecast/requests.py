"""What each job of an experiment will ask a cluster for.

The requests stand in the rules and in the profile of Snakemake, and nowhere else: rules/ask.py lets
Snakemake plan the run and writes its jobs. It is a program of its own, as ems never imports
Snakemake. How the resources of a job become words of `sbatch` is said by Snakemake's executor for
Slurm (https://snakemake.github.io/snakemake-plugin-catalog/plugins/executor/slurm.html).
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.base.progress import log
from ems.base.schema import Count, Json, Record, Text

PROGRAM = Path("rules/ask.py")
GPU = re.compile(r"gpu(:(?P<type>[\w.]+?))??(:(?P<count>\d+))?")  # gpu, gpu:2, gpu:a100:2
# that the profile may add and that no column shows
OTHERS = ("slurm_account", "qos", "constraint", "clusters", "gres", "slurm_extra")


class _Part(Record):
    rule: Text
    log: list[str]


class AskedJob(Record):
    """A job as rules/ask.py writes it."""

    local: bool
    threads: Count
    resources: Json
    parts: Annotated[list[_Part], MinLen(1)]


@dataclass(frozen=True)
class Request:
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


@dataclass(frozen=True)
class Job:
    """A job as Snakemake submits it: its rules in order, how often each, and the files in which
    they will write what they cost. `request` is None for one that runs beside Snakemake.
    """

    rules: tuple[tuple[str, int], ...]
    costs: tuple[Path, ...]
    request: Request | None


def planned_jobs(experiment: str, profiles: list[str]) -> list[Job]:
    """Return all jobs of an experiment, finished or not, as Snakemake would submit them.

    Where several profiles say the same key, the last one holds. Raises `EmsError` with Snakemake's
    own words if it cannot plan: no such profile, for example.
    """
    if not PROGRAM.exists():
        raise EmsError(f"{PROGRAM} is not here: run this in the folder of the project")
    log.info("profile %s: Snakemake plans the jobs of %s", " ".join(profiles), experiment)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "jobs.json"
        words = [word for profile in profiles for word in ("--profile", profile)]
        words += ["--config", f"experiment={experiment}", "--", "all"]
        command = [sys.executable, str(PROGRAM), str(out), *words]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode or not out.exists():
            raise EmsError(f"profile {' '.join(profiles)}: {_reason(done.stderr)}")
        entries = read_json(out, list[AskedJob])
    log.info("%s jobs are planned", f"{len(entries):,}")
    return [job_of(entry) for entry in entries]


def _reason(words: str) -> str:
    """Return why Snakemake stopped, of all that it said."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [at for at, line in enumerate(lines) if re.match(r"\w*(Error|Exception)\b", line)]
    found = lines[errors[0] :] if errors else lines[-1:]
    return " ".join(found)[:500] or "Snakemake could not plan the jobs and did not say why"


def job_of(entry: AskedJob) -> Job:
    """Return the job of an entry that rules/ask.py wrote."""
    rules = Counter(part.rule for part in entry.parts)
    logs = [Path(path) for part in entry.parts for path in part.log]
    costs = tuple(sorted(path for path in logs if path.suffix == ".json"))
    request = None if entry.local else request_of(entry.resources, entry.threads)
    return Job(tuple(sorted(rules.items())), costs, request)


def request_of(resources: Json, threads: int) -> Request:
    """Return what a job with these resources asks Slurm for."""
    nodes = resources.get("nodes") or 1
    gpus, gpu_type = _gpus(resources, nodes)
    tasks = _tasks(resources, nodes, gpus)
    if gpus and not resources.get("cpus_per_task") and resources.get("cpus_per_gpu"):
        cpus = gpus * resources["cpus_per_gpu"]
    else:
        cpus = tasks * (resources.get("cpus_per_task") or threads)
    memory = resources.get("mem_mb")
    if per_cpu := resources.get("mem_mb_per_cpu"):
        memory = per_cpu * cpus // nodes
    others = (f"{name}={resources[name]}" for name in OTHERS if resources.get(name))
    partition = str(resources.get("slurm_partition") or "")
    minutes = resources.get("runtime")
    return Request(partition, nodes, gpus, gpu_type, cpus, minutes, memory, tuple(others))


def _gpus(resources: Json, nodes: int) -> tuple[int, str]:
    """Return the GPUs of a job and their type: `gpu` counts those of the job, `gres` of a node."""
    model, count = str(resources.get("gpu_model") or ""), resources.get("gpu") or 0
    if model or count:
        return int(count or 1), model
    if match := GPU.fullmatch(str(resources.get("gres") or "")):
        return nodes * int(match["count"] or 1), match["type"] or ""
    return 0, ""


def _tasks(resources: Json, nodes: int, gpus: int) -> int:
    """Return the tasks of a job, each of which has CPUs of its own."""
    tasks = resources.get("tasks")
    if resources.get("mpi"):
        return tasks or nodes * (resources.get("tasks_per_node") or 1)
    if not gpus:
        return tasks or 1
    each = resources.get("tasks_per_gpu")
    each = tasks if each is None else each
    return gpus * each if each else 1
