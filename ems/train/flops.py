"""Floating-point operations of a training step by arithmetic, and what a device could do.

Model FLOPs utilisation (MFU; Chowdhery et al. 2022, PaLM, appendix B) is the operations that the
model needs over those that the device could have done in the same time. With T real tokens in 2B
sentences of L_i tokens, forward:

    layers      2 T weights of their linear layers
    attention   4 d sum L_i^2 of each layer (queries by keys, shares by values)
    heads       2 (2B) weights of their linear layers, the output over the vocabulary included, for
                each objective that has them; of MLM 2 M weights, M being the masked tokens
    contrast    4 B g k, the similarities of k-wide vectors in groups of g pairs, both directions

and twice that backward. Padding, softmax, norms, the optimiser and what is computed twice to save
memory are not counted: they are what the utilisation is lost to.
"""

import numpy as np
import torch

from ems.model.heads import linear_weights
from ems.objectives.system import System

PASSES = 3  # forward, and twice as much backward
# Dense peak in FLOP/s of bfloat16 matrix products and of float32, by the makers' data sheets; the
# first name that the device's own contains counts.
PEAKS = {
    "B200": (2.25e15, 7.5e13),
    "H200": (9.89e14, 6.7e13),
    "H100 PCIe": (7.56e14, 5.1e13),
    "H100": (9.89e14, 6.7e13),
    "A100": (3.12e14, 1.95e13),
    "L40S": (3.62e14, 9.16e13),
    "L4": (1.21e14, 3.03e13),
    "A10": (1.25e14, 3.12e13),
    "RTX 4090": (1.65e14, 8.26e13),
    "RTX 3090": (7.1e13, 3.56e13),
    "V100": (None, 1.57e13),
    "T4": (None, 8.1e12),
}


class StepFlops:
    """How many operations a step of a system takes, forward and backward."""

    def __init__(self, system: System) -> None:
        settings = system.encoder.settings
        self.system = system
        self.of_token = 2 * linear_weights(system.encoder.layers)
        self.of_square = 4 * settings.width * settings.layers

    def __call__(self, lengths: np.ndarray) -> int:
        """FLOPs of a batch whose sentences, two a pair, have `lengths[2B]` tokens."""
        lengths = lengths.astype(np.int64)
        forward = self.of_token * int(lengths.sum()) + self.of_square * int((lengths**2).sum())
        for objective in self.system.objectives.values():
            forward += objective.flops(self.system, lengths)
        return PASSES * forward


def peak_flops(device: torch.device, half: bool) -> float | None:
    """The FLOP/s that a device could do in bfloat16 (`half`) or float32; None if not known, as of
    every CPU.
    """
    if device.type != "cuda":
        return None
    return peak_of(torch.cuda.get_device_name(device), half)


def peak_of(name: str, half: bool) -> float | None:
    """`peak_flops` by the name of a GPU."""
    known = [peaks for part, peaks in PEAKS.items() if part in name.split("-")[0]]
    return known[0][0 if half else 1] if known else None
