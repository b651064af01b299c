"""Laws of what is not finite: no weight ever sees it, and the batch is named."""

import json
import math

import pytest
import torch
from made.train import contents, rows, train_stopped, train_until, weights_of
from safetensors.torch import load_file

from ems.base.errors import EmsError
from ems.model.devices import Adam
from ems.train import checkpoint, journal
from ems.train.journal import Journal
from ems.train.step import NORM, Guard, Trainer


def spoiled(monkeypatch, step, value, what):
    """Make the loss, or one number of one gradient, of a step `value`."""
    forward, update = Trainer.forward, Trainer.update

    def bad_loss(trainer, batch):
        parts = forward(trainer, batch)
        if batch.step == step and what == "loss":
            parts["total"] = parts["total"] * value
        return parts

    def bad_gradient(trainer, at, parts):
        if at == step and what == "gradient":
            trainer.system.encoder.layers[0].inner.bias.grad[0] = value
        update(trainer, at, parts)

    monkeypatch.setattr(Trainer, "forward", bad_loss)
    monkeypatch.setattr(Trainer, "update", bad_gradient)


def as_on_a_gpu(monkeypatch):
    """Nothing waits for the loss of a step."""
    start = Trainer.__init__

    def unwaiting(trainer, *arguments):
        start(trainer, *arguments)
        trainer.waits = False

    monkeypatch.setattr(Trainer, "__init__", unwaiting)


@pytest.mark.parametrize("device", ["cpu", "as on a GPU"])
@pytest.mark.parametrize(("what", "value"), [("loss", math.nan), ("gradient", math.inf)])
def test_it_stops_names_step_and_pairs_and_keeps_the_checkpoint(
    what, value, device, toy, never_killed, tmp_path, monkeypatch
):
    if device != "cpu":
        as_on_a_gpu(monkeypatch)
    spoiled(monkeypatch, 12, value, what)
    steps, step = [], Adam.step
    monkeypatch.setattr(Adam, "step", lambda *_: steps.append(1) or step(*_))
    with pytest.raises(EmsError, match=r"loss of step 12 is not finite.*learning_rate") as error:
        toy.train(tmp_path)
    assert len(steps) == (12 if device == "cpu" else 15)  # before the step, or at a checkpoint
    message = str(error.value)
    assert "\n" not in message
    assert f"{'total' if what == 'loss' else NORM} {value}" in message
    (state,) = (path for path in (tmp_path / "state").iterdir() if path.is_dir())
    assert [checkpoint.step_of(path) for path in checkpoint.checkpoints(state)] == [5, 10]
    check_named(toy, state, message)
    assert not (tmp_path / "model").exists()
    monkeypatch.undo()
    assert contents(toy.train(tmp_path)) == contents(never_killed)


def check_named(toy, state, message):
    """The pairs of the message and the file are those of the batch, by their lines."""
    path = state / "bad-batch-12.json"
    pairs = json.loads(path.read_text())["pairs"]
    assert str(path) in message
    assert "all 8" in message
    store = toy.store("training")
    batch = store.draw(3, 12, 8, 0.5)
    ends = batch.lengths.cumsum().tolist()
    sentences = [batch.tokens[e - n : e].tolist() for e, n in zip(ends, batch.lengths, strict=True)]
    by_row = dict(zip(batch.rows.tolist(), sentences, strict=True))
    for at, pair in enumerate(pairs):
        shard = next(s for s in store.shards if str(s.folder) == pair["shard"])
        sentences = [shard.piece(side, pair["row"]).tolist() for side in (0, 1)]
        assert sentences == [by_row[at], by_row[8 + at]]
        assert pair["line"] == shard.lines[pair["row"]]
        assert pair["pair"] == "-".join(shard.languages)
    first = pairs[0]
    assert f"{first['pair']} line {first['line']}" in message


def test_until_the_flag_is_read_no_step_changes_a_weight_or_a_moment(toy, tmp_path, monkeypatch):
    """As on a GPU: step 12 is bad, steps 13 and 14 come before anybody looks."""
    as_on_a_gpu(monkeypatch)
    spoiled(monkeypatch, 12, math.nan, "gradient")
    seen = {}
    add = Journal.add

    def look(run, parts):
        weights = [value.detach().clone() for value in run.trainer.system.parameters()]
        state = run.trainer.optimizer.state_dict()["state"].values()
        moments = [value.clone() for part in state for value in part.values()]
        seen[run.done.step + 1] = weights + moments
        add(run, parts)

    monkeypatch.setattr(Journal, "add", look)
    with pytest.raises(EmsError, match="step 12"):
        toy.train(tmp_path)
    assert max(seen) == 15
    for done in (13, 14, 15):
        assert all(map(torch.equal, seen[12], seen[done]))
    assert not all(map(torch.equal, seen[11], seen[12]))


def test_the_guard_changes_nothing_of_a_run_without_fault(toy, never_killed, tmp_path, monkeypatch):
    """Also the fused optimiser with its flag at 0 gives the same bytes."""
    as_on_a_gpu(monkeypatch)
    assert contents(toy.train(tmp_path)) == contents(never_killed)


def test_the_first_bad_step_is_remembered_with_its_values():
    weight = torch.nn.Parameter(torch.zeros(2))
    guard = Guard(torch.device("cpu"))
    flags = []
    for step, (loss, gradient) in enumerate([(1.0, 3.0), (2.0, math.inf), (math.nan, 1.0), (4, 4)]):
        weight.grad = torch.tensor([gradient, 4.0])
        flags.append(float(guard.look(step, {"total": torch.tensor(loss)}, [weight])))
        if step == 0:
            assert guard.first_bad() is None
    assert flags == [0, 1, 1, 1]
    assert guard.first_bad() == (1, {"total": 2.0, NORM: math.inf})


def test_the_logged_losses_are_the_means_since_the_row_before(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LOG_EVERY", 4)
    values = []
    forward = Trainer.forward

    def spy(trainer, batch):
        parts = forward(trainer, batch)
        values.append({name: part.item() for name, part in parts.items()})
        return parts

    monkeypatch.setattr(Trainer, "forward", spy)
    out = toy.train(tmp_path, train={"steps": 10})
    logged = rows(out, "train")
    assert [row["step"] for row in logged] == [4, 8, 10]
    for row, steps in zip(logged, (values[:4], values[4:8], values[8:]), strict=True):
        for name in ("xtr", "contrastive", "total"):
            mean = sum(step[name] for step in steps) / len(steps)
            assert row[name] == pytest.approx(mean, rel=1e-5)


# --- averaging


def test_the_model_is_the_mean_of_the_last_checkpoints(toy, tmp_path, monkeypatch):
    settings = {"average_checkpoints": 3, "steps": 28, "keep_checkpoints": 1}
    saved, save = {}, journal.save_checkpoint

    def spy(state, modules, optimizer, done, keep):
        save(state, modules, optimizer, done, keep)
        saved[done.step] = load_file(state / f"step-{done.step:08}/model.safetensors")

    monkeypatch.setattr(journal, "save_checkpoint", spy)
    out = toy.train(tmp_path, train=settings)
    assert sorted(saved) == [5, 10, 15, 20, 25, 28]
    weights = weights_of(out)
    assert weights.keys() == saved[28].keys()
    for name, tensor in weights.items():
        parts = [saved[step][name].flatten().tolist() for step in (20, 25, 28)]
        mean = [sum(values) / 3 for values in zip(*parts, strict=True)]  # Python's float64
        assert torch.equal(tensor.flatten(), torch.tensor(mean, dtype=torch.float64).float()), name


def test_an_average_is_the_same_after_stops_at_other_steps(toy, tmp_path):
    """A checkpoint that only a stopped run has is not averaged."""
    settings = {"average_checkpoints": 2}
    whole = contents(toy.train(tmp_path / "whole", train=settings))
    train_stopped(toy, tmp_path / "stopped", 22, train=settings)
    assert contents(toy.train(tmp_path / "stopped", train=settings)) == whole
    assert whole["model.safetensors"] != contents(toy.train(tmp_path / "x"))["model.safetensors"]


def test_an_average_over_a_corrupt_checkpoint_is_refused_and_can_be_made_again(toy, tmp_path):
    settings = {"average_checkpoints": 3}
    state = train_until(toy, tmp_path, 30, train=settings)
    path = state / "step-00000025/model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00\x00")
    with pytest.raises(
        EmsError, match=r"delete step-00000025, step-00000030 in .* run the same command again"
    ):
        toy.train(tmp_path, train=settings)
    for step in (25, 30):
        checkpoint._remove(state / f"step-{step:08}")
    whole = contents(toy.train(tmp_path / "whole", train=settings))
    assert contents(toy.train(tmp_path, train=settings)) == whole
