"""`ems check --profile`: the jobs that Snakemake would submit, and an estimate of their cost."""

import contextlib
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml
from conftest import ROOT, copied
from made.slurm import entries, typed
from made.tables import write_cost

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.base.records import fitting
from ems.commands.cli import main
from ems.config.load import load_experiment, load_site
from ems.workflow.forecast import (
    SHRINK,
    TRAINING_START,
    corrected_rates,
    forecast,
    gpu_flops,
    shipped_rates,
    shipped_rows,
)
from ems.workflow.requests import PlannedJob, nodes_here, obstacles, planned_jobs, request_of
from ems.workflow.work import Learning, Workload

SITE = {  # a cluster's own names
    "default-resources": {"slurm_partition": "cpus", "slurm_account": "lab"},
    "set-resources": {
        "train": {"slurm_partition": "gpus", "gpu_model": "a100", "mem_mb": 12000, "gpu": 2},
        "bench": {"slurm_partition": "gpus", "gres": "gpu:v100:1", "runtime": 45},
        "vocabulary": {"mem_mb_per_cpu": 3000, "cpus_per_task": 4},
    },
    "group-components": ["text=2"],
}
pytestmark = pytest.mark.slow


@pytest.fixture
def here(tiny_run, tmp_path, monkeypatch):
    """A copy of the finished tiny project as the current folder, with a profile `site`."""
    project = copied(tiny_run, tmp_path / "project")
    (project.folder / "site.yaml").write_text(yaml.safe_dump(SITE))
    monkeypatch.chdir(project.folder)
    return project


def settings(name="tiny"):
    site = load_site(Path("config.yaml"), {"experiment": name})
    return load_experiment(name, site), site


@pytest.fixture(scope="module")
def jobs(tiny_run, tmp_path_factory):
    """The jobs of `tiny` with the profile `slurm`; Snakemake takes seconds to plan them."""
    project = copied(tiny_run, tmp_path_factory.mktemp("jobs") / "project")
    with contextlib.chdir(project.folder):
        return planned_jobs("tiny", ["slurm"])


@pytest.fixture
def estimate(here, jobs, monkeypatch):
    monkeypatch.setattr("ems.workflow.forecast.planned_jobs", lambda *_: jobs)
    return lambda: forecast(*settings(), ["slurm"])


@pytest.mark.parametrize(
    "words", ["slurm", "slurm --profile site.yaml", "slurm --config gpus=2 nodes=2"]
)
def test_requests_equal_the_command_line_of_snakemakes_executor(here, tmp_path, words):
    here.edit("configs/tiny.yaml", "device: cpu", "device: auto")
    listed = entries(here, tmp_path / "jobs.json", "--profile", *words.split())
    submitted = [entry for entry in listed if not entry["local"]]
    assert len(submitted) >= 9
    for entry in submitted:
        asked = fitting(PlannedJob, entry).request
        shown = (asked.nodes, asked.gpus, asked.gpu_type, asked.cpus, asked.minutes)
        assert (*shown, asked.memory_mb) == typed(entry["sbatch"]), entry


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 4), (3, 0), (3, 4)])
def test_a_node_of_a_training_has_one_task_with_the_cpus_of_all_its_processes(
    fresh, tmp_path, nodes, gpus
):
    """The machine that submits may have fewer CPUs than the job asks for."""
    fresh.edit("configs/tiny.yaml", "device: cpu", "device: auto")
    words = ("--cores", "2", "--profile", "slurm", "--config", f"gpus={gpus}", f"nodes={nodes}")
    costs = "results/tiny/costs/train/ems.json"
    listed = entries(fresh, tmp_path / "jobs.json", *words)
    (job,) = [entry for entry in listed if costs in entry["costs"]]
    assert typed(job["sbatch"])[:4] == (nodes, nodes * gpus, "", nodes * max(1, gpus))
    assert nodes == 1 or f" --nodes={nodes} --ntasks={nodes} " in job["sbatch"]


def test_requests_have_the_changes_of_a_profile(here):
    jobs = planned_jobs("tiny", ["slurm", "site.yaml"])
    requests = {next(iter(job.rules)): job.request for job in jobs}
    train, bench, vocabulary = (requests[name] for name in ("train", "bench", "vocabulary"))
    assert (train.partition, train.gpu_type, train.memory_mb) == ("gpus", "a100", 12000)
    assert (bench.partition, bench.gpus, bench.gpu_type) == ("gpus", 1, "v100")
    assert (vocabulary.partition, vocabulary.cpus) == ("cpus", 4)
    assert "slurm_account=lab" in train.extras


def test_every_job_has_a_rate_and_the_estimate_uses_none_of_the_runs_own_costs(
    estimate, jobs, capsys
):
    finished = len(list(Path("results/tiny/costs").rglob("*.json")))
    assert sum(len(job.costs) for job in jobs) == finished
    assert main(["check", "--experiment", "tiny", "--profile", "slurm"]) == 0
    text = capsys.readouterr().out
    assert "resources requested by the rules" in text
    assert "GB on disk" in text
    assert "Without a rate" not in text
    assert "site's default" in text
    recount(lambda seconds: 100 * seconds)
    total = re.search(r"In all: .*", text)[0]
    assert total in estimate()


def recount(change):
    """Change the CPU seconds of every job of the run."""
    for path in Path("results/tiny/costs").rglob("*.json"):
        data = json.loads(path.read_text())
        path.write_text(json.dumps({**data, "cpu_seconds": change(data["cpu_seconds"])}))


def test_finished_runs_correct_the_rates_of_their_stages(here):
    """The correction is the ratio of all seconds, with SHRINK seconds added to both."""
    experiment, site = settings()
    workload = Workload(experiment, Path(site.data))
    job = ("text", "prepare", "Demo-v1-de-en")
    seconds = shipped_rates().cpu_seconds(*workload.units_of(job))
    folder = Path("results/tiny/costs")
    for path in folder.rglob("*.json"):
        path.unlink()
    write_cost(folder, "/".join(job), "prepare", 1.0, 1000.0)
    rates, names = corrected_rates(site)
    assert names == ["tiny"]
    assert rates.ratios == {"prepare": pytest.approx((SHRINK + 1000) / (SHRINK + seconds))}
    corrected = rates.cpu_seconds(*workload.units_of(job))
    assert corrected == pytest.approx(rates.ratios["prepare"] * seconds)
    write_cost(folder, "/".join(job), "prepare", 1.0, 1000.0, gpu="NVIDIA A100")
    assert corrected_rates(site)[0].ratios == {}  # a GPU's seconds say nothing about this CPU
    assert corrected_rates(site, excluded=["tiny"])[1] == []


def test_memory_is_that_of_a_finished_job_and_the_least_for_a_killed_one(estimate):
    """A killed training leaves an empty file."""
    path = write_cost(Path("results/tiny/costs"), "train/ems", "train", 1.0, 1.0, 12345.0)
    assert re.search(r"^train +.* 12,345$", estimate(), re.MULTILINE)
    path.write_text("")
    assert re.search(r"^train +.* 6\d\d$", estimate(), re.MULTILINE)
    assert path.exists()


def test_work_grows_with_steps(here):
    tiny = Path("configs/tiny.yaml").read_text()
    Path("configs/twice.yaml").write_text(tiny.replace("steps: 60", "steps: 120"))
    once, twice = (
        Workload(settings(name)[0], Path("data")).units_of(("train", "ems"))[1]
        for name in ("tiny", "twice")
    )
    assert once["teraflops"] > 0
    assert twice == {unit: pytest.approx(2 * amount) for unit, amount in once.items()}


def test_the_cost_of_classifiers_grows_with_their_steps(here):
    """The rates are for the defaults, 500 epochs of batches of 12; the demo has 30 of 25."""
    demo = Workload(settings("demo")[0], Path("data"))
    for name in ("sib200", "counterfactual"):
        units = demo.units_of(("bench", "ems", name))[1]
        assert units[name] == pytest.approx(0.2 * 30 / 500 * 12 / 25)


def test_the_pairs_of_a_zip_are_counted_in_its_first_megabyte(here):
    workload = Workload(settings()[0], Path("data"))
    for path in Path("results/tiny/text/clean").rglob("*.json"):
        report = json.loads(path.read_text())
        name = f"{report['corpus']}-{report['version']}-{report['pair']}"
        assert workload.counts[name][0] == pytest.approx(report["read"], rel=0.05)
    assert not workload.unknown


def test_a_limit_below_the_estimate_is_warned_of(here):
    site = {"set-resources": {"bench": {"runtime": 0}, "train": {"mem_mb": 100}}}
    Path("tight.yaml").write_text(yaml.safe_dump(site))
    text = forecast(*settings(), ["slurm", "tight.yaml"])
    assert re.search(r"WARNING: .*bench: needs about .*, the time limit is 0:00", text)
    assert re.search(r"WARNING: train: needs .* MB, requests 100", text)


@pytest.mark.parametrize("profile", ["nosuch", "", "-n", "configs"])
def test_a_profile_that_is_not_there_is_one_line(here, profile):
    with pytest.raises(EmsError, match=r"^profile .*rror") as raised:
        planned_jobs("tiny", [profile])
    assert "\n" not in str(raised.value)


def test_nothing_is_written_and_slurm_need_not_be_there(here, monkeypatch):
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable) + ":/bin")

    def times():
        paths = [path for path in here.folder.rglob("*") if path.is_file()]
        ours = [path for path in paths if not {".snakemake", "__pycache__"} & {*path.parts}]
        return {path: path.stat().st_mtime_ns for path in ours}

    before = times()
    requests = {next(iter(j.rules)): j.request for j in planned_jobs("tiny", ["slurm"])}
    assert times() == before
    assert requests["train"]
    assert requests["table"] is None  # it runs on this machine


NODES = """cpu*|1|2|16000|(null)|3-00:00:00
cpu*|3|8|64000|(null)|3-00:00:00
gpu|2|16|250000|gpu:a100:2(S:0-1),gpu:v100:1|12:00:00
big|1|64|500000|gpu:4|infinite"""
HELD = [  # what a job asks for, and whether a node there has it
    ({}, ""),
    ({"cpus_per_task": 8, "mem_mb": 64000, "runtime": 4320}, ""),
    ({"cpus_per_task": 9}, "asks for 1 node of 9 CPUs; the default partition has none of them"),
    ({"mem_mb": 64001}, "1 CPU, 64,001 MB; .* (a node has at most 8 CPUs, 64,000 MB)"),
    ({"runtime": 4321}, "asks for 72:01:00; the default partition gives a job 72:00:00 at most"),
    ({"nodes": 3, "tasks": 3, "cpus_per_task": 8}, ""),
    ({"nodes": 4, "tasks": 4, "cpus_per_task": 8}, "4 nodes of 8 CPUs; .* has 3 of them"),
    ({"gpu": 1}, "1 CPU, 1 GPU; .*, 0 such GPUs)"),
    ({"slurm_partition": "gpu", "gres": "gpu:3", "runtime": 720}, ""),
    ({"slurm_partition": "gpu", "gres": "gpu:a100:2", "nodes": 2}, ""),
    ({"slurm_partition": "gpu", "gres": "gpu:a100:3"}, "3 GPUs a100; partition gpu has none"),
    ({"slurm_partition": "gpu", "gres": "gpu:h100:1"}, "1 GPU h100; .*, 0 such GPUs)"),
    ({"slurm_partition": "gpu,big", "gres": "gpu:4", "runtime": 10**6}, ""),
    ({"slurm_partition": "fast"}, "Slurm has no partition fast, only cpu, gpu, big"),
]


@pytest.fixture
def sinfo(command):
    """Make `sinfo` a script of these lines."""
    return partial(command, "sinfo")


@pytest.mark.parametrize(("resources", "expected"), HELD, ids=str)
def test_a_job_that_no_node_can_hold_is_warned_of(sinfo, resources, expected):
    sinfo(f"echo '{NODES}'")
    lines = list(obstacles(request_of(resources, 1), nodes_here()))
    assert len(lines) == bool(expected)
    for line in lines:
        assert re.search(expected.replace("(", r"\(").replace(")", r"\)"), line), line


def test_without_a_default_partition_jobs_must_name_one(sinfo):
    sinfo(f"echo '{NODES}' | tr -d '*'")
    message = "Slurm has no default partition, only cpu, gpu, big"
    for resources, expected in (({}, [message]), ({"slurm_partition": "cpu"}, [])):
        assert list(obstacles(request_of(resources, 1), nodes_here())) == expected


def test_the_forecast_warns_of_jobs_that_no_node_can_hold(estimate, sinfo, monkeypatch):
    sinfo(f"echo '{NODES}'")
    assert "node" not in estimate().partition("In all: ")[2]
    sinfo("echo 'only*|1|1|500|(null)|infinite'")
    text = estimate()
    assert re.search(r"WARNING: train: asks for 1 node of \d+ CPUs, [\d,]+ MB; the default", text)
    monkeypatch.setattr("ems.workflow.requests.SINFO_SECONDS", 0.1)
    for line, reason in {
        "echo no; echo controller >&2; exit 1": "sinfo says: controller",
        "exit 1": "exit status 1",
        "exec sleep 60": "timed out",
        "echo only": "unpack",
    }.items():
        sinfo(line)
        unknown = f"Requests were not compared with the nodes; .*{reason}"
        assert re.search(unknown, estimate())


GPUS = [
    ({}, (0, "")),
    ({"gpu": 3}, (3, "")),
    ({"gpu": 2, "gpu_model": "a100"}, (2, "a100")),
    ({"gpu_model": "a100"}, (1, "a100")),
    ({"gres": "gpu"}, (1, "")),
    ({"gres": "gpu:2"}, (2, "")),
    ({"gres": "gpu:a100:2"}, (2, "a100")),
    ({"gres": "gpu:2", "nodes": 3}, (6, "")),
    ({"gres": "disk:2"}, (0, "")),
]


@pytest.mark.parametrize(("resources", "expected"), GPUS, ids=str)
def test_gpus_are_read_from_gpu_and_from_gres(resources, expected):
    request = request_of(resources, 1)
    assert (request.gpus, request.gpu_type) == expected


def test_slurms_names_of_gpus_are_matched_with_data_sheets():
    assert gpu_flops("h100", True) > 2 * gpu_flops("a100", True)
    assert gpu_flops("nvidia_a100_80gb", True) == gpu_flops("a100", True)
    assert gpu_flops("", True) == gpu_flops("unheard_of", True) == gpu_flops("a100", True)
    assert gpu_flops("v100", True) == gpu_flops("v100", False)  # it has no bfloat16


def test_gpus_share_operations_and_lookups_and_each_updates_all_parameters():
    step, rates = Learning(1.0, 1.0, 1.0, half=False), shipped_rates()

    def seconds(count, unit):
        units = {"teraflops": 0.0, "gathered": 0.0, "updated": 0.0, unit: 1e6}
        return rates.on_gpus("train", units, step, 0, count, "a100")[1] - TRAINING_START

    for unit, share in (("teraflops", 4), ("gathered", 4), ("updated", 1)):
        assert seconds(1, unit) == pytest.approx(share * seconds(4, unit))


@pytest.mark.parametrize("starts", [False, True])
def test_rates_are_fitted_on_runs_and_keep_the_sum_of_a_stage(here, starts):
    """With `--starts` only the start of a job changes, for runs that are too small for more."""
    out = here.folder / "rates.tsv"
    recount(lambda seconds: seconds + starts)  # or a start could stay the same
    words = [str(ROOT / "perf/rates.py"), f"{here.folder}:tiny", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, *words, *["--starts"] * starts], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split("off_percent=")[1]) < 20
    shipped, rows = shipped_rows(), read_table(out)
    assert list(rows[0]) == ["stage", "unit", "cpu_seconds", "from"]
    assert len(rows) > 19
    if starts:
        places = [[(row["stage"], row["unit"]) for row in table] for table in (rows, shipped)]
        assert places[0] == places[1]
        changed = [row for row, old in zip(rows, shipped, strict=True) if row != old]
        assert {row["unit"] for row in changed} == {"job"}
        assert {row["stage"] for row in changed} >= {"bench", "prepare", "train"}
