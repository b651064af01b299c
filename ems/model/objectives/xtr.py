"""Cross-lingual token-level reconstruction, XTR (EMS v2 Eq. 6-7).

For a sentence and its translation S': KL(p_S' || q), where q = softmax(logits) is predicted from
the sentence (Eq. 4-5, `ems.model.heads`), and p_S'(w) = N_w / |S'| counts the pieces of the
translation. The KL is `ems.model.objectives.fused.kl_loss`.
"""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from ems.model.objectives.batch import Encoded
from ems.model.objectives.fused import Target, fused_cross_entropy, kl_loss
from ems.model.objectives.generative import add_head, flops_of_sentences, generate
from ems.model.objectives.sampled import sampled_cross_entropy
from ems.model.objectives.system import Objective, System


def xtr_target(
    row: Tensor, token: Tensor, lengths: Tensor, dtype: torch.dtype, distinct: bool = False
) -> Target:
    """Return the labels p(w) = N_w / |S| of Eq. 7: each token of S adds 1 / |S| to a row.

    row[T], token[T] are the tokens of the predicted sentences, lengths[N] their numbers per row.
    `distinct` is the authors' code: repeated tokens count once, so a row may add up to less than 1.
    """
    if distinct:
        pieces = token.amax() + 1
        keys = torch.unique(row * pieces + token)
        row, token = keys // pieces, keys % pieces
    return Target(row, token, 1.0 / lengths[row].to(dtype))


def loss(system: System, encoded: Encoded) -> Tensor:
    """Let each sentence predict the tokens of the other side in that side's language.

    Training may let only a `share` of the sentences predict, others in each step, and may sample
    the softmax; validation has all sentences and the whole vocabulary.
    """
    batch, settings = encoded.batch, system.settings.xtr
    labels, distinct = batch.labels(system.masked_labels), settings.target == "distinct"
    target = xtr_target(*labels, encoded.sentences.dtype, distinct)
    rows: Tensor | slice = slice(None)
    every = _every(system) if system.training else 1
    if every > 1:
        rows = torch.arange(batch.step % every, 2 * batch.pairs, every, device=batch.rows.device)
        target = target.of(rows, 2 * batch.pairs)
    cross_entropy = fused_cross_entropy
    if system.training and settings.sampled:
        cross_entropy = partial(sampled_cross_entropy, count=settings.sampled)
    divergence = partial(kl_loss, cross_entropy=cross_entropy)
    languages = batch.languages[batch.other][rows]
    return every * generate(system, divergence, encoded.sentences[rows], languages, target)


def _every(system: System) -> int:
    """Return n where one of n sentences predicts in a training step."""
    return round(1 / system.settings.xtr.share)


def flops(system: System, lengths: np.ndarray) -> int:
    """Count the operations of the predictions of a training step."""
    return flops_of_sentences(system, lengths) // _every(system)


OBJECTIVE = Objective(loss, add_head, flops=flops, order=1)
