"""Does a sentence stand in its context? The classifier of Wang et al. (CCL 2019, section 3.1).

The two texts of a pair are a context with its own sentence and the same context with another one
(`ems.shards.documents`). A linear classifier says which is which, by the embedding of the text.
"""

import torch
from torch import Tensor
from torch.nn import functional

from ems.model.objectives.system import Encoded, System, linear_objective


def _certainty(system: System, encoded: Encoded) -> Tensor:
    """Return the log odds [2B] that the classifier gives to the truth."""
    odds = system.heads["context"](encoded.sentences)[:, 0]  # (2B,)
    return odds * (2 * encoded.batch.targets - 1)


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute -log p of the truth, or 1 - p as L_ml is printed: the mean of both texts of a pair.

    The printed L_ml is the sum of p, "to maximize"; 1 - p has its gradient, negated.
    """
    certainty = _certainty(system, encoded)
    if system.settings.context.loss == "printed":
        return torch.sigmoid(-certainty).sum() / 2
    return functional.softplus(-certainty).sum() / 2


def accuracy(system: System, encoded: Encoded) -> Tensor:
    """Compute the percentage of texts that the classifier gets right, summed over pairs."""
    return 50.0 * (_certainty(system, encoded) > 0).sum()


OBJECTIVE = linear_objective("context", loss, accuracy=accuracy, order=9)
