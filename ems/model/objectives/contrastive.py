"""The sentence-level contrastive objective with in-batch negatives (EMS v2 Eq. 8-11). `margin` is
LaBSE's additive margin softmax, (cosine - margin) / T for the true pair, in both directions
(LaBSE-EMS in EMS v2). `both_sides` and `mask_duplicates` are ours.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from ems.config.model import EncoderSettings
from ems.model.encoder import start_values
from ems.model.objectives.system import (
    DeviceBatch,
    Encoded,
    Objective,
    Parts,
    System,
    linear_weights,
    similarity_flops,
)

MANY = 1024  # pairs of a group from which passes over its scores cost more than small operations
LARGEST = 60.0  # size of scores whose exponentials float32 can sum


@dataclass(frozen=True)
class Groups:
    """Groups of `size` pairs that share their negatives, on one process or many.

    The authors take the negatives of each of four GPUs from its own 152 pairs (EMS v2 IV-C): here
    batch_pairs 608 and negatives 152. If a group spans several processes, all vectors are gathered,
    and each process scores its own pairs (anchors) against their whole groups. The summed gradients
    of N processes equal the gradients of one.
    """

    size: int  # divides `total`, as `pairs` does
    pairs: int  # of this process, from number `first` on
    first: int
    total: int  # pairs of the step

    @property
    def local(self) -> bool:
        """True if no group spans several processes."""
        return self.pairs % self.size == 0

    @property
    def block(self) -> int:
        """The largest number a of neighbouring anchors that always share a group."""
        return math.gcd(self.size, self.pairs)

    def anchors(self, values: Tensor) -> Tensor:
        """Split the pairs of this process into blocks: values[pairs, ...] -> [n, a, ...]."""
        return values.unflatten(0, (-1, self.block))

    def candidates(self, values: Tensor) -> Tensor:
        """Return the group of each block of anchors: values[pairs, ...] -> [n, size, ...], for
        gradients too. All processes must call it, in the same order.
        """
        if self.local:
            return values.unflatten(0, (-1, self.size))
        groups = _Gather.apply(values, self.first, self.total).unflatten(0, (-1, self.size))
        starts = range(self.first, self.first + self.pairs, self.block)
        return groups[[start // self.size for start in starts]]  # (n, size, ...)

    def positives(self, device: torch.device) -> Tensor:
        """Return the index of each anchor's own pair in its group, int64[n, a]."""
        rows = torch.arange(self.first, self.first + self.pairs, device=device)
        return self.anchors(rows % self.size)


class _Gather(torch.autograd.Function):
    """Gathers values[b, ...] of all processes in the order of their pairs; sums the gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, first: int, total: int) -> Tensor:
        ctx.own = slice(first, first + len(values))
        result = values.new_empty(total, *values.shape[1:])
        distributed.all_gather(list(result.split(len(values))), values.contiguous())
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        grad = grad.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(grad)
        return grad[ctx.own], None, None


def groups_of(system: System, batch: DeviceBatch) -> Groups:
    """Return the groups of negatives; a batch smaller than a group (in validation) is one group."""
    size = min(system.negatives or batch.total, batch.total)
    return Groups(size, batch.pairs, batch.first, batch.total)


def softmax_loss(
    scores: Tensor, positive: Tensor, mask: Tensor | None = None, margin: float = 0.0
) -> Tensor:
    """Sum -log softmax(scores) at the true candidate over anchors; its score loses `margin` first.
    scores[..., a, g] are of a anchors and g candidates, positive[..., a] the true ones, and
    mask[..., a, g] is true for other candidates to ignore.
    """
    place = positive[..., None]  # (..., a, 1)
    true = scores.gather(-1, place) - margin  # (..., a, 1)
    scores = scores.scatter(-1, place, true)
    if mask is not None:
        scores = scores.masked_fill(mask.scatter(-1, place, False), -torch.inf)
    return (scores.logsumexp(-1, keepdim=True) - true).sum()


class _BothDirections(torch.autograd.Function):
    """Sums `softmax_loss` over the scores first[n, g, k] @ second.mT and over their transposes.
    Both share one exponential, so no score may exceed LARGEST. The gradient takes the place of the
    scores. `ignored` are indices of the flat scores.
    """

    @staticmethod
    def forward(
        ctx: Any, first: Tensor, second: Tensor, margin: float, ignored: Tensor | None
    ) -> Tensor:
        scores = first @ second.mT  # (n, g, g)
        diagonal = scores.diagonal(dim1=1, dim2=2)
        diagonal -= margin
        true = diagonal.sum()
        scores.exp_()
        if ignored is not None:
            scores.view(-1).index_fill_(0, ignored, 0)
        rows, columns = scores.sum(2, keepdim=True), scores.sum(1, keepdim=True)
        loss = rows.log().sum() + columns.log().sum() - 2 * true
        if any(ctx.needs_input_grad):
            scores *= 1 / rows + 1 / columns
            diagonal -= 2
            ctx.save_for_backward(first, second, scores)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        first, second, scores = ctx.saved_tensors
        return grad * (scores @ second), grad * (scores.mT @ first), None, None


def contrastive_loss(system: System, vectors: Tensor, batch: DeviceBatch) -> Tensor:
    """Compute Eq. 8 in both directions, summed over pairs: rows i and B + i of vectors[2B, k].
    Scores are cosine / temperature (Eq. 9), or inner product / temperature. Sentences with equal
    `batch.keys[2B]` are never each other's negatives. Validation uses the full margin.
    """
    settings, groups, pairs = system.contrast, groups_of(system, batch), batch.pairs
    temperature = settings.temperature
    margin = settings.margin
    if system.training and settings.margin_warmup_steps:  # it rises linearly from 0
        margin *= min(1.0, batch.step / settings.margin_warmup_steps)
    margin /= temperature
    if settings.similarity == "cosine":
        vectors = functional.normalize(vectors, dim=-1)
    sides = vectors.unflatten(0, (2, pairs)).transpose(0, 1)  # (B, 2, k)
    anchors, candidates = groups.anchors(sides), groups.candidates(sides)  # (n, a or g, 2, k)
    bounded = settings.similarity == "cosine" and 1 / temperature + margin < LARGEST
    large = vectors.device.type == "cpu" and groups.local and groups.size >= MANY
    keys = None if batch.keys is None else batch.keys.view(2, pairs).T  # (B, 2)
    if large and bounded and not settings.both_sides:
        ignored = None if keys is None else repeated(keys, groups.size)
        first, second = anchors.unbind(2)
        return _BothDirections.apply(first / temperature, second, margin, ignored)
    mask = None
    if keys is not None:
        mask = duplicates(groups.anchors(keys), groups.candidates(keys))  # (n, a, g)
    true = groups.positives(vectors.device)  # (n, a)
    if not settings.both_sides:
        forward = anchors[:, :, 0] @ candidates[:, :, 1].mT / temperature  # (n, a, g)
        if groups.local:  # anchors are all candidates, so one product serves both directions
            backward = forward.mT
        else:
            backward = anchors[:, :, 1] @ candidates[:, :, 0].mT / temperature
        return sum(softmax_loss(scores, true, mask, margin) for scores in (forward, backward))
    # all 2g sentences of a group are candidates of each of its sentences, except itself
    size = candidates.shape[1]
    itself, true = torch.cat([true, true + size], 1), torch.cat([true + size, true], 1)  # (n, 2a)
    own = functional.one_hot(itself, 2 * size).bool()  # (n, 2a, 2g)
    mask = own if mask is None else own | mask.repeat(1, 2, 2)
    anchors, candidates = (part.transpose(1, 2).flatten(1, 2) for part in (anchors, candidates))
    scores = anchors @ candidates.mT / temperature  # (n, 2a, 2g)
    return softmax_loss(scores, true, mask, margin)


def duplicates(anchors: Tensor, candidates: Tensor) -> Tensor:
    """Mark pairs that share a sentence, bool[..., a, g], by keys [..., a, 2] and [..., g, 2]."""
    one, two = (anchors[..., :, None, side] for side in (0, 1))  # (..., a, 1)
    first, second = (candidates[..., None, :, side] for side in (0, 1))  # (..., 1, g)
    return (one == first) | (one == second) | (two == first) | (two == second)


def repeated(keys: Tensor, size: int) -> Tensor:
    """Return where `duplicates` of keys[B, 2] are in flat scores[n, size, size], off diagonals."""
    _, place, count = keys.unique(return_inverse=True, return_counts=True)
    pairs = (count[place] > 1).any(1).nonzero()[:, 0]
    one, other = pairs[duplicates(keys[pairs], keys[pairs]).nonzero()].unbind(1)
    return (one * size + other % size)[(one != other) & (one // size == other // size)]


class ContrastiveHead(nn.Module):
    """Two linear layers with ReLU between them: h(S) = W1 relu(W2 u + b2) + b1 (Eq. 10-11)."""

    def __init__(self, model: EncoderSettings, out: int) -> None:
        super().__init__()
        self.inner = nn.Linear(model.pooled_width, model.pooled_width)
        self.outer = nn.Linear(model.pooled_width, out)
        start_values(self, model.start)

    def forward(self, sentences: Tensor) -> Tensor:
        return self.outer(functional.relu(self.inner(sentences)))


def add_head(heads: nn.ModuleDict, settings: Parts, languages: int, pieces: int) -> None:
    if width := settings.objectives.contrastive.width:
        heads["contrastive"] = ContrastiveHead(settings.model, width)


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute Eq. 8 for the MLP's output, or for the embeddings if there is no MLP."""
    vectors = encoded.sentences
    if "contrastive" in system.heads:
        vectors = system.heads["contrastive"](vectors)  # (2B, d_cntrs)
    return contrastive_loss(system, vectors, encoded.batch)


def flops(system: System, lengths: np.ndarray) -> int:
    head = linear_weights(system.heads["contrastive"]) if "contrastive" in system.heads else 0
    width = system.contrast.width or system.encoder.settings.pooled_width
    return 2 * head * len(lengths) + contrastive_flops(system, lengths, width)


def contrastive_flops(system: System, lengths: np.ndarray, width: int) -> int:
    both = similarity_flops(system, lengths, width)  # counts a product for each direction
    return 2 * both if system.contrast.both_sides else both // 2


OBJECTIVE = Objective(loss, add_head, flops=flops, order=5)
