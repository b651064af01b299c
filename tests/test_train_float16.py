"""Laws of training in float16: the scaled loss, skipped steps, and the same run when resumed.

They run on a CPU, where a user may not ask for it, and on a GPU where there is one.
"""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch
from made.objectives import DEVICES
from made.train import contents, rows, train_into, train_until

from ems.base.errors import EmsError
from ems.model.devices import check_precision
from ems.train import checkpoint, job, journal
from ems.train.step import LEAST_SCALE, Guard, Trainer

HALF = {"precision": "float16", "device": "auto"}


@pytest.fixture(params=DEVICES)
def anywhere(request, monkeypatch):
    """Train in float16 on this device."""
    monkeypatch.setattr(job, "choose_device", lambda setting: torch.device(request.param))
    monkeypatch.setattr(job, "check_precision", lambda setting, device: None)
    return request.param


@pytest.fixture
def on_cpu(monkeypatch):
    """As `anywhere`, on a CPU alone: a GPU's sums differ in their last bits from run to run."""
    monkeypatch.setattr(job, "choose_device", lambda setting: torch.device("cpu"))
    monkeypatch.setattr(job, "check_precision", lambda setting, device: None)


def scaled(monkeypatch, **options):
    """Change how the scale of the loss starts and grows."""
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, **options))


def test_it_is_refused_on_a_cpu_in_one_line(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for precision in ("float32", "bfloat16"):
        check_precision(precision, torch.device("cpu"))
    check_precision("float16", torch.device("cuda"))
    with pytest.raises(EmsError, match=r"^train\.precision: float16 needs a GPU.* set float32"):
        toy.train(tmp_path, train=HALF)
    assert not (tmp_path / "model").exists()
    with pytest.raises(EmsError, match=r"systems\.ems: train\.precision: float16 needs a GPU"):
        toy.experiment(train={**HALF, "device": "cpu"})


@pytest.mark.law("float16 = float32, its loss scaled")
def test_it_learns_as_in_float32(toy, tmp_path, monkeypatch, anywhere):
    """From a scale that skips no step: one step fewer alone changes the loss by a tenth here."""
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


def test_the_scale_changes_no_gradient_of_the_losses(toy, tmp_path, monkeypatch, on_cpu):
    """A power of two changes only the bits that float16 rounds to 0 or to infinity."""
    models = []
    for scale in (2.0**8, 2.0**12):
        with monkeypatch.context() as patch:
            scaled(patch, init_scale=scale)
            models.append(toy.train(tmp_path / str(scale), train={**HALF, "steps": 3}))
    one, other = (rows(model, "train")[-1]["total"] for model in models)
    assert one == pytest.approx(other, rel=1e-4)


OVERFLOW = {"init_scale": 2.0**30, "growth_interval": 4}


@pytest.mark.law("float16 = float32, its loss scaled")
def test_a_step_that_overflows_is_skipped_counted_and_lowers_the_scale(
    toy, tmp_path, monkeypatch, anywhere
):
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


def test_killed_and_resumed_it_gives_the_same_bytes_with_the_same_scale(
    toy, tmp_path, monkeypatch, on_cpu
):
    scaled(monkeypatch, **OVERFLOW)
    whole = toy.train(tmp_path / "whole", train=HALF)
    assert rows(whole, "train")[-1]["skipped"] > 5
    state = train_until(toy, tmp_path / "killed", 10, train=HALF)
    saved = checkpoint.verified(state / "step-00000010")["scaling"]
    assert 0 < saved["skipped"] <= 10
    assert saved["scale"] < OVERFLOW["init_scale"]
    train_into(toy, tmp_path / "killed", 23, train=HALF)
    assert contents(toy.train(tmp_path / "killed", train=HALF)) == contents(whole)


def test_a_scale_that_is_lost_gives_another_model(toy, tmp_path, monkeypatch, on_cpu):
    """A guard for the law above: it would notice."""
    scaled(monkeypatch, **OVERFLOW)
    whole = toy.train(tmp_path / "whole", train=HALF)
    train_until(toy, tmp_path / "killed", 10, train=HALF)
    monkeypatch.setattr(Trainer, "set_scaling", lambda trainer, state: None)
    assert contents(toy.train(tmp_path / "killed", train=HALF)) != contents(whole)


def test_large_batches_in_parts_are_scaled_too(toy, tmp_path, on_cpu):
    still = {"dropout": 0.0, "attention_dropout": 0.0}
    one, parts = (
        toy.train(tmp_path / str(count), model=still, train={**HALF, "grad_cache": count})
        for count in (0, 2)
    )
    last = [rows(model, "validation")[-1]["total"] for model in (one, parts)]
    assert last[0] == pytest.approx(last[1], rel=0.01)


def test_gradients_that_always_overflow_end_the_run_with_one_line(
    toy, tmp_path, monkeypatch, on_cpu
):
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


def test_a_loss_that_is_not_finite_is_no_overflow():
    weight = torch.nn.Parameter(torch.zeros(2))
    guard = Guard(torch.device("cpu"), skips=True)
    flags = []
    for loss, gradient in [(1.0, 3.0), (2.0, math.inf), (2.0, 3.0), (math.nan, 1.0), (4.0, 4.0)]:
        weight.grad = torch.tensor([gradient, 4.0])
        flags.append(float(guard.look(len(flags), {"total": torch.tensor(loss)}, [weight])))
    assert flags == [0, 1, 0, 1, 1]
    assert int(guard.skipped) == 1
    assert guard.first_bad()[0] == 3
