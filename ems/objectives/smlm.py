"""Single-word masked language model across languages, SMLM (Lightweight Eq. 1)."""

import torch
from torch import Tensor

from ems.objectives.fused import Target


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
