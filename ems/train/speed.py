"""How fast training is: rates, and the share of the device's operations that it uses (MFU).

Model FLOPs utilisation (MFU; Chowdhery et al. 2022, PaLM, appendix B) is the operations that the
model needs over those that the device could have done in the same time. With T real tokens in 2B
sentences of L_i tokens, forward:

    layers      2 T weights of their linear layers
    attention   4 d sum L_i^2 of each layer (queries by keys, shares by values)
    objectives  what each says itself (`Objective.flops`): of its head 2 (2B) weights of the linear
                layers, the output over the vocabulary included; of the similarities of k-wide
                vectors in groups of g pairs 4 B g k, both directions

and twice that backward. Padding, softmax, norms, the optimiser and what is computed twice to save
memory are not counted: they are what the utilisation is lost to.
"""

import time
from dataclasses import dataclass, field

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


@dataclass
class Meter:
    """Counts what was done since the last `read`; `peak` is the device's FLOP/s, if known. Of
    `processes` that share each step alike, one counts and the rates are those of all.
    """

    peak: float | None = None
    processes: int = 1
    pairs: int = 0
    tokens: int = 0
    flops: int = 0
    waited: float = 0.0
    since: float = field(default_factory=time.monotonic)

    def add(self, pairs: int, tokens: int, flops: int, waited: float) -> None:
        """Count a step: its sizes, and the seconds it waited for its batch."""
        self.pairs += pairs
        self.tokens += tokens
        self.flops += flops
        self.waited += waited

    def restart(self) -> None:
        """Count from now on."""
        self.read(time.monotonic())

    def read(self, now: float) -> str:
        """The rates since the last reading, as words; `now` is of `time.monotonic`."""
        seconds = max(now - self.since, 1e-9)
        used = f"{100 * self.flops / seconds / self.peak:.1f} %" if self.peak else "-"
        each = seconds / self.processes
        words = (
            f"{self.pairs / each:,.0f} pairs/s, {self.tokens / each:,.0f} tokens/s, "
            f"MFU {used}, {100 * self.waited / seconds:.1f} % waiting for data"
        )
        self.pairs = self.tokens = self.flops = 0
        self.waited, self.since = 0.0, now
        return words
