"""Laws of the fused cross-entropy: any label rows, a bias, the gradients of all three factors.

The reference is loops over rows and pieces in plain Python floats (float64).
"""

import math

import pytest
import torch

from ems.objectives import fused
from ems.objectives.fused import Target, entropy, fused_cross_entropy, kl_loss

PIECES, WIDTH, ROWS = 7, 4, 5
# (row, token, weight): a token twice in a row, masses below and above 1, row 3 without a label
ENTRIES = [(0, 1, 0.5), (4, 6, 0.25), (0, 2, 0.3), (1, 3, 1.7), (0, 1, 0.2), (2, 0, 0.4)]
ENTRIES += [(4, 6, 0.5)]


def problem():
    """States, output matrix and bias in float64, all with gradients, and ENTRIES as a target."""
    generator = torch.Generator().manual_seed(3)
    factors = [
        torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)
        for shape in ((ROWS, WIDTH), (PIECES, WIDTH), (PIECES,))
    ]
    row, token, weight = zip(*ENTRIES, strict=True)
    target = Target(
        torch.tensor(row), torch.tensor(token), torch.tensor(weight, dtype=torch.float64)
    )
    return factors, target


def by_loops(states, output, bias):
    """(cross-entropy, entropy) of the label rows."""
    cross, own = 0.0, 0.0
    for at, state in enumerate(states):
        logits = [
            sum(a * b for a, b in zip(piece, state, strict=True)) + shift
            for piece, shift in zip(output, bias, strict=True)
        ]
        log_sum = math.log(sum(math.exp(value) for value in logits))
        for word in range(PIECES):
            p = sum(weight for row, token, weight in ENTRIES if (row, token) == (at, word))
            cross -= p * (logits[word] - log_sum)
            own -= p * math.log(p) if p else 0.0
    return cross, own


@pytest.mark.parametrize("rows", [1, 2, ROWS])
def test_fused_cross_entropy_and_kl_equal_loops_with_bias_and_rows_of_any_mass(rows, monkeypatch):
    monkeypatch.setattr(fused, "CHUNK", rows * PIECES)
    (states, output, bias), target = problem()
    cross, own = by_loops(states.tolist(), output.tolist(), bias.tolist())
    fused_loss = fused_cross_entropy(states, output, target, bias)
    assert fused_loss.item() == pytest.approx(cross, rel=1e-12)
    assert entropy(target, PIECES).item() == pytest.approx(own, rel=1e-12)
    assert kl_loss(states, output, target, bias).item() == pytest.approx(cross - own, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, ROWS])
def test_its_gradients_by_states_output_and_bias_equal_finite_differences(rows, monkeypatch):
    monkeypatch.setattr(fused, "CHUNK", rows * PIECES)
    factors, target = problem()
    assert torch.autograd.gradcheck(
        lambda s, o, b: fused_cross_entropy(s, o, target, b), factors, atol=1e-8
    )


def test_a_second_backward_pass_over_one_graph_gives_the_same_gradients():
    factors, target = problem()
    loss = fused_cross_entropy(*factors[:2], target, factors[2]) * 3
    first = torch.autograd.grad(loss, factors, retain_graph=True)
    for one, other in zip(torch.autograd.grad(loss, factors), first, strict=True):
        assert torch.equal(one, other)


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
