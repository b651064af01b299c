"""Packed sentences: linear layers see real tokens only; attention sees small padded groups.

Sentences arrive ordered by length. Neighbours form groups in which padding is bounded, so that a
batch of random pairs costs about what its tokens cost, not what its longest sentence times its size
would.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ems.model.device import onto

SLACK = 1.15  # a group is closed when its padded size would exceed its tokens by this factor
LEAST = 32  # sentences that a group holds at least, so that groups stay few


@dataclass
class Group:
    """Neighbouring sentences of like length: `index[n, L]` into the tokens, `real[n, L]` where
    true, and `places[T']`: where in the padded n * L each of its T' tokens stands.
    """

    index: Tensor
    real: Tensor
    places: Tensor


@dataclass
class Packing:
    """Where each of T tokens belongs: `position[T]` in its sentence, `sentence[T]` of N."""

    position: Tensor
    sentence: Tensor
    lengths: Tensor
    groups: list[Group]

    def to(self, device: torch.device) -> "Packing":
        """The same on a device, in one copy that nothing waits for."""
        parts = [self.position, self.sentence, self.lengths]
        parts += [part for group in self.groups for part in (group.index, group.real, group.places)]
        flat = torch.cat([part.flatten().long() for part in parts])
        moved = onto(device, flat).split([part.numel() for part in parts])
        shaped = [new.view(old.shape) for new, old in zip(moved, parts, strict=True)]
        triples = zip(shaped[3::3], shaped[4::3], shaped[5::3], strict=True)
        groups = [Group(index, real.bool(), places) for index, real, places in triples]
        return Packing(*shaped[:3], groups)


def pack(lengths: Tensor) -> Packing:
    """The packing of sentences with `lengths[N]`, ascending and all at least 1 (on any device).

    Of lengths on a GPU it waits for the GPU, whose sizes Python must know: pack them on the CPU and
    move the packing instead.
    """
    sentence = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    starts = torch.cumsum(lengths, 0) - lengths
    position = torch.arange(len(sentence), device=lengths.device) - starts[sentence]
    sizes = lengths.tolist()
    groups = []
    for first, last in _bounds(sizes):
        columns = torch.arange(sizes[last - 1], device=lengths.device)
        real = columns[None, :] < lengths[first:last, None]  # (n, L)
        index = (starts[first:last, None] + columns[None, :]) * real  # (n, L), padding points at 0
        groups.append(Group(index, real, torch.nonzero(real.flatten())[:, 0]))
    return Packing(position, sentence, lengths, groups)


class _Pad(torch.autograd.Function):
    """Packed -> padded rows. Each token stands in one place, so its gradient is a plain gather."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, packing: Packing) -> tuple[Tensor, ...]:
        ctx.places = [group.places for group in packing.groups]
        ctx.rows = len(packed)
        return tuple(packed.index_select(0, group.index.flatten()) for group in packing.groups)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        pieces = zip(grads, ctx.places, strict=True)
        rows = [grad.index_select(0, places) for grad, places in pieces]
        return rounded(torch.cat(rows), ctx.rows), None


class _Unpad(torch.autograd.Function):
    """Padded -> packed rows; the gradient of padding is zero."""

    @staticmethod
    def forward(ctx: Any, packing: Packing, *padded: Tensor) -> Tensor:
        ctx.places = [group.places for group in packing.groups]
        ctx.sizes = [len(rows) for rows in padded]
        pieces = zip(padded, ctx.places, strict=True)
        return torch.cat([rows.index_select(0, places) for rows, places in pieces])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grads = grad.split([len(places) for places in ctx.places])
        pieces = zip(grads, ctx.places, ctx.sizes, strict=True)
        return None, *(
            piece.new_zeros(size, piece.shape[1]).index_copy_(0, places, piece)
            for piece, places, size in pieces
        )


def rounded(rows: Tensor, count: int) -> Tensor:
    """rows[T, ...] with zeros below, `count` rows in all."""
    if len(rows) == count:
        return rows
    return torch.cat([rows, rows.new_zeros(count - len(rows), *rows.shape[1:])])


def pad(packed: Tensor, packing: Packing) -> tuple[Tensor, ...]:
    """packed[T or more, k] -> for each group its rows [n * L, k]; padding repeats a token."""
    return _Pad.apply(packed, packing)


def unpad(padded: list[Tensor], packing: Packing) -> Tensor:
    """The padded rows [n * L, k] of all groups -> packed[T, k]."""
    return _Unpad.apply(packing, *padded)


def _bounds(sizes: list[int]) -> list[tuple[int, int]]:
    """[first, last) of each group of ascending `sizes`."""
    bounds, first, tokens = [], 0, 0
    for at, size in enumerate(sizes):
        count = at - first
        if count >= LEAST and size * (count + 1) > SLACK * (tokens + size):
            bounds.append((first, at))
            first, tokens = at, 0
        tokens += size
    return [*bounds, (first, len(sizes))] if sizes else []
