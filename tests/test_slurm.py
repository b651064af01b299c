"""`snakemake --profile slurm all` on a real Slurm, through the shipped profile, unedited."""

from pathlib import Path

import pytest
import yaml
from conftest import copy_project
from made.experiments import ON_SLURM, quoted
from made.slurm import PROFILE, on, once_saved, running, warn


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def project(cluster, tmp_path_factory):
    """A project on the cluster; config.yaml names `demo`, so `tiny` comes from --config only. Its
    folder and its data folder have nasty names.
    """
    folder = tmp_path_factory.mktemp("project") / f"{ON_SLURM} {{}} {{x}}"
    folder.mkdir()
    project = copy_project(folder)
    project.edit("config.yaml", "data: data #", f"data: {quoted(ON_SLURM)} #")
    project.edit("config.yaml", "experiment: tiny\n", "experiment: demo\n")
    project.edit("configs/tiny.yaml", "device: cpu", "device: auto")
    return on(cluster, project)


def _kill_training(project):
    """kill -9 the training process of system `ems`; whether there was one."""
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
    output = (project.folder / "started.log").read_text
    assert run.wait() == 0, output()[-5000:]
    assert killed
    _check_resources(cluster)
    text = (project.folder / "results/tiny/logs/train/ems.log").read_text()
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


# --- a warning before the time is over


def test_a_training_that_slurm_warns_saves_and_is_submitted_again(cluster, finished):
    """It is warned in its first attempt; the second goes on and gives the same model."""
    project = on(cluster, finished)
    model = project.folder / "results/tiny/models/ems"
    expected = (model / "model.safetensors").read_bytes()
    for path in (*model.iterdir(), project.folder / "results/tiny/logs/train/ems.log"):
        path.unlink()
    run = project.start(
        "snakemake", *PROFILE, "--", f"{model.relative_to(project.folder)}/model.json"
    )
    job = once_saved(project, run, "checkpoint at step", lambda: warn(cluster))
    output = (project.folder / "started.log").read_text
    assert run.wait() == 0, output()[-5000:]
    attempts = [entry for entry in cluster.jobs() if entry["Comment"].startswith("rule_train_")]
    (first,) = (entry for entry in attempts if entry["JobId"] == job)
    assert first["JobState"] == "FAILED"
    text = (project.folder / "results/tiny/logs/train/ems.log").read_text()
    assert "resumed at step" in text
    assert (model / "model.safetensors").read_bytes() == expected
    logs = (project.folder / ".snakemake/slurm_logs").rglob("*.log")
    assert any("stopped by SIGUSR1 after step" in path.read_text() for path in logs)
