"""The cross-lingual single-word masked language model, SMLM (Lightweight Eq. 1)."""

import torch
from torch import Tensor

from ems.model.objectives.fused import Target, fused_cross_entropy
from ems.model.objectives.generative import add_head, flops_of_sentences, generate
from ems.model.objectives.system import Encoded, Objective, System


def loss(system: System, encoded: Encoded) -> Tensor:
    """Predict the masked token from both sides of a pair, in the token's language. This is Eq. 1
    for one choice of S per step: -log P(w_t | S without w_t) - log P(w_t | S').
    """
    batch, (row, hidden) = encoded.batch, encoded.masked  # (B,) each
    other = batch.other[row]
    languages = batch.languages.index_copy(0, other, batch.languages[row])  # (2B,)
    weight = encoded.sentences.new_ones(2 * len(hidden))
    target = Target(torch.cat([row, other]), hidden.repeat(2), weight)
    return generate(system, fused_cross_entropy, encoded.sentences, languages, target)


OBJECTIVE = Objective(loss, add_head, hide="word", flops=flops_of_sentences, order=3)
