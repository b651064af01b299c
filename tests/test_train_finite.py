"""Laws of numbers that are not finite, and of training in float16."""

import json
import math
from functools import partial
from itertools import pairwise

import pytest
import torch
from made.objectives import DEVICES
from made.shards import contents, unpacked
from made.train import rows, train_into, train_until

from ems.base.errors import EmsError
from ems.model.devices import Adam, check_precision
from ems.train import checkpoint, job, journal
from ems.train.journal import Journal
from ems.train.step import LEAST_SCALE, NORM, Guard, Trainer


def spoiled(monkeypatch, step, value, what):
    """Make the loss, or one number of one gradient, of a step `value`."""
    update = Trainer.update

    def spoil_and_update(trainer, at, parts):
        if at == step and what == "gradient":
            trainer.system.encoder.layers[0].inner.bias.grad[0] = value
        elif at == step:
            parts["total"] = parts["total"] * value
        update(trainer, at, parts)

    monkeypatch.setattr(Trainer, "update", spoil_and_update)


def as_on_a_gpu(monkeypatch):
    unread = property(lambda trainer: False, lambda trainer, value: None)
    monkeypatch.setattr(Trainer, "waits", unread, raising=False)


@pytest.mark.parametrize("device", ["cpu", "as on a GPU"])
@pytest.mark.parametrize(("what", "value"), [("loss", math.nan), ("gradient", math.inf)])
def test_a_bad_step_stops_the_run(what, value, device, toy, never_killed, tmp_path, monkeypatch):
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
    """The pairs of the message and of the file are the pairs of the batch."""
    path = state / "bad-batch-12.json"
    pairs = json.loads(path.read_text())["pairs"]
    assert str(path) in message
    assert "all 8" in message
    store = toy.store("training")
    shards = {str(shard.folder): shard for shard in store.shards}
    for pair, sides in zip(pairs, unpacked(store.draw(3, 12, 8, 0.5)), strict=True):
        shard, row = shards[pair["shard"]], pair["row"]
        assert [tuple(shard.piece(side, row)) for side in (0, 1)] == [ids for _, ids in sides]
        assert (pair["line"], pair["pair"]) == (shard.lines[row], "-".join(shard.languages))
    assert f"{pairs[0]['pair']} line {pairs[0]['line']}" in message


def test_until_the_flag_is_read_no_step_changes_a_weight_or_a_moment(toy, tmp_path, monkeypatch):
    """Step 12 is bad; steps 13 and 14 run before the flag is read."""
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


def test_the_guard_changes_no_bit_of_a_good_run(toy, never_killed, tmp_path, monkeypatch):
    as_on_a_gpu(monkeypatch)
    assert contents(toy.train(tmp_path)) == contents(never_killed)


@pytest.mark.parametrize(
    ("skips", "flags", "first"), [(False, [0, 1, 1, 1, 1], 1), (True, [0, 1, 0, 1, 1], 3)]
)
def test_the_guard_remembers_the_first_bad_step_and_skips_overflows(skips, flags, first):
    weight = torch.nn.Parameter(torch.zeros(2))
    guard, seen = Guard(torch.device("cpu"), skips), []
    steps = [(1.0, 3.0), (2.0, math.inf), (2.0, 3.0), (math.nan, 1.0), (4.0, 4.0)]
    for step, (loss, gradient) in enumerate(steps):
        weight.grad = torch.tensor([gradient, 4.0])
        seen.append(float(guard.look(step, {"total": torch.tensor(loss)}, [weight])))
        assert (guard.first_bad() is None) == (step < first)
    assert seen == flags
    assert int(guard.skipped) == skips
    step, values = guard.first_bad()
    assert step == first
    if not skips:
        assert values == {"total": 2.0, NORM: math.inf}


def test_a_row_of_the_log_has_the_mean_losses_since_the_row_before(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LOG_EVERY", 4)
    values, backward = [], Trainer.backward

    def spy(trainer, batch):
        parts = backward(trainer, batch)
        values.append({name: part.item() for name, part in parts.items()})
        return parts

    monkeypatch.setattr(Trainer, "backward", spy)
    out = toy.train(tmp_path, train={"steps": 10})
    logged = rows(out, "train")
    assert [row["step"] for row in logged] == [4, 8, 10]
    for row, steps in zip(logged, (values[:4], values[4:8], values[8:]), strict=True):
        for name in ("xtr", "contrastive", "total"):
            mean = sum(step[name] for step in steps) / len(steps)
            assert row[name] == pytest.approx(mean, rel=1e-5)


HALF = {"precision": "float16", "device": "auto"}


@pytest.fixture
def on_cpu(monkeypatch):
    """Allow float16 on a CPU, whose sums have the same bits in each run."""
    monkeypatch.setattr(job, "choose_device", lambda setting: torch.device("cpu"))
    monkeypatch.setattr(job, "check_precision", lambda setting, device: None)


@pytest.fixture(params=DEVICES)
def anywhere(request, monkeypatch, on_cpu):
    """Allow float16 on each device."""
    monkeypatch.setattr(job, "choose_device", lambda setting: torch.device(request.param))


def scaled(monkeypatch, **options):
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, **options))


def test_float16_is_refused_on_a_cpu(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for precision in ("float32", "bfloat16"):
        check_precision(precision, torch.device("cpu"))
    check_precision("float16", torch.device("cuda"))
    with pytest.raises(EmsError, match=r"^train\.precision: float16 needs a GPU.* set float32"):
        toy.train(tmp_path, train=HALF)
    assert not (tmp_path / "model").exists()


@pytest.mark.law("float16 = float32, its loss scaled")
@pytest.mark.slow
def test_float16_learns_as_float32(toy, tmp_path, monkeypatch, anywhere):
    """From a scale that skips no step: a single skipped one would change the loss by a tenth."""
    scaled(monkeypatch, init_scale=2.0**12)
    longer = {"steps": 60, "batch_pairs": 32}
    full, half = (
        rows(toy.train(tmp_path / name, train={**longer, **own}), "validation")
        for name, own in (("full", {"device": "auto"}), ("half", HALF))
    )
    assert half[-1]["total"] < 0.8 * half[0]["total"]
    assert half[-1]["total"] == pytest.approx(full[-1]["total"], rel=0.03)
    assert half[0]["total"] == pytest.approx(full[0]["total"], rel=1e-5)  # float32 in validation
    assert half[-1]["total"] != full[-1]["total"]


OVERFLOW = {"init_scale": 2.0**30, "growth_interval": 4}


@pytest.mark.law("float16 = float32, its loss scaled")
def test_an_overflowing_step_is_skipped(toy, tmp_path, monkeypatch, anywhere):
    scaled(monkeypatch, **OVERFLOW)
    monkeypatch.setattr(journal, "LOG_EVERY", 5)
    updated, scales, update = [], [], Trainer.update

    def spy(trainer, step, parts):
        before = [value.detach().clone() for value in trainer.system.parameters()]
        scales.append(trainer.scaler.get_scale())
        update(trainer, step, parts)
        pairs = zip(before, trainer.system.parameters(), strict=True)
        updated.append(any(not torch.equal(*pair) for pair in pairs))

    monkeypatch.setattr(Trainer, "update", spy)
    out = toy.train(tmp_path, train=HALF)
    assert updated[0] is False
    assert 5 < updated.count(False) < 30
    for row in rows(out, "train"):
        assert row["skipped"] == updated[: row["step"]].count(False)
        assert math.isfinite(row["total"])
    halved = [after / before for before, after in pairwise(scales)]
    assert all(change == 0.5 for change, good in zip(halved, updated, strict=False) if not good)
    assert {change for change, good in zip(halved, updated, strict=False) if good} == {1, 2}
    assert rows(out, "train")[-1]["scale"] == pytest.approx(scales[-1], rel=0.5)


def test_a_resumed_run_in_float16_has_the_same_bytes(toy, tmp_path, monkeypatch, on_cpu):
    scaled(monkeypatch, **OVERFLOW)
    whole = toy.train(tmp_path / "whole", train=HALF)
    assert rows(whole, "train")[-1]["skipped"] > 5
    state = train_until(toy, tmp_path / "killed", 10, train=HALF)
    saved = checkpoint.verified(state / "step-00000010")["scaling"]
    assert 0 < saved["skipped"] <= 10
    assert saved["scale"] < OVERFLOW["init_scale"]
    train_into(toy, tmp_path / "killed", 23, train=HALF)
    assert contents(toy.train(tmp_path / "killed", train=HALF)) == contents(whole)


@pytest.mark.slow
def test_gradcache_scales_the_loss_too(toy, tmp_path, on_cpu):
    still = {"dropout": 0.0, "attention_dropout": 0.0}
    one, parts = (
        toy.train(tmp_path / str(count), model=still, train={**HALF, "grad_cache": count})
        for count in (0, 2)
    )
    last = [rows(model, "validation")[-1]["total"] for model in (one, parts)]
    assert last[0] == pytest.approx(last[1], rel=0.01)


def test_gradients_that_always_overflow_end_the_run(toy, tmp_path, monkeypatch, on_cpu):
    backward = torch.amp.GradScaler.unscale_

    def overflowing(scaler, optimizer):
        for group in optimizer.param_groups:
            group["params"][0].grad.fill_(math.inf)
        backward(scaler, optimizer)

    monkeypatch.setattr(torch.amp.GradScaler, "unscale_", overflowing)
    scaled(monkeypatch, init_scale=8 * LEAST_SCALE)
    with pytest.raises(EmsError, match="overflow float16 even at the smallest loss scale"):
        toy.train(tmp_path, train=HALF)
    assert not (tmp_path / "model").exists()
