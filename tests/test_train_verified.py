"""Laws of shards that change: their sizes are checked before anything is saved, and in long runs
every byte, once a start.

How long a run is, is decided by a constant that these tests change; no clock decides a test.
"""

import os
from itertools import count

import pytest
from made.distributed import Counted, verification_of
from made.train import Killed, Toy, contents, train_into, train_until

from ems.base.errors import EmsError
from ems.shards.shard import verify_shards
from ems.train import data, journal
from ems.train.checkpoint import step_of
from ems.train.data import TIMED
from ems.train.distributed import World
from ems.train.step import Trainer
from ems.train.validate import validate

pytestmark = pytest.mark.usefixtures("logged")


@pytest.fixture
def long_runs(monkeypatch):
    """Every run counts as long."""
    monkeypatch.setattr(data, "LONG", 0.0)


@pytest.fixture
def verified(monkeypatch):
    """The shards that are verified, in their order."""
    folders = []

    def verify(shards):
        folders.extend(shard.folder for shard in shards)
        verify_shards(shards)

    monkeypatch.setattr(data, "verify_shards", verify)
    return folders


@pytest.fixture
def own_toy(tmp_path):
    """Shards to spoil."""
    return Toy(tmp_path / "toy")


def change_an_id(shard):
    """Put another token of the vocabulary into a shard: only a checksum shows it."""
    path = shard / "de.ids"
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    return f"{path}: its SHA-256 is not the one in the manifest"


@pytest.mark.parametrize(("role", "saved"), [("training", 0), ("validation", 0), ("training", 10)])
def test_a_long_run_on_a_changed_byte_ends_before_it_saves_anything(
    own_toy, tmp_path, long_runs, role, saved
):
    """A new run, and one that goes on."""
    if saved:
        train_until(own_toy, tmp_path / "run", saved)
    before = {path: path.read_bytes() for path in tmp_path.glob("run/state/*/step-*/*")}
    assert bool(before) == bool(saved)
    expected = change_an_id(own_toy.shards(role)[0])
    with pytest.raises(EmsError, match=expected) as caught:
        own_toy.train(tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.glob("run/state/*/step-*/*")} == before
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize("role", ["training", "validation"])
def test_a_shard_that_is_cut_while_it_is_read_ends_the_run_before_it_saves(
    own_toy, never_killed, tmp_path, role, monkeypatch
):
    """The rest of its page reads as zeros, with no error. With the file back, as if never cut."""
    path = own_toy.shards(role)[0] / "de.ids"
    whole, one = path.read_bytes(), Trainer.step

    def cut_and_step(trainer, batch):
        if batch.step == 12:
            os.truncate(path, len(whole) // 2)
        return one(trainer, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", cut_and_step)
        with pytest.raises(EmsError, match=rf"{path}: expected .* bytes by its manifest, found"):
            own_toy.train(tmp_path / "run")
    newest = max(step_of(folder) for folder in tmp_path.glob("run/state/*/step-*"))
    assert newest == 10
    path.write_bytes(whole)
    assert contents(own_toy.train(tmp_path / "run")) == contents(never_killed)


def test_a_shard_that_is_cut_before_the_only_validation_ends_a_run_of_no_steps(
    own_toy, tmp_path, monkeypatch
):
    path = own_toy.shards("validation")[0] / "de.ids"

    def cut_and_validate(*arguments):
        os.truncate(path, path.stat().st_size // 2)
        return validate(*arguments)

    monkeypatch.setattr(journal, "validate", cut_and_validate)
    with pytest.raises(EmsError, match=rf"{path}: expected .* bytes by its manifest, found"):
        own_toy.train(tmp_path / "run", train={"steps": 0})
    assert not (tmp_path / "run" / "model").exists()


def test_verifying_changes_no_byte_of_the_model_killed_or_not(
    toy, never_killed, tmp_path, long_runs, verified
):
    every = [*toy.shards("training"), *toy.shards("validation")]
    assert contents(toy.train(tmp_path / "whole")) == contents(never_killed)
    assert verified == every
    for step in (3, 17):  # before it verified, and after
        train_into(toy, tmp_path / "killed", step)
    assert verified == every * 2
    assert contents(toy.train(tmp_path / "killed")) == contents(never_killed)
    assert verified == every * 3


def test_a_run_that_is_killed_while_it_verifies_has_saved_nothing_and_ends_the_same(
    toy, never_killed, tmp_path, long_runs
):
    def die(shards):
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "verify_shards", die)
        with pytest.raises(Killed):
            toy.train(tmp_path)
    assert list(tmp_path.rglob("step-*")) == []
    assert contents(toy.train(tmp_path)) == contents(never_killed)


def test_a_run_of_minutes_reads_no_checksum(toy, tmp_path, verified):
    toy.train(tmp_path)
    assert verified == []


def test_a_long_run_says_how_long_it_is_and_how_far_the_checksums_are(
    toy, tmp_path, long_runs, caplog
):
    toy.train(tmp_path)
    shards = [*toy.shards("training"), *toy.shards("validation")]
    size = sum(path.stat().st_size for each in shards for path in each.iterdir())
    size -= sum((each / "manifest.json").stat().st_size for each in shards)
    lines = [line for line in caplog.messages if "verify shards: " in line]
    assert lines[0] == f"verify shards: start, {size:,} bytes"
    assert lines[-1].startswith(f"verify shards: {size:,}/{size:,} bytes (100 %), ")
    assert any(
        "of training are left: verifying every byte of the shards" in m for m in caplog.messages
    )


# --- when


def after(steps, seconds, left):
    """How often a shard is verified in so many steps that take these seconds, and when something
    is saved then; `left` are left when the last of them begins.
    """
    shard, now = Counted(), 0.0
    run = verification_of([shard], World(), now=lambda: now)
    for step in range(steps):
        run.step(left + steps - 1 - step)
        now += seconds[step % len(seconds)]
    early = shard.times
    run.settle()
    run.settle()
    return early, shard.times


@pytest.mark.parametrize(
    ("steps", "seconds", "left", "expected"),
    [
        (TIMED, [1.0], 3_601, (0, 1)),  # before the first checkpoint
        (TIMED, [1.0], 3_600, (0, 0)),
        (TIMED + 1, [1.0], 3_601, (1, 1)),  # before any
        (TIMED + 1, [1.0], 3_600, (0, 0)),
        (TIMED + 1, [0.5, 0.5, 99.0], 7_200, (0, 0)),  # what few steps do does not count
        (TIMED + 1, [0.5, 0.5, 99.0], 7_201, (1, 1)),
        (3 * TIMED, [1.0], 10_000, (1, 1)),
        (1, [9.0], 401, (0, 1)),
        (0, [1.0], 10**9, (0, 0)),  # nothing was learnt that could be saved
    ],
)
def test_the_shards_are_verified_once_when_more_than_an_hour_is_left(
    steps, seconds, left, expected
):
    assert after(steps, seconds, left) == expected


def test_a_shard_that_is_spoilt_is_an_error_each_time_that_it_is_asked(tmp_path):
    run = verification_of(
        [Counted(), Counted(sound=False)], World(), now=count(step=9_999).__next__
    )
    run.step(1)
    for _ in range(2):
        with pytest.raises(EmsError, match="spoilt"):
            run.settle()
