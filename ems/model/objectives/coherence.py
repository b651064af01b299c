"""How similar is a sentence to the one whose place it has? The regression of Wang et al. (CCL 2019,
section 3.2).

The two texts of a pair are the contexts of two similar sentences with the sentences exchanged
(`ems.shards.documents`). A linear map R of the embedding of a whole text predicts how similar the
sentences are. That score is fixed: the encoder that found the pair gave it.
"""

import numpy as np
from torch import Tensor, nn

from ems.model.encoder import start_values
from ems.model.objectives.system import Encoded, Objective, Parts, System, linear_weights


def add_head(heads: nn.ModuleDict, settings: Parts, languages: int, pieces: int) -> None:
    heads["coherence"] = nn.Linear(settings.model.pooled_width, 1)
    start_values(heads["coherence"], settings.model.start)


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute the squared error of L_cl: the mean of both texts of a pair."""
    predicted = system.heads["coherence"](encoded.sentences)[:, 0]  # (2B,)
    return (predicted - encoded.batch.targets).square().sum() / 2


def flops(system: System, lengths: np.ndarray) -> int:
    return 2 * linear_weights(system.heads["coherence"]) * len(lengths)


OBJECTIVE = Objective(loss, add_head, flops=flops, order=10)
