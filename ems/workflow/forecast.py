"""`ems check --profile`: what an experiment requests from a cluster, and its estimated costs.

rates.tsv has the CPU seconds of the start of a job and of a unit of work, fitted on two cores of an
AMD EPYC (perf/rates.py). Other finished runs on this machine correct them. GPU time is not
measured: a step takes the time of its operations at a share of the peak, plus the time to move its
numbers through memory, and at least the time to launch its kernels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.base.progress import Progress, clock
from ems.base.templates import rendered
from ems.config.experiment import Experiment
from ems.config.file import Site
from ems.config.load import load_experiment
from ems.tables.logs import costs_of
from ems.workflow.plan import has_job
from ems.workflow.requests import JobRequest, PlannedJob, nodes_here, obstacles, planned_jobs
from ems.workflow.work import Learning, Units, Workload

JOB, OTHER = "job", "other"  # unit: the start of a job; stage: any without its own line
SHRINK = 60.0  # CPU seconds added to both sides of a ratio, so that short runs weigh little
# of an A100 (data sheet), if the profile names no known GPU
DEFAULT_GPU, BANDWIDTH = "A100", 1.5e12  # bytes/s
UTILISATION = 0.3  # of the peak: the goals are 25 % for small steps and 35 % for large ones
LAUNCH = 0.015  # seconds of a step: 1,100 to 1,400 operators of about 10 microseconds
TRAINING_START = 30.0  # seconds: PyTorch, CUDA, the shards
GATHERED, UPDATED = 24e9, 28e12  # bytes a unit: forward, backward; Adam's reads and writes
BYTES_TRAINED, BASE_MB = 16, 600  # a weight with its gradient and Adam's moments; PyTorch itself


@dataclass
class Rates:
    """CPU seconds per unit of work by (stage, unit), and correction factors by stage."""

    table: dict[tuple[str, str], float]
    ratios: dict[str, float] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def cpu_seconds(self, stage: str, units: Units) -> float:
        """Return the corrected CPU seconds of a job; units without a rate go to `unknown`."""
        seconds = self.table.get((stage, JOB), self.table[OTHER, JOB])
        for unit, amount in units.items():
            rate = self.table.get((stage, unit))
            if rate is None:
                self.unknown.add(f"{stage}: {unit}")
            seconds += (rate or 0) * amount
        return seconds * self.ratios.get(stage, 1.0)

    def on_gpus(
        self, stage: str, units: Units, step: Learning, steps: int, gpus: int, gpu_type: str
    ) -> tuple[float, float]:
        """Return (CPU seconds of all processes, busy seconds of each GPU)."""
        shared = units["teraflops"] * 1e12 / gpu_flops(gpu_type, step.half)
        shared += units.get("gathered", 0) * GATHERED / BANDWIDTH
        updated = units.get("updated", 0) * UPDATED / BANDWIDTH  # in each process
        busy = max(shared / gpus + updated, steps * LAUNCH)
        if stage == "train":
            return (TRAINING_START + busy) * gpus, TRAINING_START + busy
        busy += self.cpu_seconds(stage, {**units, "teraflops": 0})
        return busy, busy


def gpu_flops(gpu_type: str, half: bool) -> float:
    """Return the FLOP/s expected in training on a GPU with this type in Slurm."""
    from ems.train.measures import peak_of

    names = (gpu_type.upper().replace("_", " "), DEFAULT_GPU)  # as in data sheets
    peaks = (peak_of(name, precision) for name in names for precision in (half, False))
    return UTILISATION * next(filter(None, peaks))


def shipped_rows() -> list[dict[str, str]]:
    """Return the lines of rates.tsv; `from` is "fit" or the place of the measurement."""
    return read_table(Path(__file__).with_name("rates.tsv"))


def shipped_rates() -> Rates:
    return Rates({(r["stage"], r["unit"]): float(r["cpu_seconds"]) for r in shipped_rows()})


def corrected_rates(site: Site, excluded: Iterable[str] = ()) -> tuple[Rates, list[str]]:
    """Return (rates, run names): rates corrected by finished runs that load, except `excluded`."""
    rates, expected, taken, names = shipped_rates(), Counter(), Counter(), []
    folders = sorted(Path("results").glob("*/costs"))
    progress = Progress("costs of finished runs", len(folders), "experiments")
    for folder in folders:
        name = folder.parent.name
        progress.add(note=name)
        if name in excluded or not Path(f"configs/{name}.yaml").exists():
            continue
        try:
            experiment = load_experiment(name, site)
            costs = costs_of(folder)
        except EmsError:
            continue
        workload = Workload(experiment, Path(site.data))
        for job, cost in costs.items():
            if has_job(experiment, job) and not cost.gpu:
                stage, units = workload.units_of(job)
                expected[stage] += rates.cpu_seconds(stage, units)
                taken[stage] += cost.cpu_seconds
        names.append(name)
    progress.close()
    rates.unknown.clear()  # they belong to other experiments
    rates.ratios = {name: (SHRINK + taken[name]) / (SHRINK + expected[name]) for name in expected}
    return rates, names


@dataclass
class JobGroup:
    """All jobs of the same rules with the same request, and the sums of their estimates."""

    rules: tuple[tuple[str, int], ...]
    request: JobRequest | None
    jobs: int = 0
    cpu_seconds: float = 0.0
    gpu_seconds: float = 0.0
    longest: float = 0.0  # seconds of a job
    memory_mb: float = 0.0  # least of a training, or peak of a finished job; 0: unknown

    @property
    def name(self) -> str:
        """The rules of a job, with their number if above 1."""
        return " + ".join(rule if n == 1 else f"{n} {rule}" for rule, n in self.rules)

    def add(self, job: tuple[str, ...], workload: Workload, rates: Rates) -> float:
        """Add the estimate of a job, and return its seconds; only a training uses all its CPUs."""
        request, (stage, units) = self.request, workload.units_of(job)
        trains, gpus = stage == "train", request.gpus if request and "teraflops" in units else 0
        if trains or gpus:
            system = workload.experiment.systems[job[1]]
            step = workload.learning(system)
        if trains:
            self.memory_mb = max(self.memory_mb, BASE_MB + BYTES_TRAINED * step.parameters)
        if gpus:
            steps = system.train.steps if trains else 0
            cpu, busy = rates.on_gpus(stage, units, step, steps, gpus, request.gpu_type)
            self.gpu_seconds += busy * gpus
        else:
            cpu = rates.cpu_seconds(stage, units)
            busy = cpu / (request.cpus if request and trains else 1)
        self.cpu_seconds += cpu
        return busy


def forecast(experiment: Experiment, site: Site, profiles: list[str]) -> str:
    """Return tables of the requests and the needs of an experiment with profiles of Snakemake."""
    jobs = planned_jobs(experiment.name, profiles)
    rates, names = corrected_rates(site, excluded=[experiment.name])
    workload = Workload(experiment, Path(site.data))
    rows = grouped(jobs, workload, rates)
    longest: Counter[str] = Counter()  # seconds of the longest job of a stage
    for row in rows:
        longest[row.rules[0][0]] = max(longest[row.rules[0][0]], row.longest)
    return rendered(
        Path(__file__).with_name("forecast.txt.jinja"),
        name=experiment.name,
        profiles=profiles,
        rows=rows,
        hours=_hours,
        clock=clock,
        fetched=_gigabytes(workload.fetched()),
        on_disk=_gigabytes(workload.on_disk(site.embeddings_mb)),
        chain=clock(sum(longest.values())),
        warnings=list(_warnings(rows)),
        finished=names,
        share=f"{100 * UTILISATION:.0f}",
        gpu=DEFAULT_GPU,
        unsized=sorted(workload.unknown),
        unrated=sorted(rates.unknown),
    )


def grouped(jobs: list[PlannedJob], workload: Workload, rates: Rates) -> list[JobGroup]:
    """Group jobs by rules and request, jobs of the cluster first."""
    folder = Path("results", workload.experiment.name, "costs")
    finished, rows = costs_of(folder), {}
    for job in jobs:
        rules, request = tuple(job.rules.items()), job.request
        if request is None and not job.costs:
            continue  # tables, figures, reports: seconds each
        row = rows.setdefault((rules, request), JobGroup(rules, request))
        names = [Path(path).relative_to(folder).with_suffix("").parts for path in job.costs]
        row.jobs += 1
        row.longest = max(row.longest, sum(row.add(name, workload, rates) for name in names))
        peaks = [finished[name].max_rss_mb for name in names if name in finished]
        row.memory_mb = max([row.memory_mb, *peaks])
    return sorted(rows.values(), key=lambda row: (row.request is None, row.rules))


def _hours(seconds: float) -> str:
    """Format seconds as hours, below 20 hours as `h:mm:ss`."""
    if not seconds:
        return "-"
    if seconds >= 20 * 3600:
        return f"{seconds / 3600:,.0f} h"
    return clock(seconds) if seconds >= 3600 else f"0:{clock(seconds):0>5}"


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.3g}" if size < 1e11 else f"{size / 1e9:,.0f}"


def _warnings(rows: list[JobGroup]) -> Iterator[str]:
    """Yield warnings: a job needs more than it requests, or no node has what it requests."""
    asking = [(row, row.request) for row in rows if row.request]
    for row, request in asking:
        if request.minutes is not None and row.longest > (limit := 60 * request.minutes):
            needed, again = f"needs about {clock(row.longest)}, the time limit is", ""
            if {("train", 1), ("train_on_nodes", 1)} & set(row.rules):
                again = f"; it continues in {ceil(row.longest / max(limit, 60))} jobs"
            yield f"WARNING: {row.name}: {needed} {clock(limit)}{again}"
        if request.memory_mb is not None and row.memory_mb > request.memory_mb:
            needed = f"needs {row.memory_mb:,.0f} MB"
            yield f"WARNING: {row.name}: {needed}, requests {request.memory_mb:,}"
    try:
        nodes = nodes_here()
    except EmsError as error:
        yield f"Requests were not compared with the nodes; Slurm's sinfo says: {error}"
        return
    for row, request in asking if nodes else ():
        yield from (f"WARNING: {row.name}: {line}" for line in obstacles(request, nodes))
