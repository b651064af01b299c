"""The sentence alignment loss of the Lightweight paper (Eq. 5)."""

from torch import Tensor

from ems.model.objectives.contrastive import groups_of, softmax_loss
from ems.model.objectives.system import Encoded, Objective, System, similarity_flops


def loss(system: System, encoded: Encoded) -> Tensor:
    """Sum -log softmax(u_j v_k) at k = j over j's group, both ways; no cosine, temperature, MLP."""
    groups = groups_of(system, encoded.batch)
    first, second = encoded.sides  # (B, d) each
    positive = groups.positives(first.device)  # (n, a)
    forward = groups.anchors(first) @ groups.candidates(second).mT  # (n, a, g)
    backward = groups.anchors(second) @ groups.candidates(first).mT
    return softmax_loss(forward, positive) + softmax_loss(backward, positive)


OBJECTIVE = Objective(loss, flops=similarity_flops, order=6)
