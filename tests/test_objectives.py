"""Laws of what objectives share and of their options: weights, margins, duplicates, the ends of
floats.

The equations themselves are laws of test_objectives_exact.py and test_objectives_fused.py.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from made.objectives import system_settings

from ems.model.objectives import similarity
from ems.model.objectives.contrastive import duplicates, margin_at
from ems.model.objectives.system import DeviceBatch, Encoded, System
from ems.shards.reader import Batch

MODEL = {"layers": 0, "width": 8, "heads": 1, "dropout": 0, "max_tokens": 9}
OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}}


def made(**objectives):
    torch.manual_seed(0)
    return System(system_settings(MODEL, {**OFF, **objectives}), 2, 30)


def losses(system, seed=1, step=0):
    """The loss parts of one batch, prepared for a step."""
    random, pairs = np.random.default_rng(0), 6
    lengths = np.sort(random.integers(1, 9, 2 * pairs))
    tokens = random.integers(5, 30, lengths.sum())
    rows, languages = random.permutation(2 * pairs), random.integers(0, 2, 2 * pairs)
    batch = system.prepared(Batch(tokens, lengths, rows, languages), seed, step)
    return system(DeviceBatch.copy(batch, torch.device("cpu")))


def total(system, seed=1, step=0):
    return losses(system, seed, step)["total"].item()


# --- parts and heads

BOTH = {"xtr": {"weight": 0.25}, "contrastive": {"weight": 3, "width": 5}}
HEADS = {"xtr": "generative", "contrastive": "contrastive"}


def test_the_total_is_the_weighted_sum_of_the_parts():
    parts = losses(made(**BOTH))
    expected = 0.25 * parts["xtr"] + 3.0 * parts["contrastive"]
    assert parts["total"].item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("off", list(HEADS))
def test_an_objective_of_weight_zero_has_no_head_and_no_part(off):
    (kept,) = set(HEADS) - {off}
    system, whole = made(**{kept: BOTH[kept] | {"weight": 1}}), made(**BOTH)
    assert set(system.heads) == {HEADS[kept]}
    assert not [key for key in system.state_dict() if HEADS[off] in key]
    for key, value in whole.encoder.state_dict().items():  # whatever the objectives are
        assert torch.equal(value, system.encoder.state_dict()[key]), key
    parts = losses(system)
    assert set(parts) == {kept, "total"}
    assert torch.equal(parts["total"], parts[kept])


# --- margins and duplicates


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.0), (1, 0.03), (5, 0.15), (10, 0.3), (11, 0.3), (9999, 0.3)]
)
def test_the_margin_rises_linearly_from_zero_and_then_stays(step, expected):
    assert margin_at(0.3, 10, step) == pytest.approx(expected)
    assert margin_at(0.3, 0, step) == 0.3


def test_a_step_has_its_margin_and_validation_the_whole():
    own = {"weight": 1, "width": 0}
    rising = made(contrastive={**own, "margin": 0.3, "margin_warmup_steps": 10})
    none, half, whole = (made(contrastive={**own, "margin": m}) for m in (0, 0.15, 0.3))
    expected = [total(system) for system in (none, half, whole)]
    assert [total(rising, step=step) for step in (0, 5, 10)] == pytest.approx(expected)
    assert expected[0] < expected[1] < expected[2]
    assert total(rising.eval()) == pytest.approx(expected[2])


def test_pairs_that_share_a_sentence_on_any_side_are_duplicates():
    keys = torch.tensor([[1, 2], [1, 3], [4, 2], [2, 5], [6, 7]])
    shared = {(0, 1), (0, 2), (0, 3), (2, 3)}  # 1 on the left; 2 on the right; 2 across
    expected = [[i == j or (min(i, j), max(i, j)) in shared for j in range(5)] for i in range(5)]
    assert duplicates(keys, keys).tolist() == expected


# --- masks and samples


@pytest.mark.parametrize("objective", ["ugt", "smlm", "mlm"])
def test_masked_objectives_differ_between_steps_and_not_between_validations(objective):
    system = made(**{objective: {"weight": 1}}).eval()
    assert total(system, 0, 3) == total(system, 0, 3) != total(system, 0, 4)


def test_xtr_of_a_sample_of_all_pieces_is_xtr_and_validation_never_samples():
    full, every, few = (made(xtr={"weight": 1, "sampled": n}) for n in (0, 30, 2))
    expected = total(full)
    assert total(every) == pytest.approx(expected, rel=1e-5)
    assert total(few) != pytest.approx(expected, rel=1e-3)
    assert total(few.eval()) == pytest.approx(expected, rel=1e-5)


def test_the_sample_of_xtr_is_a_function_of_the_seed_of_the_step():
    few, values = made(xtr={"weight": 1, "sampled": 2}), []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        values.append(total(few))
    assert values[0] == values[2] != values[1]


@pytest.mark.parametrize("every", [2, 3, 4])
def test_the_shares_of_xtr_of_consecutive_steps_add_up_to_all_of_it(every):
    full, part = (made(xtr={"weight": 1, "share": share}) for share in (1, 1 / every))
    values = [total(part, step=step) for step in range(5, 5 + every)]
    assert len(set(values)) > 1
    assert sum(values) / every == pytest.approx(total(full), rel=1e-5)
    assert total(part.eval(), step=5) == pytest.approx(total(full), rel=1e-5)


# --- the similarity loss


def test_the_similarity_loss_is_finite_with_a_gradient_where_a_cosine_is_zero():
    """softmax 1 in one language and 0 in the other: cos(pi/2) of float32 would be below zero."""
    first = torch.tensor([[30.0, 0.0], [0.0, 30.0]], requires_grad=True)
    second = torch.tensor([[1.0, 0.0], [40.0, 0.0]], requires_grad=True)
    batch = SimpleNamespace(pairs=2, first=0, total=2)
    encoded = Encoded(batch, None, torch.cat([first, second]))
    loss = similarity.loss(made(similarity={"weight": 1}), encoded)
    loss.backward()
    assert 20 < loss.item() < math.inf
    assert all(side.grad.isfinite().all() for side in (first, second))
