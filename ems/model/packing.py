"""Packed sentences: only attention sees padding, in small groups of sentences of similar length."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ems.model.devices import onto

SLACK = 1.15  # a group ends where its padded size would exceed its tokens by this factor
LEAST = 32  # sentences in a group, at least, so that groups are few


@dataclass
class Group:
    """n neighbouring sentences, padded to L tokens."""

    index: Tensor  # [n, L], of tokens
    real: Tensor  # [n, L], false for padding
    places: Tensor  # [T'], of its T' tokens in the flattened n * L


@dataclass
class Packing:
    """The `sentence[T]` of each of T tokens, their `position[T]` in it, and padded groups."""

    position: Tensor
    sentence: Tensor
    groups: list[Group]

    def to(self, device: torch.device) -> "Packing":
        """Copy all tensors to a device in one transfer, without waiting."""
        parts = [self.position, self.sentence]
        parts += [part for group in self.groups for part in (group.index, group.real, group.places)]
        flat = torch.cat([part.flatten().long() for part in parts])
        moved = onto(device, flat).split([part.numel() for part in parts])
        shaped = [new.view(old.shape) for new, old in zip(moved, parts, strict=True)]
        triples = zip(shaped[2::3], shaped[3::3], shaped[4::3], strict=True)
        groups = [Group(index, real.bool(), places) for index, real, places in triples]
        return Packing(*shaped[:2], groups)


def pack(lengths: Tensor) -> Packing:
    """Pack sentences with `lengths[N]`, ascending and at least 1, on the CPU: a GPU would wait."""
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
    return Packing(position, sentence, groups)


class Pad(torch.autograd.Function):
    """Copies packed[T or more, k] to the rows [n * L, k] of each group; padding repeats a token.
    Each token has one place, so the gradient is a plain gather.
    """

    @staticmethod
    def forward(ctx: Any, packed: Tensor, packing: Packing) -> tuple[Tensor, ...]:
        ctx.places = [group.places for group in packing.groups]
        ctx.rows = len(packed)
        return tuple(packed.index_select(0, group.index.flatten()) for group in packing.groups)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        rows = [g.index_select(0, p) for g, p in zip(grads, ctx.places, strict=True)]
        return rounded(torch.cat(rows), ctx.rows), None


class Unpad(torch.autograd.Function):
    """Copies the rows [n * L, k] of all groups to packed[T, k]; padding has no gradient."""

    @staticmethod
    def forward(ctx: Any, packing: Packing, *padded: Tensor) -> Tensor:
        ctx.places = [group.places for group in packing.groups]
        ctx.sizes = [len(rows) for rows in padded]
        parts = zip(padded, ctx.places, strict=True)
        return torch.cat([rows.index_select(0, places) for rows, places in parts])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grads = grad.split([len(places) for places in ctx.places])
        zeros = (grad.new_zeros(size, grad.shape[1]) for size in ctx.sizes)
        pieces = zip(zeros, ctx.places, grads, strict=True)
        return None, *(rows.index_copy_(0, places, piece) for rows, places, piece in pieces)


def rounded(rows: Tensor, count: int) -> Tensor:
    """Append rows of zeros to rows[T, ...], up to `count` rows."""
    missing = count - len(rows)
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows


def _bounds(sizes: list[int]) -> list[tuple[int, int]]:
    """Return [first, last) of each group of ascending `sizes`."""
    bounds, first, tokens = [], 0, 0
    for at, size in enumerate(sizes):
        count = at - first
        if count >= LEAST and size * (count + 1) > SLACK * (tokens + size):
            bounds.append((first, at))
            first, tokens = at, 0
        tokens += size
    return [*bounds, (first, len(sizes))] if sizes else []
