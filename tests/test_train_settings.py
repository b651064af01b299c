"""Laws of what a system may set for itself: its seed, and the precision of its products."""

import math

import pytest
import torch
from made.train import LANGUAGES, contents, rows, train_until
from safetensors.torch import load_file

from ems.model.devices import has_bfloat16
from ems.model.objectives.system import DeviceBatch, System
from ems.train import job

LEARNT = ("model.safetensors", "heads.safetensors", "losses.jsonl")


def learnt(folder):
    return {name: contents(folder)[name] for name in LEARNT}


# --- seeds


def test_a_system_with_a_seed_of_its_own_is_the_system_of_an_experiment_with_that_seed(
    toy, never_killed, tmp_path
):
    """Given the same shards; all else of the experiment keeps the seed that it has."""
    own, same = (
        learnt(toy.train(tmp_path / str(seed), systems={"ems": {"train": {"seed": seed}}}))
        for seed in (2, 3)
    )
    assert own == learnt(toy.train(tmp_path / "other", seed=2))
    assert all(own[name] != content for name, content in learnt(never_killed).items())
    assert same == learnt(never_killed)  # the experiment has the seed 3 anyway


# --- precision

HALF = {"precision": "bfloat16"}
STILL = {"dropout": 0.0, "attention_dropout": 0.0}


def systems(toy, weights=None, half="bfloat16", **changes):
    """The same weights in float32 and in half precision; those of a model folder, or untrained."""
    names = []
    for precision in ("float32", half):
        torch.manual_seed(0)
        settings = toy.experiment(model=STILL, **changes).systems["ems"]
        system = System(settings, len(LANGUAGES), 300, precision)
        if weights:
            system.encoder.load_state_dict(load_file(weights / "model.safetensors"))
            system.heads.load_state_dict(load_file(weights / "heads.safetensors"))
        names.append(system)
    return names


def parts_and_gradients(toy, system):
    """Loss parts of a batch of 64 pairs, and the gradient of the total by parameter."""
    batch = DeviceBatch.copy(toy.store("training").draw(1, 1, 64, 1.0), torch.device("cpu"))
    parts = system(batch)
    parts["total"].backward()
    gradients = {name: value.grad for name, value in system.named_parameters()}
    return {name: value.detach() for name, value in parts.items()}, gradients


def cosine(first, second):
    first, second = first.flatten().tolist(), second.flatten().tolist()
    product = sum(a * b for a, b in zip(first, second, strict=True))
    return product / math.sqrt(sum(a * a for a in first) * sum(b * b for b in second))


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("trained", [False, True], ids=["untrained", "trained"])
def test_products_in_half_precision_give_the_losses_and_gradients_of_float32_nearly(
    toy, never_killed, trained, half
):
    full, half = systems(toy, never_killed if trained else None, half)
    (parts, gradients), (near, rough) = (parts_and_gradients(toy, each) for each in (full, half))
    assert set(near) == set(parts) == {"xtr", "contrastive", "total"}
    for name, value in parts.items():
        assert near[name].dtype == torch.float32
        assert near[name].item() == pytest.approx(value.item(), rel=0.01), name
        assert near[name] != value, f"{name}: it was not computed in half precision"
    together = [torch.cat([g.flatten() for g in each.values()]) for each in (gradients, rough)]
    assert cosine(*together) > 0.99
    for name, gradient in gradients.items():
        assert rough[name].dtype == torch.float32, name
        if gradient.norm() > 1e-3 * together[0].norm():
            assert cosine(gradient, rough[name]) > 0.98, name


def test_the_logits_of_xtr_are_of_the_precision_that_is_set(toy, monkeypatch):
    softmax, seen = torch.softmax, []

    def spy(logits, **how):
        seen.append(logits.dtype)
        return softmax(logits, **how)

    monkeypatch.setattr(torch, "softmax", spy)
    for half in ("bfloat16", "float16"):
        for system in systems(toy, half=half):
            parts_and_gradients(toy, system)
    assert seen == [torch.float32, torch.bfloat16] + 2 * [torch.float32]


def test_weights_and_what_is_saved_of_them_stay_float32(toy, tmp_path):
    _, half = systems(toy)
    assert {value.dtype for value in half.state_dict().values()} == {torch.float32}
    state = train_until(toy, tmp_path, 10, train=HALF)
    tensors = [load_file(path) for path in state.rglob("*.safetensors")]
    tensors += [load_file(path) for path in toy.train(tmp_path, train=HALF).glob("*.safetensors")]
    assert len(tensors) == 2 * 2 + 2  # two checkpoints, one model
    assert {value.dtype for each in tensors for value in each.values()} == {torch.float32}


def test_a_run_in_bfloat16_killed_or_not_gives_the_same_bytes_and_others_than_in_float32(
    toy, never_killed, tmp_path
):
    train_until(toy, tmp_path / "killed", 15, train=HALF)
    first, again, killed = (
        toy.train(tmp_path / name, train=HALF) for name in ("first", "again", "killed")
    )
    assert contents(first) == contents(again) == contents(killed)
    for name in LEARNT:
        assert contents(first)[name] != contents(never_killed)[name], name


@pytest.mark.parametrize("able", [False, True])
def test_a_machine_whose_products_in_bfloat16_are_slow_is_warned_about(
    toy, tmp_path, monkeypatch, caplog, able
):
    monkeypatch.setattr(job, "has_bfloat16", lambda device: able)
    caplog.set_level("WARNING", "ems")
    toy.train(tmp_path / "full", train={"steps": 0})
    assert not caplog.records
    toy.train(tmp_path / "half", train={**HALF, "steps": 0})
    assert ("train.precision: cpu has no bfloat16 units" in caplog.text) is not able


def test_a_pytorch_that_knows_no_capabilities_of_a_cpu_has_no_bfloat16(monkeypatch):
    """2.6, the oldest that EMS runs with."""
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert not has_bfloat16(torch.device("cpu"))


def test_training_in_bfloat16_learns_as_in_float32(toy, tmp_path):
    longer = {"steps": 60, "batch_pairs": 32}
    full, half = (
        rows(
            toy.train(tmp_path / precision, train={**longer, "precision": precision}), "validation"
        )
        for precision in ("float32", "bfloat16")
    )
    assert half[-1]["total"] < 0.8 * half[0]["total"]
    assert half[-1]["total"] == pytest.approx(full[-1]["total"], rel=0.05)


def test_a_training_that_ends_within_its_warm_up_says_so(toy, tmp_path, caplog):
    toy.train(tmp_path / "short", train={"steps": 2, "warmup_steps": 3})
    assert "train.warmup_steps: 3, but the training ends after 2" in caplog.text
    caplog.clear()
    toy.train(tmp_path / "whole", train={"steps": 2, "warmup_steps": 2})
    assert "train.warmup_steps: " not in caplog.text
