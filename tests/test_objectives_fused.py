"""Laws of the fused and the sampled cross-entropy: any label rows, a bias, all gradients.

The reference is loops over rows and pieces in plain Python floats (float64).
"""

import math

import pytest
import torch

from ems.objectives import fused
from ems.objectives.fused import Target, entropy, fused_cross_entropy, kl_loss
from ems.objectives.sampled import sample, sampled_cross_entropy

PIECES, WIDTH, ROWS = 12, 4, 5
# (row, token, weight): a token twice in a row, masses below and above 1, row 3 without a label
ENTRIES = [(0, 1, 0.5), (4, 6, 0.25), (0, 2, 0.3), (1, 3, 1.7), (0, 1, 0.2), (2, 0, 0.4)]
ENTRIES += [(4, 6, 0.5)]
LABELS = {token for _, token, _ in ENTRIES}


def problem():
    """States, output matrix and bias in float64, all with gradients, and ENTRIES as a target."""
    generator = torch.Generator().manual_seed(3)
    factors = [
        torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)
        for shape in ((ROWS, WIDTH), (PIECES, WIDTH), (PIECES,))
    ]
    row, token, weight = zip(*ENTRIES, strict=True)
    weights = torch.tensor(weight, dtype=torch.float64)
    return factors, Target(torch.tensor(row), torch.tensor(token), weights)


def by_loops(states, output, bias, chosen=range(PIECES), share=1.0):
    """The cross-entropy of the label rows by the pieces `chosen`, a `share` of the others."""
    cross = 0.0
    for row, token, weight in ENTRIES:
        logits = [
            sum(a * b for a, b in zip(piece, states[row].tolist(), strict=True)) + shift
            for piece, shift in zip(output.tolist(), bias.tolist(), strict=True)
        ]
        normaliser = sum(math.exp(logits[w]) / (1 if w in LABELS else share) for w in chosen)
        cross += weight * (math.log(normaliser) - logits[token])
    return cross


def entropy_by_loops():
    total = 0.0
    for row in range(ROWS):
        for word in LABELS:
            p = sum(weight for at, token, weight in ENTRIES if (at, token) == (row, word))
            total -= p * math.log(p) if p else 0.0
    return total


@pytest.mark.parametrize("rows", [1, 2, ROWS])
def test_fused_cross_entropy_and_kl_equal_loops_and_gradients_finite_differences(rows, monkeypatch):
    monkeypatch.setattr(fused, "CHUNK", rows * PIECES)
    factors, target = problem()
    (states, output, bias), own = factors, entropy_by_loops()
    cross = by_loops(*factors)
    loss = fused_cross_entropy(states, output, target, bias)
    assert loss.item() == pytest.approx(cross, rel=1e-12)
    assert entropy(target, PIECES).item() == pytest.approx(own, rel=1e-12)
    assert kl_loss(states, output, target, bias).item() == pytest.approx(cross - own, rel=1e-12)
    plain = by_loops(states, output, torch.zeros(PIECES))
    assert fused_cross_entropy(states, output, target).item() == pytest.approx(plain, rel=1e-12)
    assert torch.autograd.gradcheck(
        lambda s, o, b: fused_cross_entropy(s, o, target, b), factors, atol=1e-8
    )


def test_a_second_backward_pass_over_one_graph_gives_the_same_gradients():
    factors, target = problem()
    loss = fused_cross_entropy(*factors[:2], target, factors[2]) * 3
    first = torch.autograd.grad(loss, factors, retain_graph=True)
    assert all(map(torch.equal, torch.autograd.grad(loss, factors), first))


def test_without_gradients_no_gradient_is_made(monkeypatch):
    """Validation computes one product with the output matrix, not three."""
    (states, output, bias), target = problem()
    expected, made = kl_loss(states, output, target, bias).item(), pytest.fail
    monkeypatch.setattr(torch, "empty", lambda *_, **__: made("a gradient buffer was made"))
    with torch.no_grad():
        assert kl_loss(states, output, target, bias).item() == expected


def test_a_chunk_never_holds_more_logits_than_its_limit(monkeypatch):
    sizes, softmax = [], torch.softmax

    def spy(logits, dim, out):
        sizes.append(logits.numel())
        return softmax(logits, dim=dim, out=out)

    monkeypatch.setattr(torch, "softmax", spy)
    monkeypatch.setattr(fused, "CHUNK", 2 * PIECES)
    (states, output, _), target = problem()
    kl_loss(states, output, target)
    assert sizes == [2 * PIECES, 2 * PIECES, PIECES]


# --- a sample of the pieces


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("count", [PIECES, PIECES - len(LABELS)])
def test_a_sample_of_all_pieces_is_the_full_loss_gradients_included(count, biased):
    (states, output, bias), target = problem()
    leaves = [states, output, *([bias] if biased else [])]
    losses = (
        sampled_cross_entropy(states, output, target, count, *leaves[2:]),
        fused_cross_entropy(states, output, target, *leaves[2:]),
    )
    torch.testing.assert_close(*losses, rtol=1e-12, atol=0)
    gradients = [torch.autograd.grad(loss, leaves) for loss in losses]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_loss_is_the_estimator_of_the_pieces_drawn(count):
    (states, output, bias), target = problem()
    torch.manual_seed(11)
    chosen = sample(target.token, PIECES, count)[0].tolist()
    assert len(set(chosen)) == len(chosen) == len(LABELS) + count
    torch.manual_seed(11)
    loss = sampled_cross_entropy(states, output, target, count, bias)
    expected = by_loops(states, output, bias, chosen, count / (PIECES - len(LABELS)))
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_the_normaliser_is_unbiased():
    """The mean over 3,000 samples of 6 of 28 other pieces, within five standard errors."""
    torch.manual_seed(13)
    logits = torch.randn(30, dtype=torch.float64)
    sums = []
    for _ in range(3000):
        chosen, _, times = sample(torch.tensor([3, 9]), len(logits), 6)
        sums.append((logits[chosen].exp() * times).sum())
    values = torch.stack(sums)
    error = values.std().item() / len(values) ** 0.5
    assert values.mean().item() == pytest.approx(logits.exp().sum().item(), abs=5 * error)
    assert values.std() > 0.1
