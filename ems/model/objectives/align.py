"""The sentence alignment loss of the Lightweight paper (Eq. 5)."""

from torch import Tensor

from ems.model.objectives.contrastive import Groups, groups_of, softmax_loss
from ems.model.objectives.system import Encoded, Objective, System, similarity_flops


def align_loss(first: Tensor, second: Tensor, groups: Groups) -> Tensor:
    """Return -sum_j log softmax(u_j v_k) at k = j, both directions, of first[B, d], second[B, d].

    The score is the inner product: no cosine, no temperature, no MLP. k runs over j's group.
    """
    positive = groups.positives(first.device)  # (n, a)
    forward = groups.anchors(first) @ groups.candidates(second).mT  # (n, a, g)
    backward = groups.anchors(second) @ groups.candidates(first).mT
    return softmax_loss(forward, positive) + softmax_loss(backward, positive)


def loss(system: System, encoded: Encoded) -> Tensor:
    return align_loss(*encoded.sides, groups_of(system, encoded.batch))


OBJECTIVE = Objective(loss, flops=similarity_flops, order=6)
