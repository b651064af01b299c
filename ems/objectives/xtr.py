"""Cross-lingual token-level reconstruction, XTR (EMS v2 Eq. 6-7).

For a sentence and its translation S': KL(p_S' || q), where q = softmax(logits) is predicted from
the sentence (Eq. 4-5, `ems.model.heads`), and p_S'(w) = N_w / |S'| counts the pieces of the
translation. The KL is `ems.objectives.fused.kl_loss`.
"""

import torch
from torch import Tensor

from ems.objectives.fused import Target


def xtr_target(
    row: Tensor,
    token: Tensor,
    lengths: Tensor,
    dtype: torch.dtype = torch.float32,
    kind: str = "counts",
) -> Target:
    """The labels p(w) = N_w / |S| of Eq. 7: each token of S adds 1 / |S| to a row.

    row[T], token[T] are the tokens of the sentences that are predicted, lengths[N] their numbers
    per row. `distinct` is the authors' code: 1 / |S| for each distinct token, however often it is
    there, so that a row may add up to less than 1.
    """
    if kind == "distinct":
        pieces = token.amax() + 1
        keys = torch.unique(row * pieces + token)
        row, token = keys // pieces, keys % pieces
    return Target(row, token, 1.0 / lengths[row].to(dtype))
