"""Law of the whole step with attention and packing: its loss and all its gradients are those of
plain loops over each sentence alone, in float64, to 1e-10.

The reference (encoder_reference.py, loss_references.py) imports nothing from ems, and each of its
terms counts.
"""

import numpy as np
import pytest
import torch
from encoder_reference import CHANGES
from loss_references import contrastive, xtr
from objectives_made import system_settings

from ems.model import encoder, packing
from ems.model.packing import pack
from ems.shards.reader import Batch
from ems.train.step import DeviceBatch, System

PIECES, LANGUAGES, HEADS, PAIRS, MAX_TOKENS = 11, 3, 2, 8, 6
MODEL = {"layers": 2, "width": 6, "heads": HEADS, "feed_forward": 5, "dropout": 0}
OBJECTIVES = {
    "xtr": {"weight": 0.7},
    "contrastive": {"weight": 1.3, "width": 3, "temperature": 0.5},
    "head": {"language_width": 2},
}
WITHOUT_A_MASK = 1e-15  # a share of dropout that no random number reaches
TOLERANCE = 1e-10
LEAST = 3  # sentences of a padded group: a small batch has several


@pytest.fixture(autouse=True, scope="module")
def _small_groups():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "LEAST", LEAST)
        yield


def made_pairs():
    """Pairs of sentences of all lengths, a pair's own two lengths far apart."""
    random = np.random.default_rng(6)

    def sentence(length):
        tokens = random.integers(0, PIECES, length).tolist()
        return {"language": int(random.integers(LANGUAGES)), "tokens": tokens, "input": tokens}

    lengths = [(1 + at % MAX_TOKENS, 1 + (3 * at + 4) % MAX_TOKENS) for at in range(PAIRS)]
    return [(sentence(first), sentence(second)) for first, second in lengths]


def batch_of(pairs):
    """The same as a `Batch`: shortest first."""
    rows = [pair[side] for side in (0, 1) for pair in pairs]
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]["tokens"]))
    return Batch(
        np.concatenate([rows[row]["tokens"] for row in order]),
        np.array([len(rows[row]["tokens"]) for row in order]),
        np.array(order),
        np.array([sentence["language"] for sentence in rows]),
    )


def made_system(attention_dropout=0.0):
    """A system in which no weight is at a neutral start value."""
    model = {**MODEL, "attention_dropout": attention_dropout, "max_tokens": MAX_TOKENS}
    torch.manual_seed(7)
    system = System(system_settings(model, OBJECTIVES), LANGUAGES, PIECES).double().train()
    generator = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for value in system.parameters():
            value.add_(0.4 * torch.randn(value.shape, dtype=torch.float64, generator=generator))
    return system


def loss_of(system):
    return system(DeviceBatch.of(batch_of(made_pairs()), torch.device("cpu")))["total"]


@pytest.fixture(scope="module")
def packed():
    """(loss, gradients by parameter) of the system."""
    system = made_system()
    loss = loss_of(system)
    loss.backward()
    return loss.item(), {name: value.grad for name, value in system.named_parameters()}


def loss_by_loops(weights, change=None):
    """Eq. 12 of EMS v2, weighted."""
    weights = {**weights, "heads": HEADS, "change": change}
    pairs, own = made_pairs(), OBJECTIVES["contrastive"]
    of_tokens, of_sentences = xtr(weights, pairs), contrastive(weights, pairs, settings=OBJECTIVES)
    return (OBJECTIVES["xtr"]["weight"] * of_tokens + own["weight"] * of_sentences) / len(pairs)


def by_loops():
    """The same of the reference."""
    weights = {n: p.detach().clone().requires_grad_() for n, p in made_system().named_parameters()}
    loss = loss_by_loops(weights)
    loss.backward()
    return loss.item(), {name: value.grad for name, value in weights.items()}


def differences(first, second):
    """The largest difference of the losses, and of each parameter's gradients."""
    (loss, gradients), (other, others) = first, second
    assert gradients.keys() == others.keys()
    gaps = {name: (gradients[name] - others[name]).abs().max().item() for name in gradients}
    return {"loss": abs(loss - other), **gaps}


def test_the_batch_has_sentences_of_every_length_in_several_padded_groups():
    lengths = batch_of(made_pairs()).lengths
    assert set(lengths) == set(range(1, MAX_TOKENS + 1))
    groups = pack(torch.from_numpy(lengths)).groups
    assert len(groups) > 2
    assert any(not group.real.all() for group in groups)


def test_the_loss_and_all_gradients_of_packed_sentences_equal_loops_over_each_alone(packed):
    gaps = differences(packed, by_loops())
    assert len(gaps) == 1 + len(list(made_system().parameters()))
    assert max(gaps.values()) < TOLERANCE, gaps
    assert all(gradient.abs().max() > 1e-4 for gradient in packed[1].values())


def test_attention_with_dropout_on_a_cpu_equals_them_too_where_nothing_is_dropped(
    packed, monkeypatch
):
    calls = []
    plainly = encoder._attend_plainly
    monkeypatch.setattr(
        encoder, "_attend_plainly", lambda *parts: calls.append(1) or plainly(*parts)
    )
    system = made_system(WITHOUT_A_MASK)
    loss = loss_of(system)
    loss.backward()
    assert calls, "the path with dropout was not taken"
    gradients = {name: value.grad for name, value in system.named_parameters()}
    assert max(differences(packed, (loss.item(), gradients)).values()) < TOLERANCE


@pytest.mark.parametrize("change", CHANGES)
def test_a_reference_with_one_term_changed_is_noticed(packed, change):
    weights = dict(made_system().named_parameters())
    with torch.no_grad():
        assert abs(packed[0] - loss_by_loops(weights, change).item()) > 1e-4
