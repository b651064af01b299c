"""Laws of the learning rate and of the optimiser's variants."""

import math

import pytest
import torch
from safetensors.torch import load_file
from train_made import contents, train_until

from ems.train.step import learning_rate

COSINE = [0.15 * (1 + math.cos(math.pi * t / 12)) * min(1, (t + 1) / 5) for t in range(13)]
RATES = {  # schedule: (steps, peak, warm-up, rates)
    "constant": (20, 0.5, 4, [0.125, 0.25, 0.375] + [0.5] * 17),
    "linear": (10, 0.6, 4, [0.15, 0.3, 0.45, 0.6, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]),
    "cosine": (12, 0.3, 5, COSINE),  # that of the authors' code, times the warm-up
}


@pytest.mark.parametrize("schedule", RATES)
def test_the_learning_rate_rises_linearly_then_stays_or_falls_to_zero(schedule):
    steps, peak, warmup, rates = RATES[schedule]
    made = [learning_rate(step, steps, peak, warmup, schedule) for step in range(len(rates))]
    assert made == pytest.approx(rates, abs=1e-15)
    assert learning_rate(0, steps, peak, 0, schedule) == peak


def test_a_step_uses_the_rate_of_the_schedule(toy, tmp_path, monkeypatch):
    rates, step = [], torch.optim.Adam.step

    def spy(optimizer, *rest):
        rates.extend(group["lr"] for group in optimizer.param_groups)
        return step(optimizer, *rest)

    monkeypatch.setattr(torch.optim.Adam, "step", spy)
    toy.train(tmp_path, train={"steps": 8})
    assert rates == pytest.approx([0.002, 0.004, 0.006, 0.008, 0.01, 0.01, 0.02 / 3, 0.01 / 3])


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_period_longer_than_the_run_is_the_start_of_a_longer_run(schedule):
    """The authors' code has a period of 15 epochs and stops after 3."""
    short = [learning_rate(step, 10, 0.3, 2, schedule, 50) for step in range(10)]
    assert short == [learning_rate(step, 50, 0.3, 2, schedule) for step in range(10)]
    ended = [learning_rate(step, 50, 0.3, 2, schedule, 10) for step in range(10, 50)]
    assert ended == pytest.approx([0.0] * 40)


def test_amsgrad_keeps_the_largest_second_moment_and_resumes_bit_for_bit(toy, tmp_path):
    settings = {"amsgrad": True, "schedule": "cosine", "schedule_steps": 60}
    state = train_until(toy, tmp_path / "killed", 20, train=settings)
    moments = load_file(state / "step-00000020/optimizer.safetensors")
    names = [name for name in moments if name.endswith("max_exp_avg_sq")]
    assert len(names) == len({name.partition(".")[0] for name in moments})
    gaps = [moments[name] - moments[name.replace("max_", "")] for name in names]
    assert all((gap >= 0).all() for gap in gaps)
    assert any((gap > 0).any() for gap in gaps)
    killed, whole = (toy.train(tmp_path / name, train=settings) for name in ("killed", "whole"))
    assert contents(killed) == contents(whole)
