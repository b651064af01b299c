"""BERT's masked language model, a baseline of the Lightweight paper (section 4.5)."""

import numpy as np
import torch
from torch import Tensor

from ems.model.objectives.fused import Target, fused_cross_entropy
from ems.model.objectives.generative import add_head, flops_of_state, generate
from ems.model.objectives.masking import masked_count
from ems.model.objectives.system import Encoded, Objective, System


def loss(system: System, encoded: Encoded) -> Tensor:
    """Predict masked tokens from their states, in their language. Weights add up to 1 per sentence,
    as in XTR and SMLM, so the number of processes does not matter. (BERT averages over a batch.)
    """
    batch, (sentence, hidden) = encoded.batch, encoded.masked  # (M,) each
    states = encoded.states[batch.places].to(encoded.sentences.dtype)  # (M, d)
    counts = torch.bincount(sentence)  # masked tokens of each sentence
    row = torch.arange(len(hidden), device=hidden.device)
    target = Target(row, hidden, 1.0 / counts[sentence].to(states.dtype))
    return generate(system, fused_cross_entropy, states, batch.languages[sentence], target)


def flops(system: System, lengths: np.ndarray) -> int:
    return flops_of_state(system) * int(masked_count(lengths).sum())


OBJECTIVE = Objective(loss, add_head, hide="mlm", states=True, flops=flops, order=4)
