"""The heads that the objectives put on the sentence embedding; used in training only (EMS v2 Fig.
1).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from ems.model.encoder import initialise


class XtrHead(nn.Module):
    """Sentence embedding and target language -> the state that is scored against every piece.

    Eq. 2-3: an embedding of the target language, `language_width` wide; Eq. 4-5: concatenation
    (language first), L_fc with bias, swish, and L_emb without bias (`output`, not shared with the
    encoder).
    """

    def __init__(self, width: int, language_width: int, languages: int, pieces: int) -> None:
        super().__init__()
        joined = language_width + width
        self.languages = nn.Embedding(languages, language_width)
        self.mix = nn.Linear(joined, joined)
        self.output = nn.Linear(joined, pieces, bias=False)
        self.apply(initialise)

    def forward(self, sentences: Tensor, languages: Tensor) -> Tensor:
        """sentences[N, d], target languages[N] -> states [N, d_la + d]; logits are states @
        output.T.
        """
        joined = torch.cat([self.languages(languages), sentences], dim=1)  # (N, d_la + d)
        return functional.silu(self.mix(joined))


class ContrastiveHead(nn.Module):
    """Two linear layers with ReLU between them: h(S) = W1 relu(W2 u + b2) + b1 (Eq. 10-11)."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, out)
        self.apply(initialise)

    def forward(self, sentences: Tensor) -> Tensor:
        """sentences[N, d] -> [N, d_cntrs]."""
        return self.outer(functional.relu(self.inner(sentences)))
