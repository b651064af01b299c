"""The sentence similarity loss of the Lightweight paper (Eq. 6)."""

import math

import torch
from torch import Tensor

from ems.model.objectives.contrastive import Groups, groups_of
from ems.model.objectives.system import Encoded, Objective, System, similarity_flops


def similarity_loss(first: Tensor, second: Tensor, groups: Groups) -> Tensor:
    """Return -sum over j1, j2 of log cos(pi/2 (softmax(u_j1 u_k) - softmax(v_j1 v_k)) at k = j2).

    first[B, d], second[B, d]; j2 runs over j1's group. The difference is clamped to four roundings
    below 1, where the cosine would be 0.
    """
    scores = (groups.anchors(side) @ groups.candidates(side).mT for side in (first, second))
    of_first, of_second = (torch.softmax(part, dim=-1) for part in scores)  # (n, a, g) each
    edge = 1 - 4 * torch.finfo(of_first.dtype).eps
    difference = (of_first - of_second).clamp(-edge, edge)
    return -torch.cos(math.pi / 2 * difference).log().sum()


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute Eq. 6 of the embeddings, or B times that: `System` divides every loss by B."""
    total = similarity_loss(*encoded.sides, groups_of(system, encoded.batch))
    return total * encoded.batch.total if system.settings.similarity.reduction == "sum" else total


OBJECTIVE = Objective(loss, flops=similarity_flops, order=7)
