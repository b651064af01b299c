"""Ours: the contrastive loss of prefixes of the sentence embedding, so that it can be cut short.

After Kusupati et al., "Matryoshka Representation Learning" (NeurIPS 2022).
"""

from collections.abc import Callable

import torch
from torch import Tensor


def matryoshka_loss(
    sentences: Tensor, dimensions: list[int], loss: Callable[[Tensor], Tensor]
) -> Tensor:
    """The mean of `loss` over the first k values of sentences[2B, d], for each k of `dimensions`.

    `loss` is Eq. 8 of EMS v2 on the embeddings themselves, without MLP.
    """
    return torch.stack([loss(sentences[:, :size]) for size in dimensions]).mean()
