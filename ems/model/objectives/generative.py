"""The generative head (EMS v2 Eq. 2-5), shared by xtr, ugt, smlm and mlm."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ems.config.model import EncoderSettings, HeadSettings
from ems.model.encoder import start_values
from ems.model.objectives.fused import Logits, Target
from ems.model.objectives.system import Parts, System, linear_weights


class GenerativeHead(nn.Module):
    """Maps a state and a target language to a state that is scored against every piece (Eq. 2-5):
    language embedding, concatenation (language first), L_fc with bias, swish, L_emb. Layer norms
    and dropout are the authors' code; the Lightweight paper shares L_emb.
    """

    def __init__(
        self, model: EncoderSettings, settings: HeadSettings, languages: int, pieces: int
    ) -> None:
        super().__init__()
        width = settings.language_width
        joined = width + model.pooled_width
        own = settings.output == "own"
        out = joined if own else model.width
        norm = nn.LayerNorm if settings.layer_norm else nn.Identity
        self.languages = nn.Embedding(languages, width) if width else None
        self.language_norm = norm(width, model.norm_eps) if width else None
        self.dropout = nn.Dropout(settings.dropout)
        self.mix = nn.Linear(joined, out)
        self.norm = norm(out, model.norm_eps)
        self.output = nn.Linear(out, pieces, bias=False) if own else None
        self.bias = nn.Parameter(torch.zeros(pieces)) if settings.bias else None
        start_values(self, model.start)

    def forward(self, states: Tensor, languages: Tensor) -> Tensor:
        """Map states[N, d] and target languages[N] to [N, k], k = d_la + d, or d if shared."""
        if self.languages is not None:
            language = self.dropout(self.language_norm(self.languages(languages)))  # (N, d_la)
            states = torch.cat([language, states], dim=1)  # (N, d_la + d)
        return self.norm(functional.silu(self.mix(states)))


def add_head(heads: nn.ModuleDict, settings: Parts, languages: int, pieces: int) -> None:
    if "generative" not in heads:
        sizes = settings.model, settings.objectives.head
        heads["generative"] = GenerativeHead(*sizes, languages, pieces)


def generate(
    system: System, loss: Callable[..., Tensor], states: Tensor, languages: Tensor, target: Target
) -> Tensor:
    """Compute the `loss` between a target and the predictions of states[N, d] in languages[N].
    Logits are bfloat16 if products are, but never float16: `fused_cross_entropy` computes its
    gradient before the loss is scaled, and small softmax values would underflow to 0.
    """
    head = system.heads["generative"]
    output = system.encoder.tokens if head.output is None else head.output
    dtype = system.half if system.half == torch.bfloat16 else None
    return loss(Logits(head(states, languages), output.weight, head.bias, dtype), target)


def flops_of_state(system: System) -> int:
    """Count the operations of one prediction, including the output layer."""
    head = system.heads["generative"]
    shared = system.encoder.tokens.weight.numel() if head.output is None else 0
    return 2 * (linear_weights(head) + shared)


def flops_of_sentences(system: System, lengths: np.ndarray) -> int:
    """Count the operations of one prediction by each sentence embedding."""
    return flops_of_state(system) * len(lengths)
