"""`ems check --profile`: what an experiment asks a cluster for and costs, as tables for a terminal.

An estimate is never made of the costs of the run that it is about, so that a finished run shows how
far the estimate was off.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.progress import clock
from ems.config.experiment import Experiment
from ems.config.site import Site
from ems.tables.logs import Cost, costs_of
from ems.workflow.downloads import aligned
from ems.workflow.forecast.disk import Space, space
from ems.workflow.forecast.nodes import nodes_here, obstacles
from ems.workflow.forecast.rates import GPU, UTILISATION, Estimate, Gpu, Rates, measured_here
from ems.workflow.forecast.requests import Job, Request, planned_jobs
from ems.workflow.forecast.work import Workload

DEFAULT = "site's default"
HOUR, MANY = 3600, 20
BYTES_TRAINED, BASE_MB = 16, 600  # a weight with its gradient and Adam's moments; PyTorch itself
ASKS = ("stage", "jobs", "partition", "nodes", "GPUs", "GPU type", "CPUs", "time", "MB a node")
COSTS = ("stage", "jobs", "CPU time", "GPU time", "longest job", "measured", "estimate", "peak MB")


@dataclass
class Row:
    """All jobs of the same rules with the same request: estimates, and costs of finished ones."""

    rules: tuple[tuple[str, int], ...]
    request: Request | None
    jobs: int = 0
    estimates: list[Estimate] = field(default_factory=list)
    longest: float = 0.0  # seconds of a job
    compared: float = 0.0  # estimated CPU seconds of the jobs in `truth`
    truth: float = 0.0
    measured: int = 0
    elsewhere: int = 0  # jobs that ask for a GPU and ran on CPUs, or the other way round
    peak_mb: float = 0.0
    memory_mb: float = 0.0

    @property
    def name(self) -> str:
        """Return the rules, and how many of each share a job."""
        return " + ".join(rule if n == 1 else f"{n} {rule}" for rule, n in self.rules)

    @property
    def cpu_seconds(self) -> float:
        """Return the estimated CPU seconds of all jobs."""
        return sum(each.cpu_seconds for each in self.estimates)

    @property
    def gpu_seconds(self) -> float:
        """Return the estimated seconds of all GPUs."""
        return sum(each.gpu_seconds for each in self.estimates)


def forecast(experiment: Experiment, site: Site, profiles: list[str]) -> str:
    """Return the tables of what an experiment asks for and costs, with profiles of Snakemake."""
    jobs = planned_jobs(experiment.name, profiles)
    rates, names = measured_here(site, without=[experiment.name])
    workload = Workload(experiment, Path(site.data))
    rows = rows_of(jobs, workload, rates)
    spaces, fetched = space(workload, site)
    parts = [
        [f"{experiment.name}: what its jobs ask for, by the rules and {' '.join(profiles)}", ""],
        _asked(rows),
        ["", "What it will cost", ""],
        _costs(rows),
        ["", *_disk(spaces)],
        ["", *_totals(rows, spaces, fetched)],
        ["", *_notes(rows, workload, rates, names)],
    ]
    return "\n".join(line for lines in parts for line in lines) + "\n"


def rows_of(jobs: list[Job], workload: Workload, rates: Rates) -> list[Row]:
    """Return the jobs by rules and request, in the order of the plan, those of a cluster first."""
    folder = Path("results", workload.experiment.name, "costs")
    known, rows = costs_of(folder), {}
    for job in jobs:
        if job.request is None and not job.costs:
            continue  # tables, figures, reports: seconds each
        row = rows.setdefault((job.rules, job.request), Row(job.rules, job.request))
        row.jobs += 1
        seconds = 0.0
        for path in job.costs:
            parts = path.relative_to(folder).with_suffix("").parts
            each = _estimate(parts, job.request, workload, rates)
            row.estimates.append(each)
            seconds += _wall(parts, each, job.request)
            row.memory_mb = max(row.memory_mb, _memory(parts, workload))
            if parts in known:
                _compare(row, each, known[parts], job.request)
        row.longest = max(row.longest, seconds)
    return sorted(rows.values(), key=lambda row: (row.request is None, row.rules))


def _estimate(
    job: tuple[str, ...], request: Request | None, workload: Workload, rates: Rates
) -> Estimate:
    stage, units = workload.of(job)
    if request and request.gpus and "teraflops" in units:
        system = workload.experiment.systems[job[1]]
        steps = system.train.steps if stage == "train" else 0
        gpu = Gpu(request.gpus, request.gpu_type)
        return rates.on_gpus(stage, units, workload.learning(system), steps, gpu)
    return Estimate(rates.cpu_seconds(stage, units))


def _wall(job: tuple[str, ...], estimate: Estimate, request: Request | None) -> float:
    """Return the seconds of a job: a training alone keeps all of its CPUs busy."""
    if request and request.gpus:
        return estimate.gpu_seconds / request.gpus or estimate.cpu_seconds
    return estimate.cpu_seconds / (request.cpus if request and job[0] == "train" else 1)


def _memory(job: tuple[str, ...], workload: Workload) -> float:
    """Return the least memory of a training in MB; 0 of other jobs."""
    if job[0] != "train":
        return 0
    step = workload.learning(workload.experiment.systems[job[1]])
    return BASE_MB + BYTES_TRAINED * step.parameters


def _compare(row: Row, estimate: Estimate, cost: Cost, request: Request | None) -> None:
    row.measured += 1
    row.peak_mb = max(row.peak_mb, cost.max_rss_mb)
    if bool(cost.gpu) != bool(request and request.gpus):
        row.elsewhere += 1
        return
    row.truth += cost.cpu_seconds
    row.compared += estimate.cpu_seconds


def _asked(rows: list[Row]) -> list[str]:
    table = [ASKS]
    for row in rows:
        if (asked := row.request) is None:
            continue
        limit = DEFAULT if asked.minutes is None else clock(60 * asked.minutes)
        memory = DEFAULT if asked.memory_mb is None else f"{asked.memory_mb:,}"
        kind = (asked.gpu_type or DEFAULT) if asked.gpus else "-"
        place = asked.partition or DEFAULT
        counts = (f"{asked.nodes}", f"{asked.gpus}", kind, f"{asked.cpus}", limit, memory)
        table.append((row.name, f"{row.jobs:,}", place, *counts))
    return aligned(table, "lrlrrlrrr")


def _costs(rows: list[Row]) -> list[str]:
    table = [COSTS]
    for row in rows:
        here = "" if row.request else ", beside Snakemake"
        table.append((f"{row.name}{here}", f"{row.jobs:,}", *_amounts([row]), _peak(row)))
    table.append(("total", f"{sum(row.jobs for row in rows):,}", *_amounts(rows), ""))
    return aligned(table, "lrrrrrrr")


def _amounts(rows: list[Row]) -> tuple[str, ...]:
    truth = sum(row.truth for row in rows)
    compared = sum(row.compared for row in rows)
    return (
        _hours(sum(row.cpu_seconds for row in rows)),
        _hours(sum(row.gpu_seconds for row in rows)),
        clock(max(row.longest for row in rows)) if len(rows) == 1 else "",
        _hours(truth),
        f"{100 * compared / truth:.0f} %" if truth else "-",
    )


def _peak(row: Row) -> str:
    return f"{row.peak_mb:,.0f}" if row.measured else "-"


def _hours(seconds: float) -> str:
    """Return a sum of seconds as hours, or as `h:mm:ss` if they are few."""
    if not seconds:
        return "-"
    if seconds >= MANY * HOUR:
        return f"{seconds / HOUR:,.0f} h"
    return clock(seconds) if seconds >= HOUR else f"0:{clock(seconds):0>5}"


def _disk(spaces: list[Space]) -> list[str]:
    rows = [("on disk", "GB", "measured")]
    for each in spaces:
        there = "-" if each.measured is None else _gigabytes(each.measured)
        rows.append((each.what, _gigabytes(each.estimate), there))
    return aligned(rows, "lrr")


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.3g}" if size < 1e11 else f"{size / 1e9:,.0f}"


def _totals(rows: list[Row], spaces: list[Space], fetched: float) -> Iterator[str]:
    submitted = sum(row.jobs for row in rows if row.request)
    cpu, gpu = (_hours(sum(getattr(row, f"{k}_seconds") for row in rows)) for k in ("cpu", "gpu"))
    size = _gigabytes(sum(each.estimate for each in spaces))
    yield (
        f"In all: {submitted:,} jobs of the cluster, CPU time {cpu}, GPU time {gpu}, "
        f"{_gigabytes(fetched)} GB from the network, {size} GB on disk"
    )
    stages: dict[str, float] = {}
    for row in rows:
        stage = row.rules[0][0]
        stages[stage] = max(stages.get(stage, 0), row.longest)
    chain = clock(sum(stages.values()))
    yield f"The longest job of each stage, one after another: {chain}, if none waits in the queue"


def _notes(rows: list[Row], workload: Workload, rates: Rates, names: list[str]) -> Iterator[str]:
    """Yield warnings, then what the numbers are and are not."""
    for row in rows:
        yield from _warnings(row)
    yield from _obstacles(rows)
    by = f", corrected by the finished runs here: {', '.join(names)}" if names else ""
    yield f"CPU time: rates measured on two cores of an AMD EPYC{by}"
    if names:
        yield "The estimate of a run uses none of its own costs; `measured` is CPU time"
    if any(row.gpu_seconds for row in rows):
        yield (
            f"GPU time is arithmetic, no measurement: {100 * UTILISATION:.0f} % of the peak of "
            f"the GPU type, of an {GPU} where none is named or known"
        )
    if count := sum(row.elsewhere for row in rows):
        yield f"{count} jobs ran on CPUs and ask for a GPU, or the other way round: not compared"
    if workload.unknown:
        corpora = ", ".join(sorted(workload.unknown))
        yield f"Of unknown size, so neither their work nor their space counts: {corpora}"
    if rates.unpriced:
        unpriced = ", ".join(sorted(rates.unpriced))
        yield f"Without a rate, so only the start of a job counts: {unpriced}"
    yield "Not counted: tables, figures and reports, Snakemake itself, and jobs that run again"
    for row in rows:
        if row.request and row.request.others:
            yield f"{row.name}: also {', '.join(row.request.others)}"


def _warnings(row: Row) -> Iterator[str]:
    if (asked := row.request) is None:
        return
    if asked.minutes is not None and row.longest > (limit := 60 * asked.minutes):
        trained = {("train", 1), ("train_on_nodes", 1)} & set(row.rules)
        again = f"; it goes on in the next job, {ceil(row.longest / max(limit, 60))} in all"
        yield (
            f"WARNING: {row.name}: about {clock(row.longest)} are needed, the time limit is "
            f"{clock(limit)}{again if trained else ''}"
        )
    needed = max(row.peak_mb, row.memory_mb)
    if asked.memory_mb is not None and needed > asked.memory_mb:
        yield f"WARNING: {row.name}: {needed:,.0f} MB are needed, {asked.memory_mb:,} are asked for"


def _obstacles(rows: list[Row]) -> Iterator[str]:
    """Yield which jobs can start on no node of this cluster, where there is one."""
    try:
        nodes = nodes_here()
    except EmsError as error:
        yield f"Whether a node has what jobs ask for is not known: Slurm's sinfo says: {error}"
        return
    for row in rows:
        if nodes and row.request:
            yield from (f"WARNING: {row.name}: {line}" for line in obstacles(row.request, nodes))
