"""Laws of the sampled cross-entropy: exact with all pieces, an unbiased normaliser, seeded."""

import math

import pytest
import torch

from ems.objectives.fused import Target, fused_cross_entropy
from ems.objectives.sampled import sample, sampled_cross_entropy

ROWS, WIDTH, PIECES = 5, 4, 30


def problem(biased=True):
    torch.manual_seed(7)
    states = torch.randn(ROWS, WIDTH, dtype=torch.float64, requires_grad=True)
    output = torch.randn(PIECES, WIDTH, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(PIECES, dtype=torch.float64, requires_grad=True) if biased else None
    row = torch.tensor([0, 0, 1, 2, 2, 2, 4])
    token = torch.tensor([3, 3, 9, 0, 29, 4, 9])
    weight = torch.tensor([0.5, 0.5, 1.0, 0.2, 0.3, 0.5, 0.8], dtype=torch.float64)
    return states, output, Target(row, token, weight), bias


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("count", [PIECES, 25])
def test_with_all_pieces_it_is_the_full_loss_gradients_included(count, biased):
    states, output, target, bias = problem(biased)
    leaves = [states, output, *([bias] if biased else [])]
    losses = (
        sampled_cross_entropy(states, output, target, count, bias),
        fused_cross_entropy(states, output, target, bias),
    )
    torch.testing.assert_close(*losses, rtol=1e-12, atol=0)
    gradients = [torch.autograd.grad(loss, leaves) for loss in losses]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def by_loops(states, output, target, bias, chosen, others, count):
    """The estimator, from its definition, in plain Python."""
    labels = set(target.token.tolist())
    loss = 0.0
    for row, token, weight in zip(*(part.tolist() for part in vars(target).values()), strict=True):
        logit = [
            sum(s * o for s, o in zip(states[row].tolist(), output[w].tolist(), strict=True))
            + bias[w].item()
            for w in range(PIECES)
        ]
        normaliser = sum(
            math.exp(logit[w]) * (1 if w in labels else others / count) for w in chosen
        )
        loss += weight * (math.log(normaliser) - logit[token])
    return loss


@pytest.mark.parametrize("count", [1, 6, 24])
def test_the_loss_is_the_estimator_of_the_pieces_drawn(count):
    states, output, target, bias = problem()
    torch.manual_seed(11)
    chosen = sample(target.token, PIECES, count)[0].tolist()
    assert len(set(chosen)) == len(chosen) == 5 + count
    torch.manual_seed(11)
    loss = sampled_cross_entropy(states, output, target, count, bias)
    expected = by_loops(states, output, target, bias, chosen, PIECES - 5, count)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_the_normaliser_is_unbiased():
    """The mean over 3,000 samples of 6 of 25 other pieces, within five standard errors."""
    torch.manual_seed(13)
    logits = torch.randn(PIECES, dtype=torch.float64)
    token = torch.tensor([3, 9])
    sums = []
    for _ in range(3000):
        chosen, _, times = sample(token, PIECES, 6)
        sums.append((logits[chosen].exp() * times).sum())
    values = torch.stack(sums)
    error = values.std().item() / len(values) ** 0.5
    assert values.mean().item() == pytest.approx(logits.exp().sum().item(), abs=5 * error)
    assert values.std() > 0.1
