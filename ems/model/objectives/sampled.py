"""Cross-entropy of sparse label rows against a sample of the vocabulary (option `xtr.sampled`).

The normaliser Z = sum_w exp z(w) of each row is estimated from all pieces that are a label in the
batch and n others, drawn uniformly without replacement, each counted (V - L) / n times (L distinct
labels): a constant bias of the logits. The estimate of Z is unbiased; log Z is too low by about
Var(Z) / (2 Z^2), which falls as 1 / n. With all pieces drawn it is the full loss.
"""

import torch
from torch import Tensor

from ems.model.objectives.fused import Target, fused_cross_entropy


def sampled_cross_entropy(
    states: Tensor,
    output: Tensor,
    target: Target,
    count: int,
    bias: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return `fused_cross_entropy` with Z estimated from the labels and `count` other pieces."""
    chosen, token, times = sample(target.token, len(output), count)
    correction = times.log().to(states.dtype)  # (n,)
    offset = correction if bias is None else bias[chosen] + correction
    labels = Target(target.row, token, target.weight)
    return fused_cross_entropy(states, output[chosen], labels, offset, dtype)


@torch.no_grad()
def sample(token: Tensor, pieces: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the chosen pieces [n], each label's place among them [T], and each one's count [n].

    They are drawn from PyTorch's generator on the CPU, which the trainer seeds.
    """
    is_label = torch.zeros(pieces, dtype=torch.bool, device=token.device)
    is_label[token] = True
    labels, others = is_label.nonzero()[:, 0], (~is_label).nonzero()[:, 0]
    drawn = others[torch.randperm(len(others))[:count].to(token.device)]
    chosen = torch.cat([labels, drawn])  # (n,)
    times = torch.ones(len(chosen), dtype=torch.float64, device=token.device)
    times[len(labels) :] = len(others) / max(1, len(drawn))
    place = torch.empty(pieces, dtype=torch.long, device=token.device)
    place[chosen] = torch.arange(len(chosen), device=token.device)
    return chosen, place[token], times
