"""Laws of the times of training, which no kill changes, and of its learning rate."""

import itertools
import math
from types import SimpleNamespace

import pytest
from made.train import contents, json_rows, train_into, train_until
from safetensors.torch import load_file

from ems.base.errors import EmsError
from ems.config.train import TrainSettings
from ems.model.devices import Adam
from ems.train import journal
from ems.train.job import train
from ems.train.step import learning_rate


@pytest.fixture
def tick(monkeypatch):
    """Start the clock of training `at` a time; it moves a second each time it is read."""

    def start(at):
        clock = itertools.count(at)
        monkeypatch.setattr(journal, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
        monkeypatch.setattr(journal.Journal, "_note", lambda run: "")  # reads it on a slow machine

    return start


def places(rows):
    return [(row["step"], row["pairs"]) for row in rows]


def times_of(folder):
    return json_rows(folder / "times.jsonl")


def test_there_is_a_time_for_each_row_of_the_loss_log_and_they_grow(toy, tmp_path):
    """On the real clock, within the run."""
    started = journal.time.monotonic()
    model = toy.train(tmp_path)
    took = journal.time.monotonic() - started
    times = times_of(tmp_path)
    assert places(times) == places(json_rows(model / "losses.jsonl"))
    assert {step for step, _ in places(times)} == {0, 10, 20, 30}
    assert all(set(row) == {"step", "pairs", "seconds", "tokens", "wait"} for row in times)
    seconds = [row["seconds"] for row in times]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] < seconds[-1] <= took + 0.01


@pytest.mark.parametrize(
    ("die", "steps"), [(train_until, [5, 20, 30]), (train_into, [8, 13, 13, 24])], ids=["at", "in"]
)
def test_killed_and_resumed_has_the_times_of_never_killed(die, steps, toy, tmp_path, tick):
    """Neither the hours between two runs count nor what had to be done twice."""
    tick(1000)
    toy.train(tmp_path / "whole")
    for at, step in enumerate(steps):
        tick(10_000 * at)
        die(toy, tmp_path / "killed", step)
    tick(1_000_000)
    toy.train(tmp_path / "killed")
    assert times_of(tmp_path / "killed") == times_of(tmp_path / "whole")


def test_without_a_place_for_it_nothing_is_written_about_time(toy, tmp_path):
    out = tmp_path / "model"
    train(toy.experiment(), "ems", toy.data(), out, tmp_path / "state")
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted(contents(out))
    assert (out / "model.json").exists()


# --- the learning rate and the optimiser


COSINE = [0.15 * (1 + math.cos(math.pi * t / 12)) * min(1, (t + 1) / 5) for t in range(13)]
RATES = {  # schedule: (steps, peak, warm-up, rates)
    "constant": (20, 0.5, 4, [0.125, 0.25, 0.375] + [0.5] * 17),
    "linear": (10, 0.6, 4, [0.15, 0.3, 0.45, 0.6, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]),
    "cosine": (12, 0.3, 5, COSINE),  # that of the authors' code, times the warm-up
    "step": (8, 0.4, 2, [0.2, 0.4, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1]),  # a quarter from step 5 on
}


def rates_of(schedule, steps, peak, warmup, period=None, numbers=None):
    """The learning rates of some steps, of all if None."""
    decay = {"schedule_steps": 5, "schedule_factor": 0.25} if schedule == "step" else {}
    decay |= {"schedule_steps": period} if period else {}
    names = {"steps": steps, "learning_rate": peak, "warmup_steps": warmup, "schedule": schedule}
    settings = TrainSettings(**names, **decay)
    return [learning_rate(step, settings) for step in numbers or range(steps)]


@pytest.mark.parametrize("schedule", RATES)
def test_the_learning_rate_rises_linearly_then_stays_or_falls_to_zero(schedule):
    steps, peak, warmup, rates = RATES[schedule]
    made = rates_of(schedule, steps, peak, warmup, numbers=range(len(rates)))
    assert made == pytest.approx(rates, abs=1e-15)
    assert rates_of(schedule, steps, peak, 0)[0] == peak


def test_the_lower_rate_of_a_step_is_of_the_warm_up_too(toy):
    """As in the code of Lightweight, whose warm-up multiplies the rate of its schedule."""
    rise = rates_of("step", 8, 0.4, 8)
    assert rise == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.25, 0.075, 0.0875, 0.1])
    with pytest.raises(EmsError, match=r"train\.schedule: step needs train\.schedule_steps"):
        toy.experiment(train={"schedule": "step"})


def test_a_step_uses_the_rate_of_the_schedule(toy, tmp_path, monkeypatch):
    rates, step = [], Adam.step

    def spy(optimizer, *rest):
        rates.extend(group["lr"] for group in optimizer.param_groups)
        return step(optimizer, *rest)

    monkeypatch.setattr(Adam, "step", spy)
    toy.train(tmp_path, train={"steps": 8})
    assert rates == pytest.approx([0.002, 0.004, 0.006, 0.008, 0.01, 0.01, 0.02 / 3, 0.01 / 3])


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_period_longer_than_the_run_is_the_start_of_a_longer_run(schedule):
    """The authors' code has a period of 15 epochs and stops after 3."""
    short = rates_of(schedule, 10, 0.3, 2, 50)
    assert short == rates_of(schedule, 50, 0.3, 2)[:10]
    ended = rates_of(schedule, 50, 0.3, 2, 10)[10:]
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
