"""What a unit of work costs: CPU seconds by measurement, GPU seconds by arithmetic.

Notable choices:
- rates.tsv has a line per stage: a start of each job, and seconds per unit. It was fitted on runs
  of two cores of an AMD EPYC (perf/rates.py) and is therefore about a machine of its kind.
- A machine that has finished runs corrects it: the seconds that all their jobs of a stage took, by
  those that the line says. SHRINK seconds on both sides keep a run of a few seconds from deciding.
- No GPU was measured. A step there takes the time of its operations at a share of the peak, of the
  numbers that it moves through memory, and never less than it takes to launch its kernels.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.base.progress import Progress
from ems.config.load import load_experiment
from ems.config.site import Site
from ems.tables.logs import costs_of
from ems.workflow.forecast.work import Learning, Units, Workload
from ems.workflow.plan import has_job

JOB, OTHER = "job", "other"  # the start of a job, and what no line of the table names
SHRINK = 60.0  # CPU seconds
# the A100 (makers' data sheet) where the profile names no GPU that we know
GPU, BANDWIDTH = "A100", 1.5e12  # bytes/s
UTILISATION = 0.3  # of the peak: the goals are 25 % for small steps and 35 % for large ones
LAUNCH = 0.015  # seconds of a step: 1,100 to 1,400 operators of about 10 microseconds
START = 30.0  # seconds: PyTorch, CUDA, the shards
GATHERED, UPDATED = 24e9, 28e12  # bytes a unit: forward, backward; Adam's reads and writes


@dataclass(frozen=True)
class Estimate:
    """What a job is going to take: CPU seconds, and the seconds that its GPUs are busy."""

    cpu_seconds: float
    gpu_seconds: float = 0.0


@dataclass
class Rates:
    """CPU seconds per unit of work by (stage, unit), and this machine's ratio to them by stage."""

    table: dict[tuple[str, str], float]
    ratios: dict[str, float] = field(default_factory=dict)
    unpriced: set[str] = field(default_factory=set)

    def cpu_seconds(self, stage: str, units: Units) -> float:
        """Return the CPU seconds of a job, this machine's ratio included.

        What has no rate is taken for the start of a job alone, and remembered in `unpriced`.
        """
        seconds = self.table.get((stage, JOB), self.table[OTHER, JOB])
        for unit, amount in units.items():
            rate = self.table.get((stage, unit))
            if rate is None:
                self.unpriced.add(f"{stage}: {unit}")
            seconds += (rate or 0) * amount
        return seconds * self.ratios.get(stage, 1.0)

    def on_gpus(self, stage: str, units: Units, step: Learning, steps: int, gpu: "Gpu") -> Estimate:
        """Return what a training or a benchmark takes on `gpu`, its processes' CPUs included."""
        shared = units["teraflops"] * 1e12 / gpu.flops(step.half)
        shared += units.get("gathered", 0) * GATHERED / BANDWIDTH
        updated = units.get("updated", 0) * UPDATED / BANDWIDTH  # by each process, all of them
        busy = max(shared / gpu.count + updated, steps * LAUNCH)
        if stage == "train":
            seconds = START + busy
            return Estimate(seconds * gpu.count, seconds * gpu.count)
        rest = self.cpu_seconds(stage, {**units, "teraflops": 0})
        return Estimate(rest + busy, (rest + busy) * gpu.count)


@dataclass(frozen=True)
class Gpu:
    """The GPUs of a job; `model` is what the profile calls them, "" for nothing."""

    count: int
    model: str

    def flops(self, half: bool) -> float:
        """Return the FLOP/s that a training is expected to reach on each."""
        from ems.train.measures import peak_of

        peaks = [peak_of(name, each) for name in (self.name, GPU) for each in (half, False)]
        return UTILISATION * next(peak for peak in peaks if peak)

    @property
    def name(self) -> str:
        """Return its name as the makers write it, as far as Slurm's has it."""
        return self.model.upper().replace("_", " ")


def shipped_rates() -> Rates:
    """Return the rates that come with the program."""
    rows = shipped_rows()
    return Rates({(row["stage"], row["unit"]): float(row["cpu_seconds"]) for row in rows})


def shipped_rows() -> list[dict[str, str]]:
    """Return the lines of rates.tsv; `from` says whether it was fitted or where it was measured."""
    return read_table(Path(str(files("ems.workflow.forecast").joinpath("rates.tsv"))))


def measured_here(site: Site, without: Iterable[str] = ()) -> tuple[Rates, list[str]]:
    """Return the rates, corrected by all finished runs in results/ `without` some, and their names.

    A run whose experiment has gone, or has changed since in what can be seen, is left out.
    """
    rates, expected, taken, names = shipped_rates(), {}, {}, []
    folders = sorted(Path("results").glob("*/costs"))
    progress = Progress("costs of finished runs", len(folders), "experiments")
    for folder in folders:
        name = folder.parent.name
        progress.add(note=name)
        if name in without or not Path(f"configs/{name}.yaml").exists():
            continue
        try:
            experiment = load_experiment(name, site)
            costs = costs_of(folder)
        except EmsError:
            continue
        workload = Workload(experiment, Path(site.data))
        for job, cost in costs.items():
            if has_job(experiment, job) and not cost.gpu:
                stage, units = workload.of(job)
                seconds = rates.cpu_seconds(stage, units)
                expected[stage] = expected.get(stage, SHRINK) + seconds
                taken[stage] = taken.get(stage, SHRINK) + cost.cpu_seconds
        names.append(name)
    progress.close()
    rates.unpriced.clear()  # of other experiments
    rates.ratios = {stage: taken[stage] / expected[stage] for stage in expected}
    return rates, names
