"""The similarity of a sentence to the one it replaces (Wang et al., CCL 2019, section 3.2).

The two texts of a pair are the contexts of two similar sentences with the sentences exchanged
(`ems.shards.documents`). A linear map R of the embedding of a whole text predicts how similar the
sentences are. That score is fixed: it was computed by the encoder that mined the pair.
"""

from torch import Tensor

from ems.model.objectives.system import Encoded, System, linear_objective


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute the squared error L_cl, averaged over the two texts of a pair."""
    predicted = system.heads["coherence"](encoded.sentences)[:, 0]  # (2B,)
    return (predicted - encoded.batch.targets).square().sum() / 2


OBJECTIVE = linear_objective("coherence", loss, order=10)
