"""Fit ems/workflow/rates.tsv, the CPU seconds per unit of work, on finished runs.

    python perf/rates.py [--without EXPERIMENT ...] [--starts] [--out rates.tsv]
        PROJECT:EXPERIMENT ...

Each PROJECT is a folder with results/EXPERIMENT/costs. A stage gets a least-squares line without
negative rates, which weights each job by the inverse of its seconds, so that a stage's sum hardly
changes. The program prints the error of the fit, on the fitted runs and on the runs `--without`.
With `--starts` it keeps the shipped seconds per unit and fits only the start of a job, since small
runs show nothing else.
"""

import argparse
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from ems.base.files import write_text
from ems.config.load import load_experiment, load_site
from ems.tables.logs import costs_of
from ems.workflow.forecast import JOB, OTHER, Rates, shipped_rates, shipped_rows
from ems.workflow.plan import has_job
from ems.workflow.work import Units, Workload

RUNS = "runs"  # source of a rate
SHORTEST = 0.5  # CPU seconds; shorter jobs get the same weight
Jobs = dict[str, list[tuple[Units, float]]]  # per stage


def jobs_of(project: Path, name: str) -> Jobs:
    """Return the units of work and the CPU seconds of each finished job of a run."""
    here = Path.cwd()
    os.chdir(project)  # an experiment may name folders relative to its project
    try:
        site = load_site(Path("config.yaml"), {"experiment": name})
        experiment = load_experiment(name, site, Path("configs"))
        workload, jobs = Workload(experiment, Path(site.data)), defaultdict(list)
        for job, cost in costs_of(Path("results", name, "costs")).items():
            if has_job(experiment, job) and not cost.gpu:
                stage, units = workload.units_of(job)
                jobs[stage].append((units, cost.cpu_seconds))
        return jobs
    finally:
        os.chdir(here)


def fitted(jobs: list[tuple[Units, float]], known: Units | None = None) -> Units:
    """Return the start of a job and the seconds per unit; only the start if these are `known`."""
    names = sorted({name for units, _ in jobs for name in units}) if known is None else []
    work = np.array([[1, *(units.get(name, 0) for name in names)] for units, _ in jobs])
    seconds = np.array([each for _, each in jobs])
    weights = 1 / np.sqrt(np.maximum(seconds, SHORTEST))
    scale = np.maximum(work.max(axis=0), 1e-12)
    known = known or {}
    rest = [sum(known.get(name, 0) * units[name] for name in units) for units, _ in jobs]
    rates, _ = nnls(work / scale * weights[:, None], (seconds - rest) * weights)
    return known | dict(zip([JOB, *names], (rates / scale).tolist(), strict=True))


def write_rates(out: Path, table: dict[tuple[str, str], float], keep: bool) -> None:
    """Write the rates; keep shipped rates with another source, and with `keep` also the rates of
    stages that no run had.
    """
    rows = {key: (f"{rate:.3g}", RUNS) for key, rate in table.items()}
    for row in shipped_rows():
        if row["from"] != RUNS or (keep and (row["stage"], row["unit"]) not in rows):
            rows[row["stage"], row["unit"]] = row["cpu_seconds"], row["from"]
    lines = ["\t".join([*key, *rate]) for key, rate in sorted(rows.items())]
    write_text(out, "\n".join(["stage\tunit\tcpu_seconds\tfrom", *lines, ""]))


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+", metavar="PROJECT:EXPERIMENT")
    parser.add_argument("--without", action="append", default=[], metavar="EXPERIMENT")
    parser.add_argument("--starts", action="store_true", help="fit only the start of a job")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    runs = {name: Path(place) for place, _, name in (run.rpartition(":") for run in options.runs)}
    every = {name: jobs_of(place, name) for name, place in runs.items()}
    pooled: Jobs = defaultdict(list)
    for name in every.keys() - set(options.without):
        for stage, jobs in every[name].items():
            pooled[stage] += jobs
    known: dict[str, Units] = defaultdict(dict)
    for (stage, unit), rate in shipped_rates().table.items():
        known[stage][unit] = rate
    table = {
        (stage, unit): rate
        for stage in sorted(pooled)
        for unit, rate in fitted(pooled[stage], known[stage] if options.starts else None).items()
    }
    if options.out:
        write_rates(options.out, table, options.starts)
    off = {}
    for name, stages in every.items():
        rates, total, expected = Rates({(OTHER, JOB): 0, **table}), 0.0, 0.0
        for stage, jobs in sorted(stages.items()):
            truth = sum(seconds for _, seconds in jobs)
            line = sum(rates.cpu_seconds(stage, units) for units, _ in jobs)
            total, expected = total + truth, expected + line
            print(f"{name} {stage}: {len(jobs)} jobs, {truth:.1f} s, fit {line:.1f}")
        off[name] = 100 * (expected / total - 1)
        print(f"{name}: {total:.1f} s, fit {expected:.1f} ({off[name]:+.0f} %)")
    worst = max(map(abs, off.values()))
    print(f"rates={len(table)} runs={len(every)} off_percent={worst:.1f}")


if __name__ == "__main__":
    main()
