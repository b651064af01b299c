"""Laws of a training on several processes: it equals the training of one."""

import os
import signal
import subprocess
import sys
import time
from functools import cache

import psutil
import pytest
import torch
from conftest import ROOT
from made.distributed import torchrun, words
from made.experiments import changed
from made.shards import contents
from made.train import BASE, CONTEXT, Toy, add_documents, json_rows, train_until
from safetensors.torch import load_file

from ems.base.errors import REQUEUE

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "tests" / "made/distributed.py"
NO_DROPOUT = {"model": {"dropout": 0.0, "attention_dropout": 0.0}}
SHORT = {"train": {"steps": 8, "validate_every": 4, "checkpoint_every": 4}}
ALIKE = changed(NO_DROPOUT, SHORT)
IN_BATCH = {"both_sides": True, "mask_duplicates": True, "margin": 0.2, "margin_warmup_steps": 4}
LIGHT = {"ugt": 1, "align": 1, "similarity": 2, "contrastive": 0, "xtr": 0}
JOBS = {  # two processes must do these as one does
    "gathered": {},
    "grouped": {"objectives": {"contrastive": {"negatives": 4}}},
    "astride": {"objectives": {"contrastive": {"negatives": 2}}, "train": {"batch_pairs": 6}},
    "in-batch": {"objectives": {"contrastive": IN_BATCH, "xtr": {"weight": 0}}},
    "lightweight": {"objectives": {name: {"weight": weight} for name, weight in LIGHT.items()}},
    "small-memory": {"train": {"grad_cache": 3, "checkpoint_layers": True}},
    "documents": changed(CONTEXT, NO_DROPOUT),
}
LONG = {"train": {"steps": 60, "validate_every": 30, "checkpoint_every": 5, "device": "auto"}}
DIVERGING = {"train": {"learning_rate": 1e38, "warmup_steps": 0, "checkpoint_every": 1}}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A toy and a folder for each job, all trained by two processes."""
    toy = add_documents(Toy(tmp_path_factory.mktemp("toy")))
    toy.index()
    jobs = {name: changed(ALIKE, changes) for name, changes in JOBS.items()}
    jobs |= {"changed": ALIKE, "long": LONG, "diverging": DIVERGING}
    for name, changes in jobs.items():
        toy.settings.write(changed(BASE, changes), name)
    train_until(toy, toy.folder / "changed", 4, **ALIKE)  # two processes go on with it
    torchrun(2, SCRIPT, toy.folder, *jobs)
    return toy


@pytest.fixture(scope="module")
def alone(toy, tmp_path_factory):
    """The model of a job that one process has trained."""
    return cache(
        lambda job: toy.train(tmp_path_factory.mktemp(job), **changed(ALIKE, JOBS.get(job, {})))
    )


def assert_same_training(model, expected):
    """Compare weights and losses of two model folders, up to rounding.

    Biases of keys are left out. They do not change softmax, so their gradient is only rounding,
    which Adam scales up.
    """
    for file in ("model.safetensors", "heads.safetensors"):
        mine, theirs = load_file(model / file), load_file(expected / file)
        assert mine.keys() == theirs.keys()
        for name, value in theirs.items():
            seen = slice(None)
            if name.endswith("attention.input.bias"):
                seen = torch.arange(len(value)) // (len(value) // 3) != 1  # queries, keys, values
            close = {"rtol": 1e-5, "atol": 2e-5, "msg": name}
            torch.testing.assert_close(mine[name][seen], value[seen], **close)
    logs = [json_rows(folder / "losses.jsonl") for folder in (model, expected)]
    assert len(logs[0]) == len(logs[1]) > 3
    for row, other in zip(*logs, strict=True):
        assert row.pop("part") == other.pop("part")
        scores, theirs = (each.pop("p1_by_language", {}) for each in (row, other))
        assert scores == pytest.approx(theirs, rel=1e-4)
        assert row == pytest.approx(other, rel=1e-4), (row, other)


def statuses(toy, job):
    return [(toy.folder / job / f"status{rank}").read_text() for rank in range(2)]


@pytest.mark.parametrize("job", JOBS)
def test_two_processes_equal_one_in_weights_and_losses(job, toy, alone):
    assert statuses(toy, job) == ["0", "0"]
    assert_same_training(toy.folder / job / "model", alone(job))


def test_the_jobs_differ(alone):
    losses = [json_rows(alone(job) / "losses.jsonl")[-1]["total"] for job in JOBS]
    same = {round(losses[list(JOBS).index(job)], 3) for job in ("gathered", "small-memory")}
    assert len(same) == 1
    assert len({round(loss, 3) for loss in losses}) == len(JOBS) - 1


def test_two_processes_resume_from_the_checkpoint_of_one(toy, alone):
    assert "resumed at step 4" in (toy.folder / "changed" / "log").read_text()
    assert_same_training(toy.folder / "changed" / "model", alone("gathered"))


def test_only_the_first_process_writes(toy):
    folder = toy.folder / "gathered"
    names = {path.name for path in folder.iterdir()}
    assert names == {"model", "times.jsonl", "log", "costs.json", "status0", "status1"}
    lines = (folder / "log").read_text().splitlines()
    assert len([line for line in lines if "train ems: from step 0" in line]) == 1
    assert "ems train" in lines[0]


def test_a_loss_that_is_not_finite_stops_all_processes_and_leaves_no_model(toy):
    assert statuses(toy, "diverging") == ["1", "1"]
    assert "not finite" in (toy.folder / "diverging" / "log").read_text()
    assert not (toy.folder / "diverging" / "model").exists()


def started(toy, job):
    """`ems train --processes 2` of the experiment `long`, as the workflow starts it."""
    command = [sys.executable, "-m", "ems", *words(toy.folder, job, "long"), "--processes", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(command, cwd=toy.folder, env=environment, start_new_session=True)


def wait_for_checkpoint(process, state):
    """Wait for a new checkpoint; return the processes that train."""
    before = set(state.glob("*/step-*"))
    while process.poll() is None and not set(state.glob("*/step-*")) - before:
        time.sleep(0.01)
    assert process.poll() is None
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "RANK" in child.environ()]


def test_two_processes_stopped_killed_and_resumed_give_the_same_bits(toy):
    state = toy.folder / "killed" / "state"
    for number, only_one in ((signal.SIGUSR1, False), (signal.SIGKILL, True)):
        process = started(toy, "killed")
        workers = wait_for_checkpoint(process, state)
        assert len(workers) == 2
        last = next(worker for worker in workers if worker.environ()["RANK"] == "1")
        os.kill(last.pid if only_one else process.pid, number)
        assert process.wait(timeout=60) == (1 if only_one else REQUEUE)
        assert not any(worker.is_running() for worker in workers)  # one gone, all gone
        assert not (toy.folder / "killed" / "model").exists()
        if not only_one:
            assert "stopped by SIGUSR1" in (toy.folder / "killed" / "log").read_text()
    process = started(toy, "killed")
    assert process.wait(timeout=120) == 0
    assert "resumed at step" in (toy.folder / "killed" / "log").read_text()
    expected, resumed = (contents(toy.folder / job / "model") for job in ("long", "killed"))
    assert resumed == expected
