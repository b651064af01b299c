"""Laws of the times of training: they grow, no kill is counted, no model depends on them."""

import itertools
from types import SimpleNamespace

import pytest
from train_made import contents, json_rows, train_into, train_until

from ems.train import journal
from ems.train.job import Places, train


@pytest.fixture
def tick(monkeypatch):
    """Start the clock of training `at` a time; it moves `pace` seconds each time it is read."""

    def start(at, pace=1):
        clock = itertools.count(at, pace)
        monkeypatch.setattr(journal, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

    return start


def whole(toy, folder, tick):
    """(model folder, times) of a run that nothing kills, on a clock that starts anywhere."""
    tick(1000)
    return toy.train(folder), json_rows(folder / "times.jsonl")


def places(rows):
    return [(row["step"], row["pairs"]) for row in rows]


def test_there_is_a_time_for_each_row_of_the_loss_log_and_they_grow(toy, tmp_path, tick):
    model, times = whole(toy, tmp_path, tick)
    assert places(times) == places(json_rows(model / "losses.jsonl"))
    assert {step for step, _ in places(times)} == {0, 10, 20, 30}
    seconds = [row["seconds"] for row in times]
    assert seconds == sorted(set(seconds))
    assert all(set(row) == {"step", "pairs", "seconds", "tokens", "wait"} for row in times)


def test_on_the_real_clock_no_time_is_before_another_and_all_are_within_the_run(toy, tmp_path):
    started = journal.time.monotonic()
    toy.train(tmp_path)
    took = journal.time.monotonic() - started
    seconds = [row["seconds"] for row in json_rows(tmp_path / "times.jsonl")]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[0] < seconds[-1] <= took + 0.01


@pytest.mark.parametrize("step", [5, 20, 30], ids=["first", "middle", "last, model not written"])
def test_killed_and_resumed_has_the_times_of_never_killed(step, toy, tmp_path, tick):
    """Neither the hours between the two runs count nor what had to be done twice."""
    _, expected = whole(toy, tmp_path / "whole", tick)
    tick(5)
    train_until(toy, tmp_path / "killed", step)
    tick(1_000_000)
    model = toy.train(tmp_path / "killed")
    times = json_rows(tmp_path / "killed" / "times.jsonl")
    assert times == expected
    assert places(times) == places(json_rows(model / "losses.jsonl"))


def test_steps_that_a_kill_took_away_are_counted_once(toy, tmp_path, tick):
    """Killed again and again, some steps after a checkpoint each time."""
    _, expected = whole(toy, tmp_path / "whole", tick)
    for at, step in enumerate((8, 13, 13, 24)):
        tick(10_000 * at)
        train_into(toy, tmp_path / "killed", step)
    tick(1_000_000)
    toy.train(tmp_path / "killed")
    assert json_rows(tmp_path / "killed" / "times.jsonl") == expected


def test_the_model_is_the_same_byte_for_byte_whatever_time_it_took(toy, tmp_path, tick):
    fast, times = whole(toy, tmp_path / "fast", tick)
    tick(7, pace=60)
    slow = toy.train(tmp_path / "slow")
    assert json_rows(tmp_path / "slow" / "times.jsonl") != times
    assert contents(slow) == contents(fast)
    assert not any("times" in name for name in contents(fast))


def test_nothing_is_written_about_time_when_nobody_asks_for_it(toy, tmp_path):
    out = tmp_path / "model"
    train(toy.experiment(), "ems", toy.data(), Places(out, tmp_path / "state"))
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted(contents(out))
    assert (out / "model.json").exists()
