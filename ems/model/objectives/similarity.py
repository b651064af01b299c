"""The sentence similarity loss of the Lightweight paper (Eq. 6)."""

import math

import torch
from torch import Tensor

from ems.model.objectives.contrastive import groups_of
from ems.model.objectives.system import Encoded, Objective, System, similarity_flops


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute -sum over j1, j2 of log cos(pi/2 (softmax(u_j1 u_k) - softmax(v_j1 v_k)) at k = j2),
    with j2 over j1's group. The difference is clamped just below 1 (by 4 eps), where the cosine
    would be 0. `reduction: sum` multiplies by B, since `System` divides every loss by B.
    """
    groups = groups_of(system, encoded.batch)
    scores = (groups.anchors(side) @ groups.candidates(side).mT for side in encoded.sides)
    first, second = (torch.softmax(part, dim=-1) for part in scores)  # (n, a, g) each
    edge = 1 - 4 * torch.finfo(first.dtype).eps
    difference = (first - second).clamp(-edge, edge)
    total = -torch.cos(math.pi / 2 * difference).log().sum()
    return total * encoded.batch.total if system.settings.similarity.reduction == "sum" else total


OBJECTIVE = Objective(loss, flops=similarity_flops, order=7)
