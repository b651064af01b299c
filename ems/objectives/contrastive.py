"""The sentence-level contrastive objective with in-batch negatives (EMS v2 Eq. 8-11).

Notable choices:
- `margin` is LaBSE's additive margin softmax: (cosine - margin) / T for the true pair only, in
  both directions (EMS v2 compares it: LaBSE-EMS);
- ours, off in the papers: `both_sides`, the other sentences of an anchor's own side are negatives
  too, and `mask`, what is no negative (`duplicates`).
"""

import torch
from torch import Tensor
from torch.nn import functional


def softmax_loss(
    scores: Tensor, positive: Tensor, mask: Tensor | None = None, margin: float = 0.0
) -> Tensor:
    """-sum over anchors of log softmax(scores) at the true candidate, whose score loses `margin`.

    scores[..., a, g] of anchors and candidates, positive[..., a] where the true candidate stands;
    mask[..., a, g] is true for what is no negative (the true candidate always counts).
    """
    at = positive[..., None]  # (..., a, 1)
    true = scores.gather(-1, at) - margin  # (..., a, 1)
    scores = scores.scatter(-1, at, true)
    if mask is not None:
        scores = scores.masked_fill(mask.scatter(-1, at, False), -torch.inf)
    return (scores.logsumexp(-1, keepdim=True) - true).sum()


def contrastive_loss(
    anchors: Tensor,
    candidates: Tensor,
    positive: Tensor,
    mask: Tensor | None = None,
    temperature: float = 0.1,
    margin: float = 0.0,
) -> Tensor:
    """One direction of Eq. 8, a sum over anchors; the similarity is cosine / temperature (Eq. 9).

    anchors[..., a, k], candidates[..., g, k]; positive and mask as in `softmax_loss`; margin > 0
    is the additive margin softmax.
    """
    anchors, candidates = (functional.normalize(part, dim=-1) for part in (anchors, candidates))
    scores = anchors @ candidates.mT / temperature  # (..., a, g)
    return softmax_loss(scores, positive, mask, margin / temperature)


def in_batch_loss(
    vectors: Tensor,
    temperature: float,
    margin: float = 0.0,
    both_sides: bool = False,
    keys: Tensor | None = None,
) -> Tensor:
    """Eq. 8 of vectors[2B, k], rows i and B + i a pair: both directions, summed over pairs.

    `keys[2B]` say which sentences have the same text; then duplicates are no negatives.
    """
    pairs = len(vectors) // 2
    rows = torch.arange(2 * pairs, device=vectors.device)
    same = None if keys is None else duplicates(keys.view(2, pairs).T, keys.view(2, pairs).T)
    how = {"temperature": temperature, "margin": margin}
    if both_sides:
        mask = rows[:, None] == rows[None, :]  # (2B, 2B): no sentence is its own negative
        mask = mask if same is None else mask | same.repeat(2, 2)
        return contrastive_loss(vectors, vectors, rows.roll(pairs), mask, **how)
    first, second = vectors.split(pairs)
    forward = contrastive_loss(first, second, rows[:pairs], same, **how)
    return forward + contrastive_loss(second, first, rows[:pairs], same, **how)


def duplicates(anchors: Tensor, candidates: Tensor) -> Tensor:
    """bool[..., a, g]: which pairs share a sentence, and so are translations of one another.

    anchors[..., a, 2], candidates[..., g, 2] are keys of both sides of pairs: a key for each text.
    """
    equal = anchors[..., :, None, :, None] == candidates[..., None, :, None, :]  # (..., a, g, 2, 2)
    return equal.flatten(-2).any(-1)


def margin_at(margin: float, warmup_steps: int, step: int) -> float:
    """The margin of a step: it rises linearly from 0 and is whole after `warmup_steps`."""
    return margin * min(1.0, step / warmup_steps) if warmup_steps else margin
