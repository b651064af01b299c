"""Laws of shards that change, and of processes that train together."""

import json
import os

import pytest
import torch
from made.distributed import ROOT, SIZES, Counted, step_of_groups, torchrun, verification_of
from made.shards import contents
from made.train import Toy, train_into, train_until

from ems.base.errors import EmsError
from ems.shards.shard import verify_shards
from ems.train import data, journal
from ems.train.checkpoint import step_of
from ems.train.data import TIMED
from ems.train.distributed import World, dropout_seed
from ems.train.step import Trainer
from ems.train.validate import validate

pytestmark = pytest.mark.usefixtures("logged")


@pytest.fixture
def long_runs(monkeypatch):
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
    return Toy(tmp_path / "toy")


def change_an_id(shard):
    """Put another token of the vocabulary into a shard, which only a checksum shows."""
    path = shard / "de.ids"
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    return f"{path}: its SHA-256 is not the one in the manifest"


@pytest.mark.parametrize(("role", "saved"), [("training", 0), ("validation", 0), ("training", 10)])
def test_a_long_run_notices_a_changed_byte(own_toy, tmp_path, long_runs, role, saved):
    if saved:
        train_until(own_toy, tmp_path / "run", saved)
    before = [*tmp_path.glob("run/state/*/step-*")]
    assert bool(before) == bool(saved)
    with pytest.raises(EmsError, match=change_an_id(own_toy.shards(role)[0])):
        own_toy.train(tmp_path / "run")
    assert [*tmp_path.glob("run/state/*/step-*")] == before
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize("role", ["training", "validation"])
def test_a_cut_shard_ends_the_run(own_toy, never_killed, tmp_path, role, monkeypatch):
    """The rest of its page reads as zeros, with no error."""
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


def test_a_shard_cut_before_validation_ends_the_run(own_toy, tmp_path, monkeypatch):
    path = own_toy.shards("validation")[0] / "de.ids"

    def cut_and_validate(*arguments):
        os.truncate(path, path.stat().st_size // 2)
        return validate(*arguments)

    monkeypatch.setattr(journal, "validate", cut_and_validate)
    with pytest.raises(EmsError, match=rf"{path}: expected .* bytes by its manifest, found"):
        own_toy.train(tmp_path / "run", train={"steps": 0})
    assert not (tmp_path / "run" / "model").exists()


def test_verifying_changes_no_byte(toy, never_killed, tmp_path, long_runs, verified, caplog):
    every = [*toy.shards("training"), *toy.shards("validation")]
    assert contents(toy.train(tmp_path / "whole")) == contents(never_killed)
    assert verified == every
    assert "of training are left: verifying every byte of the shards" in caplog.text
    assert "verify shards: start, " in caplog.text
    for step in (3, 17):  # before it verified, and after
        train_into(toy, tmp_path / "killed", step)
    assert verified == every * 2
    assert contents(toy.train(tmp_path / "killed")) == contents(never_killed)
    assert verified == every * 3


@pytest.mark.parametrize(
    ("steps", "seconds", "left", "expected"),
    [  # seconds of each step, steps left after all, verifications in these steps and after a save
        (TIMED, [1.0], 3_601, (0, 1)),  # before the first checkpoint
        (TIMED, [1.0], 3_600, (0, 0)),
        (TIMED + 1, [1.0], 3_601, (1, 1)),  # before any
        (TIMED + 1, [1.0], 3_600, (0, 0)),
        (TIMED + 1, [0.5, 0.5, 99.0], 7_200, (0, 0)),  # the median, whatever few steps take
        (TIMED + 1, [0.5, 0.5, 99.0], 7_201, (1, 1)),
        (3 * TIMED, [1.0], 10_000, (1, 1)),
        (1, [9.0], 401, (0, 1)),
        (0, [1.0], 10**9, (0, 0)),  # nothing was learnt that could be saved
    ],
)
def test_shards_are_verified_once_in_long_runs(steps, seconds, left, expected):
    shard, now = Counted(), 0.0
    run = verification_of([shard], World(), now=lambda: now)
    for step in range(steps):
        run.step(left + steps - 1 - step)
        now += seconds[step % len(seconds)]
    early = shard.times
    run.settle()
    run.settle()
    assert (early, shard.times) == expected


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def ranks(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    torchrun(request.param, ROOT / "tests" / "made/distributed.py", folder)
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(request.param)]


def test_n_processes_have_the_losses_and_gradients_of_one(ranks):
    """With negatives in groups of any size, and with the same bits on all processes."""
    alone = {str(size): step_of_groups(World(), size) for size in SIZES}
    assert len({round(loss, 3) for loss, _ in alone.values()}) == len(SIZES)
    for size, (expected, gradients) in alone.items():
        loss, made = ranks[0][size]
        assert loss == pytest.approx(expected, rel=1e-12)
        for mine, theirs in zip(made, gradients, strict=True):
            torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs), rtol=1e-6, atol=0)
        assert all(rank[size] == [loss, made] for rank in ranks)


def test_buckets_of_any_size_give_the_same_bits(ranks):
    if len(ranks) == 2:  # of three numbers the order counts
        assert ranks[0]["small buckets"] == ranks[0]["4"]


def test_flags_and_values_reach_all_processes(ranks):
    assert [rank["any"] for rank in ranks] == [[True, False]] * len(ranks)
    assert [rank["gathered"] for rank in ranks] == [[*range(len(ranks))]] * len(ranks)


def test_each_shard_is_verified_by_one_process_and_an_error_ends_all(ranks):
    whole, spoilt = ([rank["verified"][run] for rank in ranks] for run in (0, 1))
    counts = [times for times, _ in whole]
    assert [sum(times) for times in zip(*counts, strict=True)] == [1] * 7
    assert all(2 <= sum(times) <= 4 for times in counts)
    assert [error for _, error in whole] == [""] * len(ranks)
    assert [error for _, error in spoilt] == ["spoilt"] * len(ranks)


def test_processes_that_read_different_checkpoints_stop(ranks):
    for rank in ranks:
        same, different = rank["same"]
        assert not same
        assert f"step 7 and of step {6 + len(ranks)}" in different


def test_each_pair_of_a_step_belongs_to_one_process():
    shares = [World(rank, 4).share(608) for rank in range(4)]
    assert [row for share in shares for row in range(608)[share]] == list(range(608))
    assert World().share(7) == slice(0, 7)
    with pytest.raises(EmsError, match=r"batch_pairs: 7 pairs.*2 processes.*multiple of 2"):
        World(0, 2).share(7)


def test_dropout_differs_from_process_to_process_in_the_bits_that_a_cpu_uses():
    keys = [(step, rank, part) for step in range(50) for rank in range(8) for part in range(4)]
    seeds = {dropout_seed(3, *key) & 0xFFFFFFFF for key in keys}
    assert len(seeds) == len(keys)
    assert dropout_seed(3, 7) == 3 * 1_000_003 + 7
