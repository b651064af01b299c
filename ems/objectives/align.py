"""The sentence alignment loss of the Lightweight paper (Eq. 5)."""

import torch
from torch import Tensor

from ems.objectives.contrastive import softmax_loss


def align_loss(first: Tensor, second: Tensor) -> Tensor:
    """-sum_j log softmax(u_j v_k) at k = j, rows and columns (Eq. 5): first[B, d], second[B, d].

    The inner product itself: no cosine, no temperature, no MLP. A sum over both directions.
    """
    scores = first @ second.T  # (B, B)
    positive = torch.arange(len(scores), device=scores.device)
    return softmax_loss(scores, positive) + softmax_loss(scores.T, positive)
