"""The sentence-level contrastive objective with in-batch negatives (EMS v2 Eq. 8-11).

Notable choices:
- `margin` is LaBSE's additive margin softmax: (cosine - margin) / T for the true pair only, in
  both directions (EMS v2 compares it: LaBSE-EMS);
- ours, off in the papers: `both_sides`, the other sentences of an anchor's own side are negatives
  too, and `mask`, what is no negative (`duplicates`).
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ems.model.heads import ContrastiveHead, linear_weights
from ems.objectives.batch import DeviceBatch, Encoded
from ems.objectives.negatives import Groups
from ems.objectives.system import Objective, Parts, System, similarity_flops


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
    groups: Groups | None = None,
) -> Tensor:
    """Eq. 8 of vectors[2B, k], rows i and B + i a pair: both directions, summed over pairs.

    `keys[2B]` say which sentences have the same text; then duplicates are no negatives. The
    negatives of a pair are those of its group (all pairs, if None).
    """
    pairs = len(vectors) // 2
    groups = groups or Groups.of_batch(pairs)
    sides = vectors.unflatten(0, (2, pairs)).transpose(0, 1)  # (B, 2, k)
    anchors, candidates = groups.anchors(sides), groups.candidates(sides)  # (n, a or g, 2, k)
    same = None
    if keys is not None:
        keys = keys.view(2, pairs).T  # (B, 2)
        same = duplicates(groups.anchors(keys), groups.candidates(keys))  # (n, a, g)
    positive = groups.positives(vectors.device)  # (n, a)
    how = {"temperature": temperature, "margin": margin}
    if both_sides:
        return _both_sides_loss(anchors, candidates, positive, same, how)
    forward = contrastive_loss(anchors[:, :, 0], candidates[:, :, 1], positive, same, **how)
    return forward + contrastive_loss(anchors[:, :, 1], candidates[:, :, 0], positive, same, **how)


def _both_sides_loss(
    anchors: Tensor,
    candidates: Tensor,
    positive: Tensor,
    same: Tensor | None,
    how: dict[str, float],
) -> Tensor:
    """All 2g sentences of a group are candidates of each of its sentences, but for itself."""
    size = candidates.shape[1]
    anchors, candidates = (part.transpose(1, 2).flatten(1, 2) for part in (anchors, candidates))
    itself = torch.cat([positive, positive + size], 1)  # (n, 2a)
    true = torch.cat([positive + size, positive], 1)  # (n, 2a)
    mask = functional.one_hot(itself, 2 * size).bool()  # (n, 2a, 2g)
    if same is not None:
        mask |= same.repeat(1, 2, 2)
    return contrastive_loss(anchors, candidates, true, mask, **how)


def duplicates(anchors: Tensor, candidates: Tensor) -> Tensor:
    """bool[..., a, g]: which pairs share a sentence, and so are translations of one another.

    anchors[..., a, 2], candidates[..., g, 2] are keys of both sides of pairs: a key for each text.
    """
    equal = anchors[..., :, None, :, None] == candidates[..., None, :, None, :]  # (..., a, g, 2, 2)
    return equal.flatten(-2).any(-1)


def margin_at(margin: float, warmup_steps: int, step: int) -> float:
    """The margin of a step: it rises linearly from 0 and is whole after `warmup_steps`."""
    return margin * min(1.0, step / warmup_steps) if warmup_steps else margin


def add_head(heads: nn.ModuleDict, settings: Parts, languages: int, pieces: int) -> None:
    """Add the MLP of Eq. 10-11, unless its width is 0."""
    if width := settings.objectives.contrastive.width:
        heads["contrastive"] = ContrastiveHead(settings.model, width)


def contrasted(system: System, vectors: Tensor, batch: DeviceBatch) -> Tensor:
    """Eq. 8 of vectors[2B, k] by the settings of a system; in validation with the whole margin."""
    settings = system.contrast
    warmup = settings.margin_warmup_steps if system.training else 0
    return in_batch_loss(
        vectors,
        settings.temperature,
        margin_at(settings.margin, warmup, batch.step),
        settings.both_sides,
        batch.keys,
        system.groups(batch),
    )


def loss(system: System, encoded: Encoded) -> Tensor:
    """Eq. 8 of the MLP's output, or of the embeddings where there is no MLP."""
    vectors = encoded.sentences
    if "contrastive" in system.heads:
        vectors = system.heads["contrastive"](vectors)  # (2B, d_cntrs)
    return contrasted(system, vectors, encoded.batch)


def flops(system: System, lengths: np.ndarray) -> int:
    """Operations of the MLP and of the similarities."""
    head = linear_weights(system.heads["contrastive"]) if "contrastive" in system.heads else 0
    width = system.contrast.width or system.encoder.settings.width
    return 2 * head * len(lengths) + contrasted_flops(system, lengths, width)


def contrasted_flops(system: System, lengths: np.ndarray, width: int) -> int:
    """Operations of the similarities of `contrasted`."""
    sides = 2 if system.contrast.both_sides else 1  # all by all is twice both directions
    return sides * similarity_flops(system, lengths, width)


OBJECTIVE = Objective(loss, add_head, flops=flops, order=5)
