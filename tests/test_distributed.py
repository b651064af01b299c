"""Laws of data parallel training: N processes equal one, with negatives in groups of any size.

That one process has the negatives of the equations is a law of test_objectives_exact.py.
"""

import json

import pytest
import torch
from made.distributed import ROOT, SIZES, step_of_groups, torchrun
from made.experiments import MINIMAL, Settings, changed

from ems.base.errors import EmsError
from ems.train.distributed import World, dropout_seed


@pytest.fixture(scope="module", params=[2, 3], ids=["two", "three"])
def ranks(request, tmp_path_factory):
    """The results of each process."""
    folder = tmp_path_factory.mktemp("ranks")
    torchrun(request.param, ROOT / "tests" / "made/distributed.py", folder)
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(request.param)]


def test_losses_and_gradients_of_n_processes_equal_those_of_one(ranks):
    """In groups of any size, and the same bits on all processes."""
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


CLASHES = [  # settings, words of the error
    (
        {"objectives": {"contrastive": {"negatives": 5}}, "train": {"batch_pairs": 12}},
        ["negatives: 5 pairs", "train.batch_pairs, 12", "divisor"],
    ),
    (
        {"objectives": {"mlm": {"weight": 1}}, "train": {"grad_cache": 2}},
        ["train.grad_cache", "mlm needs", "leave one"],
    ),
]


@pytest.mark.parametrize(("changes", "words"), CLASHES, ids=["group size", "GradCache and MLM"])
def test_what_cannot_go_together_is_an_error_before_anything_runs(changes, words, tmp_path):
    message = Settings(tmp_path).error(changed(MINIMAL, changes))
    assert all(part in message for part in words), message


# --- the processes


def test_what_one_process_finds_all_know(ranks):
    assert [rank["any"] for rank in ranks] == [[True, False]] * len(ranks)
    assert [rank["gathered"] for rank in ranks] == [[*range(len(ranks))]] * len(ranks)


def test_each_shard_of_a_long_run_is_verified_by_one_process_and_an_error_ends_all(ranks):
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
    drawn = []
    for seed in (dropout_seed(3, 7), dropout_seed(3, 7, 1), dropout_seed(3, 7)):
        torch.manual_seed(seed)
        drawn.append(torch.rand(8).tolist())
    assert drawn[0] == drawn[2] != drawn[1]
