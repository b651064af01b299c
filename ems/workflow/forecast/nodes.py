"""Which requests no node of this cluster can hold.

Slurm takes some of them all the same, and such a job waits in the queue until somebody looks.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from ems.base.errors import EmsError
from ems.base.progress import clock
from ems.workflow.forecast.requests import Request

SECONDS = 30  # that Slurm has to answer
# A line for all nodes that are alike, by -e: partition, how many, CPUs, memory in MB, generic
# resources, time limit (https://slurm.schedmd.com/sinfo.html).
COMMAND = ("sinfo", "-h", "-e", "-o", "%P|%D|%c|%m|%G|%l")
GPUS = re.compile(r"\bgpu:(?:([^:,(]+):)?(\d+)")  # gpu:2, gpu:a100:4(S:0-1)
TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")  # 2-00:00:00, 12:00:00, 30:00


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

    def holds(self, asked: Request) -> bool:
        """Return whether one of these has what a job asks of each of its nodes."""
        return (
            self.cpus >= ceil(asked.cpus / asked.nodes)
            and self.memory_mb >= (asked.memory_mb or 0)
            and self.of_type(asked) >= ceil(asked.gpus / asked.nodes)
        )

    def of_type(self, asked: Request) -> int:
        """Return how many GPUs of the type that a job asks for each of these has."""
        return self.gpus[asked.gpu_type] if asked.gpu_type else self.gpus.total()


def nodes_here() -> list[Nodes]:
    """Return the nodes of this cluster; none without Slurm. Raises `EmsError` if Slurm, which is
    here, does not say what nodes it has.
    """
    if shutil.which(COMMAND[0]) is None:
        return []
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=SECONDS, check=True)
        return [_nodes_of(line) for line in done.stdout.splitlines()]
    except subprocess.CalledProcessError as error:
        raise EmsError((error.stderr.strip() or str(error)).splitlines()[-1]) from error
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise EmsError(str(error)) from error


def _nodes_of(line: str) -> Nodes:
    partition, count, cpus, memory, generic, limit = line.split("|")
    gpus: Counter[str] = Counter()
    for kind, number in GPUS.findall(generic):
        gpus[kind] += int(number)
    seconds = None
    if match := TIME.fullmatch(limit):
        days, hours, minutes, rest = (int(part or 0) for part in match.groups())
        seconds = ((24 * days + hours) * 60 + minutes) * 60 + rest
    name, default = partition.rstrip("*"), partition.endswith("*")
    return Nodes(name, default, int(count), int(cpus), int(memory), gpus, seconds)


def obstacles(asked: Request, nodes: list[Nodes]) -> Iterator[str]:
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
        yield f"{_wanted(asked)}; {where} has {fitting or 'none'} of them ({_most(asked, there)})"
    limits = [each.seconds for each in there if each.seconds is not None]
    if asked.minutes and len(limits) == len(there) and 60 * asked.minutes > (most := max(limits)):
        yield f"asks for {clock(60 * asked.minutes)}; {where} gives a job {clock(most)} at most"


def _wanted(asked: Request) -> str:
    of_node = _counted(ceil(asked.cpus / asked.nodes), "CPU")
    if asked.memory_mb:
        of_node += f", {asked.memory_mb:,} MB"
    if asked.gpus:
        of_node += f", {_counted(ceil(asked.gpus / asked.nodes), 'GPU')} {asked.gpu_type}".rstrip()
    return f"asks for {_counted(asked.nodes, 'node')} of {of_node}"


def _most(asked: Request, nodes: list[Nodes]) -> str:
    cpus, memory = max(each.cpus for each in nodes), max(each.memory_mb for each in nodes)
    gpus = max(each.of_type(asked) for each in nodes)
    most = f"a node has at most {_counted(cpus, 'CPU')}, {memory:,} MB"
    return f"{most}, {_counted(gpus, 'such GPU')}" if asked.gpus else most


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
