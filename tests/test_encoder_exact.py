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
from objectives_made import (
    batch_of,
    differences,
    gradients,
    noisy_system,
    system_settings,
    weights_of,
)

from ems.model import encoder, packing
from ems.model.packing import pack
from ems.objectives.batch import DeviceBatch
from ems.settings import plain

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


def made_system(attention_dropout=0.0):
    model = {**MODEL, "attention_dropout": attention_dropout, "max_tokens": MAX_TOKENS}
    return noisy_system(system_settings(model, OBJECTIVES), LANGUAGES, PIECES).train()


def made_batch():
    return batch_of([pair[side] for side in (0, 1) for pair in made_pairs()])


def loss_of(system):
    return system(DeviceBatch.of(made_batch(), torch.device("cpu")))["total"]


@pytest.fixture(scope="module")
def packed():
    """(loss, gradients by parameter) of the system."""
    system = made_system()
    return gradients(loss_of(system), system.named_parameters())


def loss_by_loops(weights, change=None):
    """Eq. 12 of EMS v2, weighted."""
    weights = {**weights, "heads": HEADS, "change": change}
    pairs, settings = made_pairs(), plain(system_settings({}, OBJECTIVES).objectives)
    of_tokens, of_sentences = xtr(weights, pairs), contrastive(weights, pairs, settings=settings)
    return (0.7 * of_tokens + 1.3 * of_sentences) / len(pairs)


def test_the_batch_has_sentences_of_every_length_in_several_padded_groups():
    lengths = made_batch().lengths
    assert set(lengths) == set(range(1, MAX_TOKENS + 1))
    groups = pack(torch.from_numpy(lengths)).groups
    assert len(groups) > 2
    assert any(not group.real.all() for group in groups)


def test_the_loss_and_all_gradients_of_packed_sentences_equal_loops_over_each_alone(packed):
    weights = weights_of(made_system())
    gaps = differences(packed, gradients(loss_by_loops(weights), weights))
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
    own = gradients(loss_of(system), system.named_parameters())
    assert calls, "the path with dropout was not taken"
    assert max(differences(packed, own).values()) < TOLERANCE


@pytest.mark.parametrize("change", CHANGES)
def test_a_reference_with_one_term_changed_is_noticed(packed, change):
    weights = dict(made_system().named_parameters())
    with torch.no_grad():
        assert abs(packed[0] - loss_by_loops(weights, change).item()) > 1e-4
