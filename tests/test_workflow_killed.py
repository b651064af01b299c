"""The tiny experiment, and one of documents and mined pairs, killed in every stage, where every
folder that a user can name has a nasty name: run again, they give what one run gives.
"""

import contextlib
import shutil
import signal
import time

import psutil
import pytest
import yaml
from conftest import Project, copy_project, needs
from made.documents import of_documents, write_articles
from made.experiments import NASTY, quoted

from ems.base.processes import INTERVAL
from ems.text import wikipedia

MODEL = "results/tiny/models/ems/model.json"
# Words of the job with which a run is killed (none that may come before those above it), what is
# killed of it (a download would be tried again if it were only `ems`), and the text in the output
# after which that happens, or the file in results/.
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
OF_DOCUMENTS = [
    ("fetch text", "snakemake", "copy en.txt"),
    ("fetch dump", "snakemake", "copy dewiki"),
    ("wikipedia", "ems", "articles of de"),
    ("clean Wikipedia", "snakemake", "decontaminate Wikipedia"),
    ("clean DemoDocuments", "ems", "decontaminate DemoDocuments"),
    ("shards", "ems", "encode "),
    ("train context", "ems", "checkpoint at step 20"),
    ("train context", "snakemake", "checkpoint at step 30"),
    ("mine-documents coherent-1", "snakemake", "mine coherent-1: encode"),
    ("mine-documents coherent-1", "ems", "*/state/mine/coherent-1/compared/*/done/00000.json"),
    ("train coherent-1", "snakemake", "checkpoint at step 10"),
    ("train coherent-1", "ems", "checkpoint at step 30"),
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


def _kill_once(project, stages, target="all"):
    """Start a run and kill -9 it in the first of the stages that it comes to; the place of that
    stage, None if the run comes to its end.
    """
    run = project.start("snakemake", target)
    job = _first_job(project, [name for name, _, _ in stages], run)
    if job is None:
        return None
    at, process = job
    _, victim, text = stages[at]
    log = project.folder / "started.log"
    results = project.folder / "results"
    while process.is_running() and run.poll() is None:
        if text in log.read_text() or any(results.glob(text)):
            break
        time.sleep(0.01)
    if victim == "ems" and process.is_running():
        process.kill()
        run.wait()
    else:
        _kill_snakemake(run, process)
        _unlock(project)
    return at


def _unlock(project):
    """Do what `snakemake --unlock` does, without the seconds of its start."""
    for lock in _locks(project):
        lock.unlink()


def _locks(project):
    return list((project.folder / ".snakemake/locks").glob("*"))


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


COHERENT = "results/documents/models/coherent-1/model.json"
MADE = ("models/*/model.safetensors", "models/*/losses.jsonl", "models/*/mined/*")


def _documents(project, folder):
    """Make an experiment of documents in `folder` the project's."""
    tiny = yaml.safe_load((project.folder / "configs/tiny.yaml").read_text())
    sources = {"documents": "embedded", "wikipedia": str(folder)}
    project.select("documents", of_documents(tiny, sources))


def _made(project):
    """The bytes of the models, their losses and the mined pairs, by name."""
    results = project.folder / "results/documents"
    return {
        str(path.relative_to(results)): path.read_bytes()
        for pattern in MADE
        for path in results.glob(pattern)
    }


@pytest.mark.slow
def test_documents_killed_in_every_stage_in_turn_give_the_same_models_and_mined_pairs(tmp_path):
    for need in wikipedia.NEEDS:
        needs(need.present(), need.install)
    whole, nasty = tmp_path / "whole", tmp_path / f"{NASTY} {{}} {{x}}"
    for folder, dumps in ((whole, tmp_path / "dumps"), (nasty, tmp_path / NASTY)):
        folder.mkdir()
        write_articles(dumps)
        _documents(copy_project(folder), dumps)
    whole, nasty = Project(whole), Project(nasty)
    whole.snakemake(COHERENT)
    left, killed = OF_DOCUMENTS, []
    while left and (at := _kill_once(nasty, left, COHERENT)) is not None:
        killed.append(left[at])
        left = [*left[:at], *left[at + 1 :]]
    nasty.snakemake(COHERENT)
    assert len(killed) >= 10, killed
    assert len(_made(whole)) == 2 * 2 + 2
    assert _made(nasty) == _made(whole)
    logs = nasty.folder / "results/documents/logs"
    assert "resumed, " in (logs / "mine/coherent-1.log").read_text()
    for name in ("context", "coherent-1"):
        log = (logs / f"train/{name}.log").read_text()
        assert int(log.partition("resumed at step ")[2].split()[0]) >= 10
    assert not list((nasty.folder / "results").rglob("*.part"))
    assert list(tmp_path.rglob("pwned")) == []
    assert "Nothing to be done" in nasty.snakemake(COHERENT)


def test_jobs_do_not_outlive_a_killed_snakemake_and_its_lock_is_freed_by_unlock(finished):
    finished.edit("configs/tiny.yaml", "  steps: 60\n", "  steps: 100000\n")
    run = finished.start("snakemake", MODEL)
    _, process = _first_job(finished, ["train"], run)
    run.kill()
    run.wait()
    assert process.wait(timeout=30) is None or not process.is_running()
    assert not list(finished.jobs())
    assert _locks(finished)
    finished.snakemake("--unlock")
    assert not _locks(finished)


def test_a_snakemake_that_is_terminated_while_it_finishes_a_job_ends(finished):
    run = finished.start("snakemake", "--forceall", "results/tiny/text/evalkeys.tsv")
    log = finished.folder / "started.log"
    while "Select jobs" not in log.read_text():
        assert run.poll() is None, log.read_text()
        time.sleep(0.01)
    until = time.monotonic() + 60
    while run.poll() is None and time.monotonic() < until:
        run.send_signal(signal.SIGTERM)
        time.sleep(0.02)
    assert run.poll(), log.read_text()
    assert "Will exit after finishing" in log.read_text()
    assert not _locks(finished)
