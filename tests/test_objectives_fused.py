"""Laws of the cross-entropies, fused and sampled, against loops in plain floats."""

import math

import pytest
import torch

from ems.model.objectives import fused
from ems.model.objectives.fused import Target, entropy, fused_cross_entropy, kl_loss
from ems.model.objectives.xtr import sample, sampled_cross_entropy, xtr_target

PIECES, WIDTH, ROWS = 12, 4, 5
# (row, token, weight): a token twice in a row, masses below and above 1, row 3 without a label
ENTRIES = [(0, 1, 0.5), (4, 6, 0.25), (0, 2, 0.3), (1, 3, 1.7), (0, 1, 0.2), (2, 0, 0.4)]
ENTRIES += [(4, 6, 0.5)]
LABELS = {token for _, token, _ in ENTRIES}


def problem():
    """States, output matrix and bias in float64, and ENTRIES as a target."""
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
def test_fused_losses_equal_loops_and_their_gradients_finite_differences(rows, monkeypatch):
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


def test_validation_computes_no_gradient(monkeypatch):
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


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("count", [PIECES, PIECES - len(LABELS)])
def test_a_sample_of_all_pieces_gives_the_full_loss_and_gradients(count, biased):
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
def test_a_sampled_loss_is_the_estimator_of_its_pieces(count):
    (states, output, bias), target = problem()
    torch.manual_seed(11)
    chosen = sample(target.token, PIECES, count)[0].tolist()
    assert len(set(chosen)) == len(chosen) == len(LABELS) + count
    torch.manual_seed(11)
    loss = sampled_cross_entropy(states, output, target, count, bias)
    expected = by_loops(states, output, bias, chosen, count / (PIECES - len(LABELS)))
    assert loss.item() == pytest.approx(expected, rel=1e-12)


TARGETS = [[0, 1], [5], [3, 3, 2], [4, 0, 5, 0], [1, 1, 1, 1, 2]]


def logits_of(scale):
    """Rows of logits at both ends: one high, one low, all high, all low, and halves."""
    high, low = scale, -scale
    return [
        [high, low, low, low, low, low],
        [low, high, high, high, high, high],
        [high] * 6,
        [low] * 6,
        [high, high, high, low, low, low],
    ]


def reference(logits):
    """The KL of Eq. 6-7, summed over rows, and its gradient by logit, in plain floats."""
    total, gradients = 0.0, []
    for row, target in zip(logits, TARGETS, strict=True):
        highest = max(row)
        log_sum = highest + math.log(sum(math.exp(value - highest) for value in row))
        shares = [target.count(word) / len(target) for word in range(len(row))]
        for share, value in zip(shares, row, strict=True):
            if share:
                total += share * (math.log(share) - value + log_sum)
        gradients.append(
            [math.exp(v - log_sum) - share for v, share in zip(row, shares, strict=True)]
        )
    return total, gradients


def run(logits, dtype=None):
    """The same from the fused objective: the output matrix is the identity."""
    row = torch.tensor([at for at, target in enumerate(TARGETS) for _ in target])
    token = torch.tensor([word for target in TARGETS for word in target])
    lengths = torch.tensor([len(target) for target in TARGETS])
    states = torch.tensor(logits, dtype=torch.float32, requires_grad=True)
    output = torch.eye(6).requires_grad_()
    target = xtr_target(row, token, lengths, torch.float32)
    loss = kl_loss(states, output, target, dtype=dtype)
    loss.backward()
    return loss, states.grad, output.grad


NEAR = [(None, 1e-6, 1e-5, 1e-6), (torch.bfloat16, 0.01, 0.01, 0.01)]


@pytest.mark.parametrize(("dtype", "of_loss", "rtol", "atol"), NEAR, ids=["float32", "bfloat16"])
@pytest.mark.parametrize("chunk", [1 << 22, 6], ids=["at once", "row by row"])
@pytest.mark.parametrize("scale", [1.0, 80.0, 1e4])
def test_extreme_logits_are_near_float64(scale, chunk, dtype, of_loss, rtol, atol, monkeypatch):
    monkeypatch.setattr(fused, "CHUNK", chunk)
    logits = logits_of(scale)
    total, gradients = reference(logits)
    loss, of_states, of_output = run(logits, dtype)
    assert loss.item() == pytest.approx(total, rel=of_loss)
    assert {loss.dtype, of_states.dtype, of_output.dtype} == {torch.float32}
    gradients = torch.tensor(gradients)
    torch.testing.assert_close(of_states, gradients, rtol=rtol, atol=atol)
    expected = gradients.T @ torch.tensor(logits) / scale
    torch.testing.assert_close(of_output / scale, expected, rtol=rtol, atol=2 * atol)


def test_sums_over_many_rows_are_not_bfloat16(monkeypatch):
    """In bfloat16, adding ones to a sum stops at 256."""
    rows, pieces = 3000, 4
    monkeypatch.setattr(fused, "CHUNK", pieces)
    states = torch.zeros(rows, pieces, requires_grad=True)
    output = torch.eye(pieces).requires_grad_()
    row, token = torch.arange(rows), torch.zeros(rows, dtype=torch.long)
    target = xtr_target(row, token, torch.ones(rows).long(), torch.float32)
    loss = kl_loss(states, output, target, dtype=torch.bfloat16)
    assert loss.item() == pytest.approx(rows * math.log(pieces), rel=1e-3)
