"""The workflow is killed in every stage, or finds damaged files: then it gives what one run gives.

Folders and files have nasty names. The advice for a damaged file is followed word by word.
"""

import contextlib
import re
import shlex
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest
import yaml
from conftest import Project, copied, copy_project, needs
from made.experiments import NASTY, quoted
from made.places import (
    ARCHIVE,
    CLEAN,
    INDEX,
    KEYS,
    MODEL,
    REPORT,
    RUN,
    SCORES,
    SEGMENTED,
    SHARD,
    TATOEBA,
    VOCABULARY,
    cut,
    cut_between_lines,
    empty,
    flip,
)
from made.train import of_documents, write_articles

from ems.base.processes import INTERVAL
from ems.text import wikipedia

pytestmark = pytest.mark.slow
# Words of the job to kill, in the order of the jobs; the process to kill (a download would be tried
# again if only `ems` were killed); the text in the output, or the file in results/, to wait for.
STAGES = [
    ("demo-mirror", "ems", "start"),
    ("fetch", "snakemake", "ems fetch "),
    ("fetch-evalset", "snakemake", "ems fetch-evalset "),
    ("evalkeys", "ems", "read evaluation sets: start"),
    ("prepare", "snakemake", "settings of stage prepare"),
    ("prepare", "ems", "settings of stage prepare"),
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
    ("fetch text", "snakemake", "ems fetch "),
    ("fetch dump", "snakemake", "ems fetch "),
    ("wikipedia", "ems", "articles of de"),
    ("prepare Wikipedia", "snakemake", "settings of stage prepare"),
    ("prepare DemoDocuments", "ems", "settings of stage prepare"),
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
    """A project whose folders and sources have nasty names, in which nothing has run yet."""
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
    """Return the index of the first stage that runs and its process; None when the run ends."""
    while run.poll() is None:
        jobs = list(project.jobs())
        for at, stage in enumerate(stages):
            for process, words in jobs:
                if words >= set(stage.split()):
                    return at, process
        time.sleep(0.05)  # a look at all processes costs as much as many jobs here
    return None


def _kill_once(project, stages, target="all"):
    """Start a run and kill it in the first of the stages that runs; return the stage's index, or
    None if the run ends.
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
        for lock in _locks(project):  # as `snakemake --unlock` does in some seconds
            lock.unlink()
    return at


def _locks(project):
    return list((project.folder / ".snakemake/locks").glob("*"))


def _kill_snakemake(run, process):
    """Kill Snakemake while its job is suspended, so that the job sees this before it ends."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.suspend()
        run.kill()
        time.sleep(INTERVAL + 0.2)
        process.resume()
    run.kill()
    run.wait()


def test_killed_in_every_stage_in_turn_and_run_again_gives_the_same_tables(tiny_run, nasty):
    """The last run has one core. No part of a name is run, or read as a flag or a pattern."""
    left, killed = STAGES, []
    while left and (at := _kill_once(nasty, left)) is not None:
        killed.append(left[at][:2])
        left = left[at + 1 :]
    nasty.snakemake("--cores", "1", "all")
    assert nasty.tables() == tiny_run.tables()
    weights = MODEL / "model.safetensors"
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
    """Return name -> bytes of the models, their losses and the mined pairs."""
    results = project.folder / "results/documents"
    return {
        str(path.relative_to(results)): path.read_bytes()
        for pattern in MADE
        for path in results.glob(pattern)
    }


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
    run = finished.start("snakemake", str(MODEL / "model.json"))
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


# --- damaged files

FOLLOWED = re.compile(r"delete (.+) and make it again: `([^`]+)`|make it: `([^`]+)`")
AGAIN = re.compile(r"delete (.+) and run the same command again")
MIRRORED = "data/embedded/opus/Demo/v1/moses/de-en.txt.zip"
PAIR = "--corpus Demo --version v1 --pair de-en"
TINY = "--experiment tiny"
EVERY = " ".join(f"{RUN}/scores/{name}/tatoeba.json" for name in ("ems", "untrained", "char-ngram"))
CLEANING = f"prepare {TINY} {PAIR} --data data --keys {KEYS} --text out --out out/receipt.json"
FETCHING = f"fetch --source data/embedded/opus {PAIR} --out {ARCHIVE}"
TRAINING = f"train {TINY} --system untrained --shards {INDEX} --vocabulary {VOCABULARY}"
EVALKEYS = f"evalkeys {TINY} --evalset tatoeba={TATOEBA.parent} --out out/keys.tsv"


def no_json(path):
    path.write_text("[]")


DAMAGES = {  # name -> (file, damage, the command of ems that finds it)
    "shard": (SHARD / "de.ids", flip, f"verify --index {INDEX}"),
    "index": (INDEX, no_json, f"verify --index {INDEX}"),
    "vocabulary": (VOCABULARY, flip, f"{TRAINING} --state out/state --out out/model"),
    "weights": (
        *(MODEL / "model.safetensors", cut),
        f"encode --model {MODEL} --language de --source README.md --out out.npy",
    ),
    "scores": (SCORES, no_json, f"table tatoeba {TINY} --sources {EVERY} --out out/t.tex"),
    "evaluation keys": (KEYS, cut_between_lines, CLEANING),
    "clean text": (CLEAN, empty, f"fit {TINY} --system char-ngram --text {CLEAN} --out out/ngrams"),
    "segmented text": (
        *(SEGMENTED, Path.unlink),
        f"shards --source {SEGMENTED} --vocabulary {VOCABULARY} --out out/shard",
    ),
    "report": (REPORT, flip, f"table corpora {TINY} --sources {REPORT} --out out/c.tex"),
    "archive": (ARCHIVE, cut, CLEANING),
    "download": (ARCHIVE, flip, f"verify --data data {TINY}"),
    "unit of an evaluation set": (TATOEBA, flip, f"verify --data data {TINY}"),
    "evaluation set": (TATOEBA, cut_between_lines, EVALKEYS),
    "lock": (ARCHIVE.with_name(f"{ARCHIVE.name}.lock.json"), no_json, FETCHING),
    "mirror": (MIRRORED, cut, FETCHING),
    "costs": (
        *(RUN / "costs/train/ems.json", cut),
        f"costs {TINY} --folder {RUN / 'costs'} --out out/costs.tex",
    ),
}


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    """A copy of a finished run; each test mends the file that it spoils."""
    return copied(tiny_run, tmp_path_factory.mktemp("damaged") / "project")


def follow(run, message):
    """Delete the files and run the command that the message names."""
    again = AGAIN.search(message)
    deleted, *commands = (again[1],) if again else FOLLOWED.search(message).groups()
    for name in shlex.split(deleted or ""):
        path = run.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for command in filter(None, commands):
        run.run("sh", "-c", command)


@pytest.mark.parametrize("name", DAMAGES)
def test_the_advice_for_a_damaged_file_works_word_by_word(name, run):
    path, damage, command = DAMAGES[name]
    damage(run.folder / path)
    lines = run.run("ems", *command.split(), expect=1).stderr.splitlines()
    assert "Traceback" not in "".join(lines)
    follow(run, lines[-1])
    run.run("ems", *command.split())


OF_A_PAIR = ("text/.made", ".parts/Demo/v1/de-en.json")  # the job of one pair adds its records


def contents(project):
    """Return name -> bytes of every result except those that differ from run to run."""
    files = [path for path in (project.folder / "results").rglob("*") if path.is_file()]
    files += (project.folder / "data").rglob("*.zip")
    names = {path: path.relative_to(project.folder).as_posix() for path in files}
    return {
        name: path.read_bytes()
        for path, name in names.items()
        if not name.startswith(("results/tiny/costs", "results/tiny/logs"))
        and not name.endswith(
            (
                ".snakemake_timestamp",
                ".svg",
                ".png",
                ".pdf",
                "figures/.made",
                "report/.made",
                *OF_A_PAIR,
            )
        )
    }


def test_after_all_advice_results_are_unchanged_and_only_times_are_drawn_again(tiny_run, run):
    """A model that was trained again took another time, which one figure shows."""
    made = re.findall(r"^ *(?:local)?rule (\w+):", run.snakemake("all"), re.MULTILINE)
    assert set(made) <= {"timed_figure", "report_page", "selected_report", "all"}
    assert "Nothing to be done" in run.snakemake("all")
    assert contents(run) == contents(tiny_run)
