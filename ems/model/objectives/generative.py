"""The generative head (EMS v2 Eq. 2-5), which xtr, ugt, smlm and mlm share."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ems.model.heads import GenerativeHead, linear_weights
from ems.model.objectives.fused import Target
from ems.model.objectives.system import Parts, System


def add_head(heads: nn.ModuleDict, settings: Parts, languages: int, pieces: int) -> None:
    """Add the head, unless another objective did."""
    if "generative" not in heads:
        sizes = settings.model, settings.objectives.head
        heads["generative"] = GenerativeHead(*sizes, languages, pieces)


def generate(
    system: System, loss: Callable[..., Tensor], states: Tensor, languages: Tensor, target: Target
) -> Tensor:
    """Return the `loss` of what states[N, d] predict in languages[N], against a target.

    Logits are in bfloat16 where products are, but not in float16: `fused_cross_entropy` makes its
    gradient before the loss is scaled, when small shares of the softmax would become 0.
    """
    head = system.heads["generative"]
    output = system.encoder.tokens if head.output is None else head.output
    dtype = system.half if system.half == torch.bfloat16 else None
    return loss(head(states, languages), output.weight, target, head.bias, dtype)


def flops_of_state(system: System) -> int:
    """Count the operations of one prediction: twice the weights, output layer included."""
    head = system.heads["generative"]
    shared = system.encoder.tokens.weight.numel() if head.output is None else 0
    return 2 * (linear_weights(head) + shared)


def flops_of_sentences(system: System, lengths: np.ndarray) -> int:
    """Count the operations if each sentence embedding predicts once."""
    return flops_of_state(system) * len(lengths)
