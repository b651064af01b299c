"""Laws of stopping: whatever kills a run, and whenever, the resumed run ends the same."""

import itertools
import multiprocessing
import os
import signal

import pytest
import torch
from made.distributed import words
from made.shards import contents
from made.train import Toy, json_rows, rows, signal_in_step, train_until
from safetensors.torch import load_file

from ems.base.errors import REQUEUE, EmsError
from ems.commands import cli
from ems.train import checkpoint, journal
from ems.train.step import Trainer

pytestmark = pytest.mark.slow

# Several shards of each language pair, and more draws (20 steps of 16) than there are pairs (220).
LONG = {"steps": 20, "batch_pairs": 16, "validate_every": 10, "checkpoint_every": 4}
AFTER = 20  # the step whose weights and moments are compared


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    toy = Toy(tmp_path_factory.mktemp("toy"), shard_pairs=50)
    assert len(toy.shards("training")) == 4 + 2
    assert 20 * 16 > toy.store("training").sizes.sum() == 220
    return toy


@pytest.fixture(scope="module")
def never_killed(toy, tmp_path_factory):
    return finished(toy, tmp_path_factory.mktemp("whole"))


def finished(toy, folder):
    """Train on to the end: the model folder, and the weights and moments of the last checkpoint."""
    state = train_until(toy, folder, AFTER, train=LONG)
    last = state / f"step-{AFTER:08}"
    tensors = {(n, k): v for n in checkpoint.FILES[:2] for k, v in load_file(last / n).items()}
    return contents(toy.train(folder, train=LONG)), tensors


def assert_same(run, expected):
    (model, tensors), (other, others) = run, expected
    assert model == other
    assert tensors.keys() == others.keys()
    assert all(torch.equal(tensors[key], value) for key, value in others.items())


KILLS = {  # (module or class, its function, the call of it that dies)
    "forward of the first step": (Trainer, "step", 1),
    "backward": (Trainer, "backward", 7),
    "optimiser step": (Trainer, "update", 10),
    "after the optimiser step": (journal.Journal, "add", 12),
    "weights of a checkpoint": (checkpoint, "save_tensors", 3),
    "moments of a checkpoint": (checkpoint, "save_tensors", 4),
    "its logs": (checkpoint, "write_text", 3),
    "its manifest": (checkpoint, "write_json", 2),
    "old checkpoint half removed": (checkpoint.shutil, "rmtree", 1),
}


def train_and_die(toy, folder, kill):
    owner, name, calls = KILLS[kill]
    one, count = getattr(owner, name), itertools.count(1)

    def wrapped(*arguments):
        if next(count) == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return one(*arguments)

    setattr(owner, name, wrapped)
    toy.train(folder, train=LONG)


@pytest.mark.parametrize("kill", KILLS)
def test_killed_at_this_point_and_resumed_equals_never_killed(kill, toy, never_killed, tmp_path):
    """SIGKILL of a process of its own; a server forks it, so that torch is imported once."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=train_and_die, args=(toy, tmp_path, kill))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert_same(finished(toy, tmp_path), never_killed)


def test_the_command_saves_at_a_signal_and_exits_for_requeueing(toy, never_killed, monkeypatch):
    folder = toy.folder / "stopped"
    folder.mkdir()
    toy.experiment(train=LONG)
    toy.index()
    monkeypatch.chdir(toy.folder)
    signal_in_step(monkeypatch, 7)
    assert cli.main(words(toy.folder, "stopped", "mine")) == REQUEUE == 75
    text = (folder / "log").read_text()
    assert "stopped by SIGTERM after step 8, which is saved" in text
    assert "error" not in text
    assert not (folder / "model").exists()
    monkeypatch.undo()
    assert_same(finished(toy, folder), never_killed)


@pytest.mark.parametrize("step", [1, 7, 18])
def test_a_signal_in_a_step_changes_nothing(step, toy, never_killed, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "ems")
    signal_in_step(monkeypatch, step)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(EmsError, match=f"SIGTERM after step {step + 1}") as error:
        toy.train(tmp_path, train=LONG)
    assert error.value.status == REQUEUE
    assert signal.getsignal(signal.SIGTERM) is before
    monkeypatch.undo()
    caplog.clear()
    assert_same(finished(toy, tmp_path), never_killed)
    assert f"resumed at step {step + 1}" in caplog.text


def test_a_signal_interrupts_validation(toy, never_killed, tmp_path, monkeypatch):
    validate, calls = journal.validate, itertools.count(1)

    def interrupted(system, *arguments):
        if next(calls) == 2:
            signal.raise_signal(signal.SIGUSR1)
            pytest.fail("validation went on")
        return validate(system, *arguments)

    monkeypatch.setattr(journal, "validate", interrupted)
    with pytest.raises(EmsError, match="SIGUSR1 after step 10,"):
        toy.train(tmp_path, train=LONG)
    monkeypatch.undo()
    assert_same(finished(toy, tmp_path), never_killed)
    assert [row["step"] for row in rows(tmp_path / "model", "validation")] == [0, 10, 20]


def test_a_signal_in_the_last_step_lets_the_run_end(toy, never_killed, tmp_path, monkeypatch):
    signal_in_step(monkeypatch, 19)
    toy.train(tmp_path, held_out=False, train=LONG)
    assert (tmp_path / "model/model.json").exists()
    assert json_rows(tmp_path / "times.jsonl")[-1]["step"] == 20
