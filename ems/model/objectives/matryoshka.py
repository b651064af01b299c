"""The contrastive loss of prefixes of the embedding, so that users can truncate it (ours), after
Kusupati et al., "Matryoshka Representation Learning" (NeurIPS 2022).
"""

import numpy as np
import torch
from torch import Tensor

from ems.model.objectives.contrastive import contrastive_flops, contrastive_loss
from ems.model.objectives.system import Encoded, Objective, System


def loss(system: System, encoded: Encoded) -> Tensor:
    """Average Eq. 8, without MLP, over prefixes of k values, for each k of `dimensions`."""
    parts = [encoded.sentences[:, :k] for k in system.settings.matryoshka.dimensions]
    return torch.stack([contrastive_loss(system, part, encoded.batch) for part in parts]).mean()


def flops(system: System, lengths: np.ndarray) -> int:
    dimensions = system.settings.matryoshka.dimensions
    return sum(contrastive_flops(system, lengths, size) for size in dimensions)


OBJECTIVE = Objective(loss, flops=flops, order=8)
