"""The sentence similarity loss of the Lightweight paper (Eq. 6)."""

import math

import torch
from torch import Tensor

from ems.objectives.batch import Encoded
from ems.objectives.negatives import Groups
from ems.objectives.system import Objective, System, similarity_flops


def similarity_loss(first: Tensor, second: Tensor, groups: Groups | None = None) -> Tensor:
    """-sum over j1, j2 of log cos(pi/2 (softmax(u_j1 u_k) - softmax(v_j1 v_k)) at k = j2) (Eq. 6).

    first[B, d], second[B, d]; a sum over all B x B, the diagonal included, or over those of each
    group of pairs. Where the softmax is 1 in one language and 0 in the other, the cosine is 0: such
    a difference is kept four roundings off 1, so that the loss is finite there, and its gradient 0.
    """
    groups = groups or Groups.of_batch(len(first))
    scores = (groups.anchors(side) @ groups.candidates(side).mT for side in (first, second))
    of_first, of_second = (torch.softmax(part, dim=-1) for part in scores)  # (n, a, g) each
    edge = 1 - 4 * torch.finfo(of_first.dtype).eps
    difference = (of_first - of_second).clamp(-edge, edge)
    return -torch.cos(math.pi / 2 * difference).log().sum()


def loss(system: System, encoded: Encoded) -> Tensor:
    """Eq. 6 of the embeddings."""
    return similarity_loss(*encoded.sides, system.groups(encoded.batch))


OBJECTIVE = Objective(loss, flops=similarity_flops, order=7)
