"""Ours: the contrastive loss of prefixes of the sentence embedding, so that it can be cut short.

After Kusupati et al., "Matryoshka Representation Learning" (NeurIPS 2022).
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ems.objectives.batch import Encoded
from ems.objectives.contrastive import contrasted, contrasted_flops
from ems.objectives.system import Objective, System


def matryoshka_loss(
    sentences: Tensor, dimensions: list[int], loss: Callable[[Tensor], Tensor]
) -> Tensor:
    """The mean of `loss` over the first k values of sentences[2B, d], for each k of `dimensions`.

    `loss` is Eq. 8 of EMS v2 on the embeddings themselves, without MLP.
    """
    return torch.stack([loss(sentences[:, :size]) for size in dimensions]).mean()


def loss(system: System, encoded: Encoded) -> Tensor:
    """The contrastive loss without MLP of each of the prefixes, the mean over them."""
    dimensions = system.settings.matryoshka.dimensions
    return matryoshka_loss(
        encoded.sentences, dimensions, lambda part: contrasted(system, part, encoded.batch)
    )


def flops(system: System, lengths: np.ndarray) -> int:
    """Operations of the similarities of each prefix."""
    dimensions = system.settings.matryoshka.dimensions
    return sum(contrasted_flops(system, lengths, size) for size in dimensions)


OBJECTIVE = Objective(loss, flops=flops, order=8)
