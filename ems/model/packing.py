"""Packed sentences: linear layers see real tokens only; attention sees small padded groups.

Sentences arrive ordered by length. Neighbours form groups in which padding is bounded, so that a
batch of random pairs costs about what its tokens cost, not what its longest sentence times its size
would.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

SLACK = 1.15  # a group is closed when its padded size would exceed its tokens by this factor
LEAST = 32  # sentences that a group holds at least, so that groups stay few


@dataclass
class Group:
    """Neighbouring sentences of like length: `index[n, L]` into the tokens, `real[n, L]` where
    true.
    """

    index: Tensor
    real: Tensor


@dataclass
class Packing:
    """Where each of T tokens belongs: `position[T]` in its sentence, `sentence[T]` of N."""

    position: Tensor
    sentence: Tensor
    lengths: Tensor
    groups: list[Group]


def pack(lengths: Tensor) -> Packing:
    """The packing of sentences with `lengths[N]`, ascending and all at least 1 (on any device)."""
    sentence = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    starts = torch.cumsum(lengths, 0) - lengths
    position = torch.arange(len(sentence), device=lengths.device) - starts[sentence]
    sizes = lengths.tolist()
    groups = []
    for first, last in _bounds(sizes):
        columns = torch.arange(sizes[last - 1], device=lengths.device)
        real = columns[None, :] < lengths[first:last, None]  # (n, L)
        index = (starts[first:last, None] + columns[None, :]) * real  # (n, L), padding points at 0
        groups.append(Group(index, real))
    return Packing(position, sentence, lengths, groups)


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
