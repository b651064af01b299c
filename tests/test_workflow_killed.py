"""The tiny experiment killed in every stage, where every folder that a user can name has a nasty
name: run again, it gives what one run gives.
"""

import contextlib
import shutil
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from conftest import Project, copy_project
from names_made import NASTY, quoted

from ems.orphan import INTERVAL

MODEL = "results/tiny/models/ems/model.json"
# The stage in which a run is killed, what is killed of it (a download would be tried again if it
# were only `ems`), and the text in the output after which that happens.
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
    ("train", "ems", "checkpoint at step 20"),
    ("train", "snakemake", "checkpoint at step 30"),
    ("bench", "snakemake", "tatoeba "),
    ("table", "ems", "ems table"),
    ("figure", "snakemake", "ems figure"),
    ("costs", "ems", "ems costs"),
]


@pytest.fixture
def nasty(tmp_path: Path, demo_mirror: Path) -> Project:
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


def _stages(project: Project, stage: str) -> list[psutil.Process]:
    """The running `ems <stage>` processes of a project."""
    running = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        ours = process.info["cwd"] == str(project.folder.resolve())
        if ours and stage in words and any(word.endswith("/ems") for word in words[:2]):
            running.append(process)
    return running


def _wait_for(project: Project, stage: str, run: subprocess.Popen) -> psutil.Process | None:
    """The first process of a stage; None when the run is over."""
    while run.poll() is None:
        for process in _stages(project, stage):
            return process
        time.sleep(0.01)
    return None


def _kill_once(project: Project, stage: str, victim: str, text: str) -> bool:
    """Start a run and kill -9 the victim after `text` is in its output; False if it never ran."""
    # of the two systems that are trained only this one has steps, and checkpoints
    run = project.start("snakemake", MODEL if stage == "train" else "all")
    process = _wait_for(project, stage, run)
    if process is None:
        return False
    log = project.folder / "started.log"
    while text not in log.read_text() and process.is_running() and run.poll() is None:
        time.sleep(0.01)
    if victim == "ems" and process.is_running():
        process.kill()
        run.wait()
    else:
        _kill_snakemake(run, process)
        project.snakemake("--unlock")
    return True


def _kill_snakemake(run: subprocess.Popen, process: psutil.Process) -> None:
    """Kill Snakemake while its job stands still, so that the job does not end before it looks."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.suspend()
        run.kill()
        time.sleep(INTERVAL + 0.2)
        process.resume()
    run.kill()
    run.wait()


@pytest.mark.slow
def test_killed_in_every_stage_in_turn_and_run_again_gives_the_same_tables(
    tiny_run: Project, nasty: Project
) -> None:
    """One project that is killed again and again, each time one stage further; and on one core.
    Nothing of a name is run, or taken for a flag or a pattern.
    """
    killed = [
        (stage, victim) for stage, victim, text in STAGES if _kill_once(nasty, stage, victim, text)
    ]
    nasty.snakemake("--cores", "1", "all")
    assert nasty.tables() == tiny_run.tables()
    weights = MODEL.replace(".json", ".safetensors")
    assert (nasty.folder / weights).read_bytes() == (tiny_run.folder / weights).read_bytes()
    log = (nasty.folder / "results/tiny/logs/train/ems.log").read_text()
    assert int(log.partition("resumed at step ")[2].split()[0]) >= 20
    assert len(killed) >= 9, killed
    assert {("train", "ems"), ("train", "snakemake")} <= set(killed)
    assert (nasty.folder / NASTY[1:] / "opus/Demo").is_dir()
    assert not list((nasty.folder / "results").rglob("*.part"))
    assert list(nasty.folder.parent.rglob("pwned")) == []
    assert "Nothing to be done" in nasty.snakemake("all")


def test_jobs_do_not_outlive_a_killed_snakemake(finished: Project) -> None:
    finished.edit("configs/tiny.yaml", "  steps: 60\n", "  steps: 100000\n")
    run = finished.start("snakemake", MODEL)
    process = _wait_for(finished, "train", run)
    assert process is not None
    run.kill()
    run.wait()
    assert process.wait(timeout=30) is None or not process.is_running()
    assert not _stages(finished, "train")
