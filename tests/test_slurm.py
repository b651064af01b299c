"""`snakemake --profile slurm all` on a real Slurm, with one node and with two."""

import getpass
import re
import time
from pathlib import Path

import psutil
import pytest
import yaml
from conftest import copied, copy_project
from made.experiments import ON_SLURM, quoted
from made.slurm import PROFILE, on, running
from made.train import json_rows

from ems.base.errors import EmsError
from ems.base.torchrun import become


def warn(cluster):
    """Send the running jobs' steps USR1, as `--signal=USR1@120` does; the number of the first."""
    running = cluster.call("squeue", "-h", "-t", "R", "-o", "%A").split()
    if running:
        cluster.call("scancel", "--signal=USR1", *running)
    return running[0] if running else None


def once_saved(project, run, text, act):
    """What `act` returns once the training of `ems` has logged a text; None if the run ends."""
    log = project.folder / "results/tiny/logs/train/ems.log"
    while run.poll() is None:
        if log.exists() and text in log.read_text() and (done := act()):
            return done
        time.sleep(0.02)
    return None


pytestmark = pytest.mark.slow
MODEL = "results/tiny/models/ems"
LOG = "results/tiny/logs/train/ems.log"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def project(cluster, tmp_path_factory):
    """A project on the cluster with nasty names of folders; config.yaml names `demo`."""
    folder = tmp_path_factory.mktemp("project") / f"{ON_SLURM} {{}} {{x}}"
    folder.mkdir()
    project = copy_project(folder)
    project.edit("config.yaml", "data: data #", f"data: {quoted(ON_SLURM)} #")
    project.edit("config.yaml", "experiment: tiny\n", "experiment: demo\n")
    project.edit("configs/tiny.yaml", "device: cpu", "device: auto")
    return on(cluster, project)


def _kill_training(project):
    """Kill the training of system `ems` with SIGKILL; return True if there was one."""
    processes = [process for process, words in project.jobs() if words >= {"train", "ems"}]
    for process in processes:
        process.kill()
    return bool(processes)


def test_the_tiny_experiment_runs_on_slurm_and_a_killed_training_resumes(
    cluster, project, tiny_run
):
    """One run: GPU and CPUs from scontrol, a kill, the retry, the same tables as locally."""
    profile = yaml.safe_load((project.folder / "slurm/config.yaml").read_text())
    assert "partition" not in str(profile)
    run = project.start("snakemake", *PROFILE, "--config", "experiment=tiny", "--", "all")
    killed = once_saved(project, run, "checkpoint at step 20", lambda: _kill_training(project))
    assert run.wait() == 0, started_log(project)
    assert killed
    _check_resources(cluster)
    text = (project.folder / LOG).read_text()
    assert int(text.partition("resumed at step ")[2].split()[0]) >= 20
    _check_nothing_leaked(project)
    assert project.tables() == tiny_run.tables()
    assert list(project.folder.parent.rglob("pwned")) == []


def _check_resources(cluster):
    jobs = cluster.jobs()
    training = [job for job in jobs if job["Comment"].startswith("rule_train_")]
    assert len(training) >= 3  # ems, its retry, untrained
    for job in training:
        assert "gres/gpu=1" in job["TRES"] or "gpu:1" in job.get("TresPerJob", ""), job
        assert job["NumCPUs"] == ("2" if "untrained" in job["Comment"] else "1")
    others = [job for job in jobs if not job["Comment"].startswith(("rule_train_", "rule_bench"))]
    assert others
    assert not any("gres/gpu" in job["TRES"] for job in others)
    states = [job["JobState"] for job in training]
    assert states.count("FAILED") == 1
    assert set(states) == {"FAILED", "COMPLETED"}


def _check_nothing_leaked(project):
    """Inside the jobs the experiment was `tiny`, though config.yaml says `demo`."""
    logs = list((project.folder / "results/tiny/logs").rglob("*.log"))
    texts = [text for text in map(Path.read_text, logs) if "settings of stage" in text]
    assert len(texts) > 10
    assert all("experiment tiny, settings of stage" in text for text in texts)
    assert not (project.folder / "results/demo").exists()


def started_log(project):
    return (project.folder / "started.log").read_text()[-5000:]


def test_a_training_that_slurm_warns_saves_and_is_submitted_again(cluster, finished):
    """It is warned in its first attempt; the second goes on and gives the same model."""
    project = on(cluster, finished)
    model = project.folder / MODEL
    expected = (model / "model.safetensors").read_bytes()
    for path in (*model.iterdir(), project.folder / LOG):
        path.unlink()
    run = project.start("snakemake", *PROFILE, "--", f"{MODEL}/model.json")
    job = once_saved(project, run, "checkpoint at step", lambda: warn(cluster))
    assert run.wait() == 0, started_log(project)
    (first,) = (entry for entry in cluster.jobs() if entry["JobId"] == job)
    assert (first["Comment"].startswith("rule_train_"), first["JobState"]) == (True, "FAILED")
    assert "resumed at step" in (project.folder / LOG).read_text()
    assert (model / "model.safetensors").read_bytes() == expected
    logs = (project.folder / ".snakemake/slurm_logs").rglob("*.log")
    assert any("stopped by SIGUSR1 after step" in path.read_text() for path in logs)


# --- a training on two nodes


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm"), nodes=2, port=17847) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def trainable(tiny_run, tmp_path_factory):
    """Return the tiny project with its text; a training there may use several processes."""
    project = copied(tiny_run, tmp_path_factory.mktemp("trainable") / "project")
    project.edit("configs/tiny.yaml", "device: cpu", "device: auto")
    (project.folder / LOG).unlink()
    return project


@pytest.fixture(scope="module")
def expected(trainable, tmp_path_factory):
    project = copied(trainable, tmp_path_factory.mktemp("expected") / "project")
    project.snakemake("--config", "gpus=2", "--", f"{MODEL}/model.json")
    return losses(project)


def losses(project):
    return json_rows(project.folder / MODEL / "losses.jsonl")


def started(nodes, trainable, folder):
    """Start a training on two nodes in a copy of the project."""
    project = on(nodes, copied(trainable, folder / "project"))
    project.edit("config.yaml", "gpus: 1 ", "gpus: 0 ")
    words = ("snakemake", *PROFILE, "--config", "nodes=2", "--", f"{MODEL}/model.json")
    return project, project.start(*words)


def trainings(nodes):
    return [job for job in nodes.jobs() if job["Comment"].startswith("rule_train_on_nodes_")]


def tasks_of(project, *nodes):
    """Return the processes on some nodes that train for a project."""
    tasks = []
    for process in psutil.process_iter(["environ"]):
        environment = process.info["environ"] or {}
        here = environment.get("PWD") == str(project.folder)
        if here and environment.get("SLURMD_NODENAME") in nodes:
            tasks.append(process)
    return tasks


def lose_a_node(nodes, project):
    """Kill the second node's tasks, their parents and its daemon with SIGKILL."""
    tasks = tasks_of(project, "n2")
    if not tasks:
        return False
    daemons = {task.parent() for task in tasks} - {*tasks, None}
    for process in psutil.process_iter(["cmdline"]):
        if (process.info["cmdline"] or [])[1:] == ["-N", "n2", "-f", str(nodes.config)]:
            daemons.add(process)
    for process in [*daemons, *tasks]:
        process.kill()
    return True


def stop(nodes, project, run):
    """Kill Snakemake. The next one refuses to start while its job runs, so cancel that."""
    for process in tasks_of(project, "n1", "n2"):
        process.suspend()  # else it might have finished by then
    run.kill()
    run.wait()
    (job,) = nodes.call("squeue", "-h", "-o", "%A").split()
    refusal = project.snakemake(*PROFILE, "--", f"{MODEL}/model.json", expect=1)
    assert f"Snakemake submitted from this folder: {job}." in refusal
    assert f"scancel {job}" in refusal
    while nodes.call("squeue", "-h"):
        nodes.call("scancel", "--user", getpass.getuser())
        time.sleep(0.2)
    return True


def test_two_nodes_give_the_losses_of_two_processes_on_one_machine(
    nodes, trainable, expected, tmp_path
):
    project, run = started(nodes, trainable, tmp_path)
    assert run.wait() == 0, started_log(project)
    (job,) = trainings(nodes)
    assert (job["JobState"], job["NumNodes"], job["NumTasks"]) == ("COMPLETED", "2", "2")
    assert losses(project) == expected


def test_a_training_that_loses_a_node_is_warned_and_moves_to_one_machine_has_the_same_losses(
    nodes, trainable, expected, tmp_path
):
    before = len(trainings(nodes))
    project, run = started(nodes, trainable, tmp_path)
    assert once_saved(project, run, "checkpoint at step 10", lambda: lose_a_node(nodes, project))
    nodes.start_node("n2")
    assert once_saved(project, run, "(attempt 2)", lambda: warn(nodes))
    assert once_saved(project, run, "(attempt 3)", lambda: stop(nodes, project, run))
    states = [job["JobState"] for job in trainings(nodes)[before:]]
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
    with pytest.raises(EmsError, match=r"2 nodes need a Slurm job .* set `nodes: 1`"):
        become(2, 2, 1, ["train"])
