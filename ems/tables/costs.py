"""What an experiment cost: jobs, time and memory of each stage, from costs/**/*.json.

A row is a stage, or a system of a stage where systems are compared: "train ems", "bench ems". Jobs
run side by side, so a run may take less than the total. Costs stay on disk when a corpus or a
system leaves the experiment; a note sums them up.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ems.base.errors import Damaged, EmsError
from ems.base.files import read_json
from ems.base.schema import Amount, Record, Text
from ems.tables.table import Table, Value, write_table

STAGES = (
    *("demo-mirror", "fetch", "fetch-documents", "fetch-evalset", "wikipedia", "evalkeys"),
    *("clean", "report", "segment", "multiway", "sample", "vocabulary", "shards", "mine"),
    *("train", "fit", "bench"),
)  # in the order of the pipeline
BY_SYSTEM = ("mine", "train", "fit", "bench")  # their paths are costs/<stage>/<system>...


class JobCosts(Record):
    """The costs of a job, as its command wrote them."""

    stage: Text
    seconds: Amount
    cpu_seconds: Amount
    max_rss_mb: Amount
    gpu: Text = ""


@dataclass(frozen=True)
class Cost:
    """One job, by its path: wall and CPU seconds, the most memory it held in MB; `system` and `gpu`
    may be "".
    """

    job: tuple[str, ...]
    stage: str
    system: str
    seconds: float
    cpu_seconds: float
    max_rss_mb: float
    gpu: str = ""

    @property
    def place(self) -> tuple[int, str, str]:
        """Return the pipeline's stages in its order, unknown ones after them by the alphabet."""
        place = STAGES.index(self.stage) if self.stage in STAGES else len(STAGES)
        return place, self.stage, self.system


def write_costs_table(
    folder: Path, out: Path, planned: Callable[[tuple[str, ...]], bool] = lambda job: True
) -> None:
    """Write the costs of the jobs under `folder` (results/<experiment>/costs) as .tex, .md and
    .csv beside `out`.

    `planned` says whether the experiment still has a job, by its path ("train", "ems") in the
    folder. Raises `EmsError` when no job is left or one is malformed.
    """
    every = costs_of(folder).values()
    if not every:
        raise EmsError(f"{folder}: no costs (*.json) there; run the experiment's stages first")
    costs = sorted((cost for cost in every if planned(cost.job)), key=lambda cost: cost.place)
    if not costs:
        raise EmsError(f"{folder}: all costs in it are of jobs that the experiment no longer has")
    stages = groupby(costs, key=lambda cost: f"{cost.stage} {cost.system}".strip())
    rows = [[name, *_summary(jobs)] for name, jobs in stages]
    total = ["Total", *_summary(costs)]
    total[3] = None  # the longest job of all says nothing
    others = [cost.seconds for cost in every if not planned(cost.job)]
    notes = [
        "Seconds are wall time, added up over the jobs of a stage; jobs may run side by side. CPU "
        "seconds count all cores. Peak MB: the resident memory of the largest job. Of a job that "
        "was killed and run again, only the last run counts."
    ]
    if others:
        notes.append(
            f"Not counted: {len(others):,} jobs ({sum(others):,.1f} seconds) that the experiment "
            "had once and has no longer."
        )
    columns = ["Stage", "Jobs", "Seconds", "Longest job", "CPU seconds", "Peak MB"]
    write_table(Table(columns, [*rows, total], rules={len(rows)}, notes=notes), out)


def costs_of(folder: Path) -> dict[tuple[str, ...], Cost]:
    """Return the costs of the jobs under results/<experiment>/costs, by their paths in it.

    For a job that was killed Snakemake leaves an empty file.
    """
    paths = [path for path in sorted(folder.rglob("*.json")) if path.stat().st_size]
    named = {path.relative_to(folder).with_suffix("").parts: path for path in paths}
    return {job: _read_cost(path, job) for job, path in named.items()}


def _read_cost(path: Path, parts: tuple[str, ...]) -> Cost:
    """Return the costs of one job; `parts` are the names on the way to it, ("train", "ems")."""
    data = read_json(path, JobCosts)
    stage = data.stage
    if stage in BY_SYSTEM and len(parts) < 2:
        expected = f"expected the costs of {stage} in a file {stage}/<system>"
        raise Damaged(path, f"{expected}, found {path.name}")
    system = parts[1] if stage in BY_SYSTEM else ""
    seconds, memory = float(data.seconds), float(data.max_rss_mb)
    return Cost(parts, stage, system, seconds, float(data.cpu_seconds), memory, data.gpu)


def _summary(jobs: Iterable[Cost]) -> list[Value]:
    """Return jobs, their seconds, the longest, CPU seconds, and the largest memory in MB."""
    jobs = list(jobs)
    seconds, cpu, memory = zip(
        *((j.seconds, j.cpu_seconds, j.max_rss_mb) for j in jobs), strict=True
    )
    return [len(jobs), sum(seconds), max(seconds), sum(cpu), round(max(memory))]
