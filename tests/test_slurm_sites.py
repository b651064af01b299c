"""Sites on a real Slurm: the two example profiles, a container, and arrays of trainings."""

import os
import re
import shlex
import shutil
import subprocess
import time

import pytest
import yaml
from conftest import ROOT, copied, planned, write_program
from made.slurm import PROFILE, on, running

from ems.workflow.requests import nodes_here, obstacles, request_of

pytestmark = pytest.mark.slow
SITE = "slurm/site.yaml"
MODEL = "results/tiny/models/ems/model.json"
SCORES = "results/tiny/scores/ems/tatoeba.json"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A node of CPUs, and two with GPUs of different types."""
    root = tmp_path_factory.mktemp("slurm")
    partitions = {"cpu": "n1", "gpu": "n2,n3"}
    types = {"n2": "a100:2", "n3": "h100:2"}
    with running(root, 3, port=17937, partitions=partitions, gpus=types) as cluster:
        accounts = "#!/bin/sh\necho other; echo my-project\n"  # there is no slurmdbd here
        write_program(root / "bin/sacctmgr", accounts)
        yield cluster


@pytest.fixture
def project(cluster, tiny_run, tmp_path):
    """Return the tiny project with its text, before training."""
    project = on(cluster, copied(tiny_run, tmp_path / "project"))
    for name in (MODEL, SCORES, "results/tiny/logs/train/ems.log"):
        (project.folder / name).unlink()
    return project


def site(project, example, **names):
    """Copy an example to slurm/site.yaml with the names of this cluster."""
    text = (project.folder / f"slurm/{example}.yaml").read_text()
    for old, new in names.items():
        assert old in text
        text = text.replace(old, new)
    (project.folder / SITE).write_text(text)


def on_site(project, *arguments):
    return project.snakemake(*PROFILE, "--profile", SITE, *arguments)


def last_jobs(cluster, number):
    """Return rule -> partition, account, GPUs and time limit of the last jobs."""
    jobs = sorted(cluster.jobs(), key=lambda job: int(job["JobId"]))[-number:]
    keys = ("Partition", "Account", "TresPerJob", "TimeLimit")
    return {
        re.match("rule_([a-z]+)", job["Comment"])[1]: tuple(job.get(key) for key in keys)
        for job in jobs
    }


# --- profiles


@pytest.mark.parametrize("example", ["one-partition", "gpu-types"])
def test_an_example_has_no_key_of_the_profile_that_it_would_replace(example):
    """So retries, waiting and the query of states are set in one file."""
    base = yaml.safe_load((ROOT / "slurm/config.yaml").read_text())
    assert base.keys() >= {"executor", "slurm-status-command", "retries", "latency-wait"}
    assert not base.keys() & yaml.safe_load((ROOT / f"slurm/{example}.yaml").read_text()).keys()


def test_types_of_gpus_get_their_jobs_and_scratch_gets_their_temporary_files(
    cluster, project, tmp_path
):
    site(project, "gpu-types", **{"/scratch": str(tmp_path / "scratch")})
    project.edit("configs/tiny.yaml", "device: cpu", "device: auto")
    on_site(project, "--", SCORES)
    assert last_jobs(cluster, 2) == {
        "train": ("gpu", "my-project", "gres:gpu:h100:1", "2-00:00:00"),
        "bench": ("gpu", "my-project", "gres:gpu:a100:1", "01:00:00"),
    }
    assert (tmp_path / "scratch").is_dir()


ASKED = {  # flags of sbatch, and the same for Snakemake's executor
    "": {},
    "--ntasks=2 --cpus-per-task=10000": {"tasks": 2, "cpus_per_task": 10**4},
    "--mem=10000000": {"mem_mb": 10**7},
    "-p gpu --gres=gpu:h100:2": {"slurm_partition": "gpu", "gres": "gpu:h100:2"},
    "-p gpu --gres=gpu:h100:3": {"slurm_partition": "gpu", "gres": "gpu:h100:3"},
    "-p gpu --gres=gpu:v100:1": {"slurm_partition": "gpu", "gres": "gpu:v100:1"},
    "--gres=gpu:1": {"gres": "gpu:1"},
    "-p gpu --gres=gpu:2 -N 2": {"slurm_partition": "gpu", "gres": "gpu:2", "nodes": 2},
    "--nodes=2 --ntasks=2": {"nodes": 2, "tasks": 2},
    "-p fast": {"slurm_partition": "fast"},
}


@pytest.mark.parametrize("flags", ASKED)
def test_check_warns_of_the_jobs_that_slurm_refuses(cluster, monkeypatch, flags):
    monkeypatch.setenv("SLURM_CONF", str(cluster.config))
    warnings = list(obstacles(request_of(ASKED[flags], 1), nodes_here()))
    words = ["sbatch", "--test-only", *flags.split(), "--wrap=true"]
    done = subprocess.run(words, capture_output=True)
    assert (done.returncode != 0) == bool(warnings), (done.stderr, warnings)


def test_several_nodes_get_gpus_of_their_type(cluster, project):
    """The cluster has no two nodes of a type, so this is only planned."""
    site(project, "gpu-types")
    project.edit("configs/tiny.yaml", "device: cpu", "device: auto")
    plan = on_site(project, "--config", "nodes=2", "gpus=4", "-n", "--", MODEL)
    assert "gres=gpu:h100:4" in plan.partition("rule train_on_nodes:")[2]


def test_one_partition_gets_all_jobs_with_an_account_and_local_jobs_stay_here(cluster, project):
    """A local job may need the internet, or be too short for a job."""
    site(project, "one-partition", main="gpu")
    (project.folder / "results/tiny/tables/tatoeba.tex").unlink()
    output = on_site(project, "--", MODEL, "results/tiny/tables/tatoeba.tex")
    jobs = last_jobs(cluster, 2)
    assert jobs["train"] == ("gpu", "my-project", None, "1-00:00:00")  # `tiny` is for CPUs
    assert jobs["bench"] == ("gpu", "my-project", None, "01:00:00")
    assert re.findall(r"^localrule (\w+):", output, re.MULTILINE) == ["table"]


def test_with_apptainer_the_command_of_a_job_runs_in_the_image(cluster, project):
    """A fake `apptainer` notes its arguments and runs the command."""
    folder = cluster.root / "apptainer"
    write_program(
        folder / "apptainer",
        '#!/bin/sh\n[ "$1" = --version ] && exec echo apptainer version 1.3.4\n'
        f'echo "$@" >> {folder}/calls\n'
        'while [ "$1" != sh ] && [ "$1" != bash ]; do shift; done; exec "$@"\n',
    )
    (project.folder / "envs/ems.sif").touch()
    project.environment["PATH"] = f"{folder}{os.pathsep}{project.environment['PATH']}"
    site(project, "one-partition", main="gpu")
    # without --allowed-rules, files made without the image would be made again
    on_site(project, "--sdm", "apptainer", "--allowed-rules", "train", "--", MODEL)
    (call,) = (folder / "calls").read_text().splitlines()
    assert shlex.split(call)[0] == "exec"
    assert "envs/ems.sif" in call
    assert "ems train" in call


# --- arrays


def test_an_array_of_the_executor_is_refused_before_anything_is_submitted(cluster, project):
    before = len(cluster.jobs())
    words = (*PROFILE, "--slurm-array-jobs", "train", "--", MODEL)
    assert "--slurm-array-jobs: a failed task would" in project.snakemake(*words, expect=1)
    assert len(cluster.jobs()) == before


def test_tasks_of_an_array_that_are_warned_killed_or_requeued_do_not_affect_others(
    cluster, project
):
    """The weights equal those of trainings without Slurm."""
    project.edit("configs/tiny.yaml", "train: {steps: 20}", "train: {steps: 300}")
    listed = project.run("ems", "check", "--experiment", "tiny", "--trained").stdout.split()
    systems = [name for name in listed if name.startswith("ems.")]
    models = [f"results/tiny/models/{name}/model.safetensors" for name in systems]
    project.snakemake("--", *models)
    expected = [(project.folder / model).read_bytes() for model in models]
    for name in ("models", "logs/train"):
        shutil.rmtree(project.folder / "results/tiny" / name)

    array = submitted(project, "1-3", systems)
    saved(cluster, array, project, systems[0])
    cluster.call("scancel", "--batch", "--signal=USR1", f"{array}_1")
    saved(cluster, array, project, systems[1])
    for process, words in project.jobs():
        if words >= {"train", systems[1]}:
            process.kill()
    saved(cluster, array, project, systems[2])
    cluster.call("scontrol", "requeue", f"{array}_3")  # as when its node is taken away
    assert "Slurm still has jobs" in project.snakemake(*PROFILE, "--", MODEL, expect=1)
    assert ended(cluster, array) == {"1": "COMPLETED", "2": "FAILED", "3": "COMPLETED"}
    assert ended(cluster, submitted(project, "2", systems)) == {"2": "COMPLETED"}

    assert [(project.folder / model).read_bytes() for model in models] == expected
    for name in systems:
        log = (project.folder / f"results/tiny/logs/train/{name}.log").read_text()
        assert log.count("resumed at step") == 1
    assert "stopped by SIGUSR1 after step" in slurm_log(project, f"{array}_1")
    assert planned(project.snakemake("-n", "--", *models)) == {}


def test_a_task_fails_rather_than_make_shards_that_others_share(cluster, project):
    (project.folder / "results/tiny/shards/shared/index.json").unlink()
    array = submitted(project, "1", ["ems"])
    assert ended(cluster, array) == {"1": "FAILED"}
    assert "MissingInputException" in slurm_log(project, f"{array}_1")


def submitted(project, tasks, systems):
    """Submit an array of trainings with the shipped script; return its number."""
    flags = (f"--array={tasks}", "--partition=gpu", "--gpus=0", "--cpus-per-task=1", "--mem=4000")
    words = ("sbatch", "--parsable", *flags, "slurm/array.sh", "tiny", *systems)
    return project.run(*words).stdout.strip()


def saved(cluster, array, project, system):
    """Wait until a training has saved a checkpoint; fail if its array has ended."""
    log = project.folder / f"results/tiny/logs/train/{system}.log"
    while not log.exists() or "checkpoint at step" not in log.read_text():
        assert cluster.call("squeue", "-h", f"--jobs={array}"), slurm_log(project, f"{array}_1")
        time.sleep(0.02)


def ended(cluster, array):
    """Wait until no task of an array is in the queue; return task -> state.

    A requeued task starts at the second look here, not after Slurm's two minutes. At the first look
    Slurm would take the end of the last attempt for the end of the next.
    """
    waiting = set()
    while queued := cluster.call("squeue", "-h", "-r", f"--jobs={array}", "--format=%i|%T"):
        states = dict(line.split("|") for line in queued.splitlines())
        pending = {task for task, state in states.items() if state == "PENDING"}
        for task in pending & waiting:
            cluster.call("scontrol", "update", f"JobId={task}", "StartTime=now")
        waiting = pending - waiting
        time.sleep(2)
    tasks = [job for job in cluster.jobs() if job.get("ArrayJobId") == array]
    return {job["ArrayTaskId"]: job["JobState"] for job in tasks}


def slurm_log(project, task):
    return (project.folder / f".snakemake/slurm-{task}.log").read_text()
