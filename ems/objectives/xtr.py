"""Cross-lingual token-level reconstruction, XTR (EMS v2 Eq. 6-7).

For a sentence and its translation S': KL(p_S' || q), where q = softmax(logits) is predicted from
the sentence (Eq. 4-5, `ems.model.heads`), and p_S'(w) = N_w / |S'| counts the pieces of the
translation. The KL is `ems.objectives.fused.kl_loss`.
"""

from functools import partial

import torch
from torch import Tensor

from ems.objectives.batch import Encoded
from ems.objectives.fused import Target, fused_cross_entropy, kl_loss
from ems.objectives.generative import add_head, flops_of_sentences, generate
from ems.objectives.sampled import sampled_cross_entropy
from ems.objectives.system import Objective, System


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


def loss(system: System, encoded: Encoded) -> Tensor:
    """Each sentence predicts the tokens of the other side in that side's language; in validation
    against the whole vocabulary, whatever training does.
    """
    batch, settings = encoded.batch, system.settings.xtr
    labels = batch.labels(system.masked_labels)
    target = xtr_target(*labels, encoded.sentences.dtype, settings.target)
    cross_entropy = fused_cross_entropy
    if system.training and settings.sampled:
        cross_entropy = partial(sampled_cross_entropy, count=settings.sampled)
    divergence = partial(kl_loss, cross_entropy=cross_entropy)
    return generate(system, divergence, encoded.sentences, batch.languages[batch.other], target)


OBJECTIVE = Objective(loss, add_head, flops=flops_of_sentences, order=1)
