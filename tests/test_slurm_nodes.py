"""A training on two nodes of a real Slurm: the run of one machine with as many processes."""

import getpass
import re
import time

import psutil
import pytest
from conftest import copied
from made.slurm import PROFILE, on, once_saved, running, warn
from made.train import json_rows

from ems.base.errors import EmsError
from ems.base.torchrun import become

MODEL = "results/tiny/models/ems"
LOG = "results/tiny/logs/train/ems.log"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm"), nodes=2, port=17847) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def trainable(tiny_run, tmp_path_factory):
    """The tiny project with its text made; a training there may use all processes it is given."""
    project = copied(tiny_run, tmp_path_factory.mktemp("trainable") / "project")
    project.edit("configs/tiny.yaml", "device: cpu", "device: auto")
    (project.folder / LOG).unlink()
    return project


@pytest.fixture(scope="module")
def expected(trainable, tmp_path_factory):
    """The losses of two processes on one machine."""
    project = copied(trainable, tmp_path_factory.mktemp("expected") / "project")
    project.snakemake("--config", "gpus=2", "--", f"{MODEL}/model.json")
    return losses(project)


def losses(project):
    """What the training of `ems` logged of each step that it logs, without times."""
    return json_rows(project.folder / MODEL / "losses.jsonl")


def started(cluster, trainable, folder):
    """A copy of the project, and its training on two nodes, which runs."""
    project = on(cluster, copied(trainable, folder / "project"))
    project.edit("config.yaml", "gpus: 1 ", "gpus: 0 ")
    words = ("snakemake", *PROFILE, "--config", "nodes=2", "--", f"{MODEL}/model.json")
    return project, project.start(*words)


def trainings(cluster):
    """The jobs of trainings that the controller remembers."""
    return [job for job in cluster.jobs() if job["Comment"].startswith("rule_train_on_nodes_")]


def tasks_of(project, *nodes):
    """The processes of some nodes that train for a project."""
    tasks = []
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}
        here = environment.get("PWD") == str(project.folder)
        if here and environment.get("SLURMD_NODENAME") in nodes:
            tasks.append(process)
    return tasks


def lose_a_node(cluster, project):
    """kill -9 all of the second node: its tasks, what started them, and its daemon."""
    tasks = tasks_of(project, "n2")
    if not tasks:
        return False
    daemons = {task.parent() for task in tasks} - {*tasks, None}
    for process in psutil.process_iter(["cmdline"]):
        if (process.info["cmdline"] or [])[1:] == ["-N", "n2", "-f", str(cluster.config)]:
            daemons.add(process)
    for process in [*daemons, *tasks]:
        process.kill()
    return True


def stop(cluster, project, run):
    """kill -9 Snakemake. The next one refuses to start beside its job; so cancel that."""
    for process in tasks_of(project, "n1", "n2"):
        process.suspend()  # else it might have finished by then
    run.kill()
    run.wait()
    (job,) = cluster.call("squeue", "-h", "-o", "%A").split()
    refusal = project.snakemake(*PROFILE, "--", f"{MODEL}/model.json", expect=1)
    assert f"Snakemake submitted from this folder: {job}." in refusal
    assert f"scancel {job}" in refusal
    while cluster.call("squeue", "-h"):
        cluster.call("scancel", "--user", getpass.getuser())
        time.sleep(0.2)
    return True


def test_two_nodes_give_the_losses_of_two_processes_on_one_machine(
    cluster, trainable, expected, tmp_path
):
    project, run = started(cluster, trainable, tmp_path)
    assert run.wait() == 0, (project.folder / "started.log").read_text()[-5000:]
    (job,) = trainings(cluster)
    assert (job["JobState"], job["NumNodes"], job["NumTasks"]) == ("COMPLETED", "2", "2")
    assert losses(project) == expected


def test_a_training_that_loses_a_node_and_is_warned_and_moved_to_one_machine_gives_the_same_losses(
    cluster, trainable, expected, tmp_path
):
    before = len(trainings(cluster))
    project, run = started(cluster, trainable, tmp_path)
    assert once_saved(project, run, "checkpoint at step 10", lambda: lose_a_node(cluster, project))
    cluster.start_node("n2")
    assert once_saved(project, run, "(attempt 2)", lambda: warn(cluster))
    assert once_saved(project, run, "(attempt 3)", lambda: stop(cluster, project, run))
    states = [job["JobState"] for job in trainings(cluster)[before:]]
    assert len(states) == 3
    assert states[1:] == ["FAILED", "CANCELLED"]
    project.snakemake("--unlock")
    project.snakemake("--config", "gpus=2", "--", f"{MODEL}/model.json")
    assert re.search(r"resumed at step \d+ \(attempt 4\)", (project.folder / LOG).read_text())
    assert losses(project) == expected
    again = project.snakemake("-n", "--config", "nodes=2", "--", f"{MODEL}/model.json")
    assert "Nothing to be done" in again


def test_several_nodes_outside_of_a_job_of_slurm_are_refused(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(EmsError, match=r"2 nodes need a job of Slurm .* set `nodes: 1`"):
        become(2, 2, 1, ["train"])
