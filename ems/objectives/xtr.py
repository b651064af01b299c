"""Cross-lingual token-level reconstruction, XTR (EMS v2 Eq. 6-7).

For a sentence and its translation S': KL(p_S' || q), where q = softmax(logits) is predicted from
the sentence (Eq. 4-5, `ems.model.heads`), and p_S'(w) = N_w / |S'| counts the pieces of the
translation. The KL is `ems.objectives.fused.kl_loss`.
"""

import torch
from torch import Tensor

from ems.objectives.fused import Target


def xtr_target(row: Tensor, token: Tensor, lengths: Tensor, dtype: torch.dtype) -> Target:
    """The labels p(w) = N_w / |S| of Eq. 7: each of its tokens adds 1 / |S| to a row.

    row[T], token[T] are the tokens of the sentences that are predicted, lengths[N] their numbers
    per row.
    """
    return Target(row, token, 1.0 / lengths[row].to(dtype))
