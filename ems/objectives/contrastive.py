"""The sentence-level contrastive objective with in-batch negatives (EMS v2 Eq. 8-11)."""

import torch
from torch import Tensor
from torch.nn import functional


def contrastive_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """-sum_j log softmax of the true pair, rows and columns (Eq. 8): first[B, k], second[B, k].

    The similarity is cosine over `temperature` (Eq. 9). A sum over pairs and both directions.
    """
    first, second = functional.normalize(first, dim=1), functional.normalize(second, dim=1)
    similarity = first @ second.T / temperature  # (B, B)
    target = torch.arange(len(similarity), device=similarity.device)
    forward = functional.cross_entropy(similarity, target, reduction="sum")
    return forward + functional.cross_entropy(similarity.T, target, reduction="sum")
