"""What an experiment cost: jobs, time and memory of each stage, from costs/**/*.json.

Notable choices:
- one row per stage, but one per system where systems are compared: "train ems", "bench ems";
- seconds are added up over jobs; jobs run side by side, so a run may take less than the total;
- costs stay when a corpus or a system leaves the experiment; they are told in a note, not counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import read_json
from ems.shapes import AMOUNT, TEXT, record
from ems.tables.table import Block, Table, Value, make_frame
from ems.tables.write import write_table

STAGES = (
    *("demo-mirror", "fetch", "fetch-documents", "fetch-evalset", "evalkeys", "clean", "report"),
    *("segment", "sample", "vocabulary", "shards", "train", "bench"),
)  # in the order of the pipeline
BY_SYSTEM = ("train", "bench")  # their paths are costs/<stage>/<system>...
COSTS = record({"stage": TEXT, **dict.fromkeys(("seconds", "cpu_seconds", "max_rss_mb"), AMOUNT)})
COLUMNS = ["Jobs", "Seconds", "Longest job", "CPU seconds", "Peak MB"]


@dataclass(frozen=True)
class Cost:
    """One job, by its path: wall and CPU seconds, the most memory it held, in MB; `system` may be
    "".
    """

    job: tuple[str, ...]
    stage: str
    system: str
    seconds: float
    cpu_seconds: float
    max_rss_mb: float

    @property
    def name(self) -> str:
        return f"{self.stage} {self.system}".strip()


def write_costs_table(
    folder: Path, out: Path, planned: Callable[[tuple[str, ...]], bool] = lambda job: True
) -> None:
    """Write the costs of the jobs under `folder` (results/<experiment>/costs) as .tex, .md and
    .csv beside `out`.

    `planned` says whether the experiment still has a job, by its path ("train", "ems") in the
    folder. Raises `EmsError` when no job is left or one is malformed.
    """
    every = read_costs(folder)
    costs = sorted((cost for cost in every if planned(cost.job)), key=_place)
    if not costs:
        raise EmsError(f"{folder}: all costs in it are of jobs that the experiment no longer has")
    rows: list[list[Value]] = []
    for name, jobs in groupby(costs, key=lambda cost: cost.name):
        rows.append([name, *_summary(list(jobs))])
    total = _summary(costs)
    total[COLUMNS.index("Longest job")] = None
    table = Table(
        frame=make_frame(["Stage", *COLUMNS], [*rows, ["Total", *total]]),
        blocks=[Block(COLUMNS)],
        rules={len(rows)},
        notes=[
            "Seconds are wall time, added up over the jobs of a stage; jobs may run side by side. "
            "CPU seconds count all cores. Peak MB: the resident memory of the largest job. "
            "Of a job that was killed and run again, only the last run counts.",
            *_note_of_others([cost for cost in every if not planned(cost.job)]),
        ],
    )
    write_table(table, out)


def _note_of_others(others: list[Cost]) -> list[str]:
    if not others:
        return []
    seconds = sum(cost.seconds for cost in others)
    return [
        f"Not counted: {len(others):,} jobs ({seconds:,.1f} seconds) that the experiment had once "
        "and has no longer."
    ]


def read_costs(folder: Path) -> list[Cost]:
    """The costs of all jobs, in the order of their paths."""
    paths = sorted(Path(folder).rglob("*.json"))
    if not paths:
        raise EmsError(f"{folder}: no costs (*.json) there; run the experiment's stages first")
    return [_read_one(path, path.relative_to(folder).with_suffix("").parts) for path in paths]


def _read_one(path: Path, parts: tuple[str, ...]) -> Cost:
    """`parts`: the names on the way to the file, ("train", "ems") or ("bench", "ems", "ntrex")."""
    data = read_json(path, COSTS)
    stage = data["stage"]
    if stage in BY_SYSTEM and len(parts) < 2:
        expected = f"expected the costs of {stage} in a file {stage}/<system>"
        raise Damaged(path, f"{expected}, found {path.name}")
    return Cost(
        job=parts,
        stage=stage,
        system=parts[1] if stage in BY_SYSTEM else "",
        seconds=float(data["seconds"]),
        cpu_seconds=float(data["cpu_seconds"]),
        max_rss_mb=float(data["max_rss_mb"]),
    )


def _place(cost: Cost) -> tuple[int, str, str]:
    """The pipeline's stages in its order, unknown ones after them by the alphabet."""
    place = STAGES.index(cost.stage) if cost.stage in STAGES else len(STAGES)
    return place, cost.stage, cost.system


def _summary(jobs: list[Cost]) -> list[Value]:
    """The cells under `COLUMNS`."""
    seconds = [job.seconds for job in jobs]
    cpu = sum(job.cpu_seconds for job in jobs)
    peak = max(job.max_rss_mb for job in jobs)
    return [len(jobs), sum(seconds), max(seconds), cpu, round(peak)]
