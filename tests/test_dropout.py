"""Laws of dropout: its share, its mean, its seed, and the same mask in the gradient."""

import pytest
import torch

from ems.model.dropout import add_dropped, drop, keep_mask


@pytest.mark.parametrize("share", [0.004, 0.1, 0.5, 0.9])
def test_the_share_dropped_and_the_mean_are_those_asked_for(share):
    torch.manual_seed(1)
    mask = keep_mask(torch.empty(1000, 1001), share)
    error = 5 * (share * (1 - share) / mask.numel()) ** 0.5  # five standard deviations
    assert (mask == 0).double().mean().item() == pytest.approx(share, abs=error + 2**-17)
    assert mask.double().mean().item() == pytest.approx(1, abs=error / (1 - share))
    assert mask.unique().numel() == 2


def test_neighbours_are_dropped_independently():
    """Four elements share a random word: each pair of places in it, and the words, agree as often
    as chance has it.
    """
    torch.manual_seed(2)
    dropped = keep_mask(torch.empty(400_000), 0.3).view(-1, 4) == 0  # (words, 4)
    for first, second in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]:
        both = (dropped[:, first] & dropped[:, second]).double().mean().item()
        assert both == pytest.approx(0.09, abs=0.005)
    across = (dropped[1:, 0] & dropped[:-1, 3]).double().mean().item()
    assert across == pytest.approx(0.09, abs=0.005)


def test_a_mask_is_a_function_of_the_seed():
    def masks(seed):
        torch.manual_seed(seed)
        return keep_mask(torch.empty(50, 7), 0.5), keep_mask(torch.empty(50, 7), 0.5)

    first, second = masks(3)
    assert torch.equal(first, masks(3)[0])
    assert torch.equal(second, masks(3)[1])
    assert not torch.equal(first, second)
    assert not torch.equal(first, masks(4)[0])


@pytest.mark.parametrize("share", [0.0, 0.001, 0.25])
def test_the_gradient_is_that_of_the_same_mask_and_the_residual_is_kept(share):
    residual = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    branch = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(5)
    dropped = drop(branch, share)
    torch.manual_seed(5)
    total = add_dropped(residual, branch, share)
    torch.testing.assert_close(total, residual + dropped)
    total.sum().backward()
    mask = (dropped / branch).detach()
    assert torch.equal(residual.grad, torch.ones(9, 5, dtype=torch.float64))
    torch.testing.assert_close(branch.grad, mask)
