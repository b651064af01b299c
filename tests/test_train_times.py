"""Laws of the times of training: they grow, no kill is counted, no model depends on them."""

import itertools
from types import SimpleNamespace

import pytest
from train_made import contents, json_rows, train_into, train_until

from ems.train import journal
from ems.train.job import Places, train


@pytest.fixture
def tick(monkeypatch):
    """Start the clock of training `at` a time; it moves a second each time it is read."""

    def start(at):
        clock = itertools.count(at)
        monkeypatch.setattr(journal, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

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
    train(toy.experiment(), "ems", toy.data(), Places(out, tmp_path / "state"))
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted(contents(out))
    assert (out / "model.json").exists()
