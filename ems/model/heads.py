"""The heads on the sentence embedding, used in training only (EMS v2 Fig. 1)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ems.config.model import EncoderSettings, HeadSettings
from ems.model.encoder import start_values


class GenerativeHead(nn.Module):
    """Maps a state and the target language to the state that is scored against every piece.

    Eq. 2-5: the embedding of the language, concatenation (language first), L_fc with bias, swish,
    L_emb. Layer norms and dropout of the language are the authors' code; the Lightweight paper
    shares L_emb with the encoder.
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
        """Map states[N, d] and target languages[N] to [N, k]; logits are these @ output.T + bias.

        k is d_la + d, or d where the output is shared.
        """
        if self.languages is not None:
            language = self.dropout(self.language_norm(self.languages(languages)))  # (N, d_la)
            states = torch.cat([language, states], dim=1)  # (N, d_la + d)
        return self.norm(functional.silu(self.mix(states)))


class ContrastiveHead(nn.Module):
    """Two linear layers with ReLU between them: h(S) = W1 relu(W2 u + b2) + b1 (Eq. 10-11)."""

    def __init__(self, model: EncoderSettings, out: int) -> None:
        super().__init__()
        self.inner = nn.Linear(model.pooled_width, model.pooled_width)
        self.outer = nn.Linear(model.pooled_width, out)
        start_values(self, model.start)

    def forward(self, sentences: Tensor) -> Tensor:
        """Map sentence embeddings to [N, d_cntrs]."""
        return self.outer(functional.relu(self.inner(sentences)))


def linear_weights(module: nn.Module) -> int:
    """Count the weights of the linear layers of a module: half the operations of one row."""
    return sum(m.weight.numel() for m in module.modules() if isinstance(m, nn.Linear))
