"""Negatives: groups of neighbouring pairs of a step, on one process or many.

EMS v2 (IV-C) trains with 152 pairs on each of four GPUs, and each GPU takes its negatives from its
own 152. Here that is batch_pairs 608 and negatives 152, on one device or on four. A group within
one process needs nothing of the others; otherwise the vectors of all are gathered, and each process
scores its own pairs (anchors) against their whole groups. The gradients of a vector in the losses
of all processes are summed, so the gradients of N processes, summed, are those of one.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed

from ems.base.errors import EmsError


@dataclass(frozen=True)
class Groups:
    """The groups of `size` pairs of a process that has pairs [first, first + pairs) of the `total`.

    Raises `EmsError` when `size` does not divide `total`, or `pairs` does not.
    """

    size: int
    pairs: int
    first: int
    total: int

    def __post_init__(self) -> None:
        if self.total % self.size:
            raise EmsError(
                f"objectives.contrastive.negatives: {self.size} pairs a group do not divide "
                f"train.batch_pairs, {self.total}; say `batch` or a divisor of it"
            )
        if self.total % self.pairs or self.first % self.pairs:
            raise EmsError(
                f"train.batch_pairs: {self.total} pairs are not shared equally by processes that "
                f"have {self.pairs}; choose a multiple of the number of processes"
            )

    @classmethod
    def of_batch(cls, pairs: int, size: int | None = None) -> "Groups":
        """Return the groups of a batch that is all of its step (default size: all its pairs)."""
        return cls(size or pairs, pairs, 0, pairs)

    @property
    def local(self) -> bool:
        """Return whether no group reaches into another process."""
        return self.pairs % self.size == 0

    @property
    def block(self) -> int:
        """Return a, the largest number of neighbouring anchors that surely share a group."""
        return math.gcd(self.size, self.pairs)

    def anchors(self, own: Tensor) -> Tensor:
        """Divide the pairs of this process into blocks: own[pairs, ...] -> [n, a, ...]."""
        return own.unflatten(0, (-1, self.block))

    def candidates(self, own: Tensor) -> Tensor:
        """Return the group of each block of anchors: own[pairs, ...] -> [n, size, ...].

        All processes must call it, in the same order. Differentiable where `own` is.
        """
        if self.local:
            return own.unflatten(0, (-1, self.size))
        groups = _Gather.apply(own, self.first, self.total).unflatten(0, (-1, self.size))
        starts = range(self.first, self.first + self.pairs, self.block)
        return groups[[start // self.size for start in starts]]  # (n, size, ...)

    def positives(self, device: torch.device) -> Tensor:
        """Return the place of each anchor's own pair in its group, int64[n, a]."""
        rows = torch.arange(self.first, self.first + self.pairs, device=device)
        return self.anchors(rows % self.size)


class _Gather(torch.autograd.Function):
    """Gathers own[b, ...] of every process in the order of their pairs; sums the gradients."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, first: int, total: int) -> Tensor:
        ctx.own = slice(first, first + len(own))
        every = own.new_empty(total, *own.shape[1:])
        distributed.all_gather(list(every.split(len(own))), own.contiguous())
        return every

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        grad = grad.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(grad)
        return grad[ctx.own], None, None
