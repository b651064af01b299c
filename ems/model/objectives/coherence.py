"""How similar is a sentence to the one whose place it has? The regression of Wang et al. (CCL 2019,
section 3.2).

The two texts of a pair are the contexts of two similar sentences with the sentences exchanged
(`ems.shards.documents`). A linear map R of the embedding of a whole text predicts how similar the
sentences are. That score is fixed: the encoder that found the pair gave it.
"""

from torch import Tensor

from ems.model.objectives.system import Encoded, System, linear_objective


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute the squared error of L_cl: the mean of both texts of a pair."""
    predicted = system.heads["coherence"](encoded.sentences)[:, 0]  # (2B,)
    return (predicted - encoded.batch.targets).square().sum() / 2


OBJECTIVE = linear_objective("coherence", loss, order=10)
