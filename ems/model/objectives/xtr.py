"""Cross-lingual token-level reconstruction, XTR (EMS v2 Eq. 6-7): for a sentence and its
translation S', KL(p_S' || q), where q = softmax(logits) is predicted from the sentence (Eq. 4-5,
generative.py), and p_S'(w) = N_w / |S'| counts the pieces of S'.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ems.model.objectives.fused import Logits, Target, fused_cross_entropy, kl_loss
from ems.model.objectives.generative import add_head, flops_of_sentences, generate
from ems.model.objectives.system import Encoded, Objective, System


def xtr_target(
    row: Tensor, token: Tensor, lengths: Tensor, dtype: torch.dtype, distinct: bool = False
) -> Target:
    """Return the labels p(w) = N_w / |S| of Eq. 7: each token of S adds 1 / |S| to a row, for
    row[T] and token[T] of the predicted sentences, lengths[N] |S|. `distinct` (the authors' code)
    counts repeated tokens once, so a row may sum to less than 1.
    """
    if distinct:
        pieces = token.amax() + 1
        keys = torch.unique(row * pieces + token)
        row, token = keys // pieces, keys % pieces
    return Target(row, token, 1.0 / lengths[row].to(dtype))


def sampled_cross_entropy(logits: Logits, target: Target, count: int) -> Tensor:
    """Compute `fused_cross_entropy` over a sample of the vocabulary (`xtr.sampled`). The normaliser
    sum_w exp z(w) of a row is estimated from the L distinct labels of the batch and n = `count`
    other pieces, drawn uniformly without replacement. Each of these counts (V - L) / n times, by a
    constant bias of its logit, so the estimate is unbiased.
    """
    chosen, token, times = sample(target.token, len(logits.output), count)
    correction = times.log().to(logits.states.dtype)  # (n,)
    bias = correction if logits.bias is None else logits.bias[chosen] + correction
    sampled = replace(logits, output=logits.output[chosen], bias=bias)
    return fused_cross_entropy(sampled, Target(target.row, token, target.weight))


@torch.no_grad()
def sample(token: Tensor, pieces: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sampled pieces [n], each label's index in them [T], and each one's factor [n]."""
    is_label = torch.zeros(pieces, dtype=torch.bool, device=token.device)
    is_label[token] = True
    labels, others = is_label.nonzero()[:, 0], (~is_label).nonzero()[:, 0]
    drawn = others[torch.randperm(len(others))[:count].to(token.device)]  # by the trainer's seed
    chosen = torch.cat([labels, drawn])  # (n,)
    times = torch.ones(len(chosen), dtype=torch.float64, device=token.device)
    times[len(labels) :] = len(others) / max(1, len(drawn))
    place = torch.empty(pieces, dtype=torch.long, device=token.device)
    place[chosen] = torch.arange(len(chosen), device=token.device)
    return chosen, place[token], times


def loss(system: System, encoded: Encoded) -> Tensor:
    """Predict the tokens of each sentence's translation, in the translation's language. In training
    a `share` of the sentences may predict, other ones in each step, and the softmax may be sampled.
    """
    batch, settings = encoded.batch, system.settings.xtr
    labels, distinct = batch.labels(system.masked_labels), settings.target == "distinct"
    target = xtr_target(*labels, encoded.sentences.dtype, distinct)
    rows: Tensor | slice = slice(None)
    every = _every(system) if system.training else 1
    if every > 1:
        rows = torch.arange(batch.step % every, 2 * batch.pairs, every, device=batch.rows.device)
        target = target.select(rows, 2 * batch.pairs)
    cross_entropy = fused_cross_entropy
    if system.training and settings.sampled:
        cross_entropy = partial(sampled_cross_entropy, count=settings.sampled)
    divergence = partial(kl_loss, cross_entropy=cross_entropy)
    languages = batch.languages[batch.other][rows]
    return every * generate(system, divergence, encoded.sentences[rows], languages, target)


def flops(system: System, lengths: np.ndarray) -> int:
    return flops_of_sentences(system, lengths) // _every(system)


def _every(system: System) -> int:
    """Return n if one of n sentences predicts in a training step."""
    return round(1 / system.settings.xtr.share)


OBJECTIVE = Objective(loss, add_head, flops=flops, order=1)
