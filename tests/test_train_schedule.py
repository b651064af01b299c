"""Laws of the learning rate and of the optimiser's variants."""

import math

import pytest
import torch
from safetensors.torch import load_file
from train_made import contents, train_until

from ems.train.step import learning_rate


def test_the_learning_rate_rises_linearly_then_stays():
    rates = [learning_rate(step, 20, 0.5, 4, "constant") for step in range(20)]
    assert rates == pytest.approx([0.125, 0.25, 0.375] + [0.5] * 17)


def test_the_learning_rate_rises_linearly_then_falls_to_zero_after_the_last_step():
    rates = [learning_rate(step, 10, 0.6, 4, "linear") for step in range(11)]
    rise, fall = [0.15, 0.3, 0.45, 0.6], [0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    assert rates == pytest.approx(rise + fall)


def test_the_cosine_is_that_of_the_authors_code_times_the_warm_up():
    rates = [learning_rate(step, 12, 0.3, 5, "cosine") for step in range(13)]
    expected = [
        0.3 * 0.5 * (1 + math.cos(math.pi * t / 12)) * min(1, (t + 1) / 5) for t in range(13)
    ]
    assert rates == pytest.approx(expected)
    assert rates[12] == pytest.approx(0)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_period_longer_than_the_run_is_the_start_of_a_longer_run(schedule):
    """The authors' code has a period of 15 epochs and stops after 3."""
    short = [learning_rate(step, 10, 0.3, 2, schedule, 50) for step in range(10)]
    assert short == [learning_rate(step, 50, 0.3, 2, schedule) for step in range(10)]
    ended = [learning_rate(step, 50, 0.3, 2, schedule, 10) for step in range(10, 50)]
    assert ended == pytest.approx([0.0] * 40)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_without_warm_up_the_first_rate_is_the_peak(schedule):
    assert learning_rate(0, 10, 0.6, 0, schedule) == 0.6


def test_amsgrad_keeps_the_largest_second_moment_and_resumes_bit_for_bit(toy, tmp_path):
    settings = {"amsgrad": True, "schedule": "cosine", "schedule_steps": 60}
    state = train_until(toy, tmp_path / "killed", 20, train=settings)
    moments = load_file(state / "step-00000020/optimizer.safetensors")
    largest = [name for name in moments if name.endswith("max_exp_avg_sq")]
    assert len(largest) == len({name.partition(".")[0] for name in moments})
    seconds = [moments[name.replace("max_exp_avg_sq", "exp_avg_sq")] for name in largest]
    assert all(
        (moments[name] >= second).all() for name, second in zip(largest, seconds, strict=True)
    )
    assert any(
        not torch.equal(moments[name], second)
        for name, second in zip(largest, seconds, strict=True)
    )
    killed, whole = (toy.train(tmp_path / name, train=settings) for name in ("killed", "whole"))
    assert contents(killed) == contents(whole)
