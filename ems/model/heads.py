"""The heads that the objectives put on the sentence embedding; used in training only (EMS v2 Fig.
1).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ems.model.encoder import start_values
from ems.model.settings import EncoderSettings, HeadSettings


class GenerativeHead(nn.Module):
    """A state and the target language -> the state that is scored against every piece.

    Eq. 2-3: an embedding of the target language, `language_width` wide; Eq. 4-5: concatenation
    (language first), L_fc with bias, swish, and L_emb. The layer norms and the dropout of the
    language embedding are those of the authors' code. When L_emb is shared, as in the Lightweight
    paper, L_fc maps to the encoder's width.
    """

    def __init__(
        self, model: EncoderSettings, settings: HeadSettings, languages: int, pieces: int
    ) -> None:
        super().__init__()
        told = settings.language_width
        joined = told + model.width
        out = model.width if settings.output == "shared" else joined
        norm = nn.LayerNorm if settings.layer_norm else nn.Identity
        self.languages = nn.Embedding(languages, told) if told else None
        self.language_norm = norm(told, model.norm_eps) if told else None
        self.dropout = nn.Dropout(settings.dropout)
        self.mix = nn.Linear(joined, out)
        self.norm = norm(out, model.norm_eps)
        own = settings.output == "own"
        self.output = nn.Linear(out, pieces, bias=False) if own else None
        self.bias = nn.Parameter(torch.zeros(pieces)) if settings.bias else None
        start_values(self, model.start)

    def forward(self, states: Tensor, languages: Tensor) -> Tensor:
        """states[N, d], target languages[N] -> [N, k]; logits are these @ output.T + bias.

        k is d_la + d, or d where the output is shared.
        """
        if self.languages is not None:
            told = self.dropout(self.language_norm(self.languages(languages)))  # (N, d_la)
            states = torch.cat([told, states], dim=1)  # (N, d_la + d)
        return self.norm(functional.silu(self.mix(states)))


class ContrastiveHead(nn.Module):
    """Two linear layers with ReLU between them: h(S) = W1 relu(W2 u + b2) + b1 (Eq. 10-11)."""

    def __init__(self, model: EncoderSettings, out: int) -> None:
        super().__init__()
        self.inner = nn.Linear(model.width, model.width)
        self.outer = nn.Linear(model.width, out)
        start_values(self, model.start)

    def forward(self, sentences: Tensor) -> Tensor:
        """sentences[N, d] -> [N, d_cntrs]."""
        return self.outer(functional.relu(self.inner(sentences)))


def linear_weights(module: nn.Module) -> int:
    """How many weights the linear layers of a module have: half the operations of one row."""
    linear = [part for part in module.modules() if isinstance(part, nn.Linear)]
    return sum(part.weight.numel() for part in linear)
