"""Laws of XTR at the edges of its numbers: logits of any size, and logits in bfloat16."""

import math

import pytest
import torch

from ems.objectives import fused
from ems.objectives.fused import kl_loss
from ems.objectives.xtr import xtr_target

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
    """(sum over rows of the KL of Eq. 6-7, its gradient by logit) in plain floats."""
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


@pytest.mark.parametrize("chunk", [1 << 22, 6], ids=["at once", "row by row"])
@pytest.mark.parametrize("scale", [1.0, 80.0, 1e4])
def test_xtr_with_extreme_logits_is_finite_and_what_float64_gives(scale, chunk, monkeypatch):
    monkeypatch.setattr(fused, "CHUNK", chunk)
    logits = logits_of(scale)
    total, gradients = reference(logits)
    loss, of_states, of_output = run(logits)
    assert loss.item() == pytest.approx(total, rel=1e-6)
    assert of_output.isfinite().all()
    torch.testing.assert_close(of_states, torch.tensor(gradients), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("chunk", [1 << 22, 6], ids=["at once", "row by row"])
@pytest.mark.parametrize("scale", [1.0, 80.0, 1e4])
def test_xtr_in_bfloat16_is_within_one_percent_and_its_sums_are_float32(scale, chunk, monkeypatch):
    monkeypatch.setattr(fused, "CHUNK", chunk)
    logits = logits_of(scale)
    total, gradients = reference(logits)
    loss, of_states, of_output = run(logits, dtype=torch.bfloat16)
    assert loss.item() == pytest.approx(total, rel=0.01)
    assert {loss.dtype, of_states.dtype, of_output.dtype} == {torch.float32}
    gradients = torch.tensor(gradients)
    torch.testing.assert_close(of_states, gradients, rtol=0.01, atol=0.01)
    expected = gradients.T @ torch.tensor(logits) / scale
    torch.testing.assert_close(of_output / scale, expected, rtol=0.01, atol=0.02)


def test_the_sums_over_many_rows_are_not_made_in_bfloat16(monkeypatch):
    """In bfloat16 a sum stands still at 256 when ones are added to it."""
    rows, pieces = 3000, 4
    monkeypatch.setattr(fused, "CHUNK", pieces)
    states = torch.zeros(rows, pieces, requires_grad=True)
    output = torch.eye(pieces).requires_grad_()
    row, token = torch.arange(rows), torch.zeros(rows, dtype=torch.long)
    target = xtr_target(row, token, torch.ones(rows).long(), torch.float32)
    loss = kl_loss(states, output, target, dtype=torch.bfloat16)
    assert loss.item() == pytest.approx(rows * math.log(pieces), rel=1e-3)
