"""The tiny experiment killed in every stage, where every folder that a user can name has a nasty
name: run again, it gives what one run gives.
"""

import contextlib
import shutil
import time

import psutil
import pytest
from conftest import copy_project
from names_made import NASTY, quoted

from ems.orphan import INTERVAL

MODEL = "results/tiny/models/ems/model.json"
# Words of the job with which a run is killed (none that may come before those above it), what is
# killed of it (a download would be tried again if it were only `ems`), and the text in the output
# after which that happens.
STAGES = [
    ("demo-mirror", "ems", "start"),
    ("fetch", "snakemake", "copy "),
    ("fetch-evalset", "snakemake", "copy "),
    ("evalkeys", "ems", "read evaluation sets: start"),
    ("clean", "snakemake", "decontaminate Demo"),
    ("segment", "ems", "segment "),
    ("sample", "snakemake", "sample for the vocabulary: start"),
    ("vocabulary", "ems", "train BPE"),
    ("shards", "snakemake", "encode "),
    ("train ems", "ems", "checkpoint at step 20"),
    ("train ems", "snakemake", "checkpoint at step 30"),
    ("bench ems", "snakemake", "tatoeba "),
    ("table tatoeba", "ems", "ems table tatoeba"),
    ("figure tatoeba", "snakemake", "ems figure tatoeba"),
    ("costs", "ems", "ems costs"),
]


@pytest.fixture
def nasty(tmp_path, demo_mirror):
    """A project in a nasty folder, with nasty places, in which nothing has run yet."""
    folder = tmp_path / f"{NASTY} {{}} {{x}}"
    folder.mkdir()
    mirror = shutil.copytree(demo_mirror, tmp_path / NASTY)
    project = copy_project(folder)
    project.edit("config.yaml", "data: data #", f"data: {quoted(NASTY[1:])} #")
    tatoeba, demo = "tatoeba: embedded", "Demo, version: v1"
    project.edit("configs/tiny.yaml", tatoeba, f"tatoeba: {quoted(mirror / 'tatoeba')}")
    project.edit("configs/tiny.yaml", demo, f"{demo}, source: {quoted(mirror / 'opus')}")
    return project


def _first_job(project, stages, run):
    """The place of the first stage that runs, and its process; None when the run is over."""
    while run.poll() is None:
        jobs = list(project.jobs())
        for at, stage in enumerate(stages):
            for process, words in jobs:
                if words >= set(stage.split()):
                    return at, process
        time.sleep(0.05)  # a look at all processes costs as much as many jobs here
    return None


def _kill_once(project, stages):
    """Start a run and kill -9 it in the first of the stages that it comes to; the place of that
    stage, None if the run comes to its end.
    """
    run = project.start("snakemake", "all")
    job = _first_job(project, [name for name, _, _ in stages], run)
    if job is None:
        return None
    at, process = job
    _, victim, text = stages[at]
    log = project.folder / "started.log"
    while text not in log.read_text() and process.is_running() and run.poll() is None:
        time.sleep(0.01)
    if victim == "ems" and process.is_running():
        process.kill()
        run.wait()
    else:
        _kill_snakemake(run, process)
        project.snakemake("--unlock")
    return at


def _kill_snakemake(run, process):
    """Kill Snakemake while its job stands still, so that the job does not end before it looks."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.suspend()
        run.kill()
        time.sleep(INTERVAL + 0.2)
        process.resume()
    run.kill()
    run.wait()


@pytest.mark.slow
def test_killed_in_every_stage_in_turn_and_run_again_gives_the_same_tables(tiny_run, nasty):
    """One project that is killed again and again, each time one stage further; and on one core.
    Nothing of a name is run, or taken for a flag or a pattern.
    """
    left, killed = STAGES, []
    while left and (at := _kill_once(nasty, left)) is not None:
        killed.append(left[at][:2])
        left = left[at + 1 :]
    nasty.snakemake("--cores", "1", "all")
    assert nasty.tables() == tiny_run.tables()
    weights = MODEL.replace(".json", ".safetensors")
    assert (nasty.folder / weights).read_bytes() == (tiny_run.folder / weights).read_bytes()
    log = (nasty.folder / "results/tiny/logs/train/ems.log").read_text()
    assert int(log.partition("resumed at step ")[2].split()[0]) >= 20
    assert len(killed) >= 9, killed
    assert {("train ems", "ems"), ("train ems", "snakemake")} <= set(killed)
    assert (nasty.folder / NASTY[1:] / "opus/Demo").is_dir()
    assert not list((nasty.folder / "results").rglob("*.part"))
    assert list(nasty.folder.parent.rglob("pwned")) == []
    assert "Nothing to be done" in nasty.snakemake("all")


def test_jobs_do_not_outlive_a_killed_snakemake(finished):
    finished.edit("configs/tiny.yaml", "  steps: 60\n", "  steps: 100000\n")
    run = finished.start("snakemake", MODEL)
    _, process = _first_job(finished, ["train"], run)
    run.kill()
    run.wait()
    assert process.wait(timeout=30) is None or not process.is_running()
    assert not list(finished.jobs())
