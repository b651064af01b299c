"""Single-word masked language model across languages, SMLM (Lightweight Eq. 1)."""

import torch
from torch import Tensor

from ems.objectives.batch import Encoded
from ems.objectives.fused import Target, fused_cross_entropy
from ems.objectives.generative import add_head, flops_of_sentences, generate
from ems.objectives.system import Objective, System


def smlm_target(
    masked: Tensor, translation: Tensor, hidden: Tensor, dtype: torch.dtype = torch.float32
) -> Target:
    """Labels: the masked token, for the sentence that it is masked in and for its translation.

    masked[B] is the row of the sentence of each pair with the masked token, translation[B] the
    other row, hidden[B] the token. The cross-entropy of these labels is Eq. 1: -log P(w_t | S
    without w_t) - log P(w_t | S'), for one of the two choices of S in each step.
    """
    weight = torch.ones(2 * len(hidden), dtype=dtype, device=hidden.device)
    return Target(torch.cat([masked, translation]), hidden.repeat(2), weight)


def loss(system: System, encoded: Encoded) -> Tensor:
    """Both sides predict the masked token in its language."""
    batch, (row, hidden) = encoded.batch, encoded.masked  # (B,) each
    other = batch.other[row]
    languages = batch.languages.index_copy(0, other, batch.languages[row])  # (2B,)
    target = smlm_target(row, other, hidden, encoded.sentences.dtype)
    return generate(system, fused_cross_entropy, encoded.sentences, languages, target)


OBJECTIVE = Objective(loss, add_head, hide="word", flops=flops_of_sentences, order=3)
