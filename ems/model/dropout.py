"""Dropout that costs a CPU little: 16 random bits an element, and one pass over the states.

PyTorch draws a Bernoulli number an element (14 % of a step of two layers of width 256). Four 16-bit
integers out of each 64-bit number of NumPy's SFC64, seeded from PyTorch's generator, take a tenth
of that. So the share is a multiple of 1/65536 (0.1 becomes 0.100006); the scale is that of the
share truly dropped. On a GPU, and for shares very near 0 or 1, it is PyTorch's dropout.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

LEVELS = 1 << 16
EDGE = 1 / 256


def drop(states: Tensor, share: float) -> Tensor:
    """Zero about `share` of the elements of states[...] and scale up the others."""
    if not share:
        return states
    if not _draws_itself(states, share):
        return functional.dropout(states, share)
    return states * keep_mask(states, share)


def add_dropped(residual: Tensor, branch: Tensor, share: float) -> Tensor:
    """Return residual + drop(branch), both [T, d], in one pass."""
    if not share or residual.dtype != branch.dtype or not _draws_itself(branch, share):
        return residual + drop(branch, share)
    return torch.addcmul(residual, branch, keep_mask(branch, share))


def keep_mask(like: Tensor, share: float) -> Tensor:
    """Return 0 with probability `share`, else 1 / (1 - share), of the shape and dtype of `like`."""
    dropped = round(share * LEVELS)
    seed = int(torch.randint(1 << 62, ()))
    words = np.random.SFC64(seed).random_raw(-(-like.numel() // 4))  # uint64
    bits = torch.from_numpy(words.view(np.int16)[: like.numel()]).view(like.shape)
    kept = torch.empty(like.shape, dtype=like.dtype)
    torch.ge(bits, dropped - LEVELS // 2, out=kept)
    return kept.mul_(LEVELS / (LEVELS - dropped))


def _draws_itself(states: Tensor, share: float) -> bool:
    return states.device.type == "cpu" and EDGE <= share <= 1 - EDGE
