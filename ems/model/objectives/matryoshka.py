"""Ours: the contrastive loss of prefixes of the sentence embedding, so that it can be cut short.

After Kusupati et al., "Matryoshka Representation Learning" (NeurIPS 2022).
"""

import numpy as np
import torch
from torch import Tensor

from ems.model.objectives.contrastive import contrasted, contrasted_flops
from ems.model.objectives.system import Encoded, Objective, System


def loss(system: System, encoded: Encoded) -> Tensor:
    """Return the mean of Eq. 8, without MLP, over the first k values of the embeddings."""
    parts = [encoded.sentences[:, :k] for k in system.settings.matryoshka.dimensions]
    return torch.stack([contrasted(system, part, encoded.batch) for part in parts]).mean()


def flops(system: System, lengths: np.ndarray) -> int:
    dimensions = system.settings.matryoshka.dimensions
    return sum(contrasted_flops(system, lengths, size) for size in dimensions)


OBJECTIVE = Objective(loss, flops=flops, order=8)
