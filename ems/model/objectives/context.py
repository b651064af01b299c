"""Whether a sentence belongs to its context: the classifier of Wang et al. (CCL 2019, section 3.1).
The two texts of a pair are a context with its own sentence and with another one
(`ems.shards.documents`). A linear classifier of the text's embedding tells them apart.
"""

import torch
from torch import Tensor
from torch.nn import functional

from ems.model.objectives.system import Encoded, System, linear_objective


def _certainty(system: System, encoded: Encoded) -> Tensor:
    """Return the classifier's log odds of the true class, [2B]."""
    odds = system.heads["context"](encoded.sentences)[:, 0]  # (2B,)
    return odds * (2 * encoded.batch.targets - 1)


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute -log p of the true class, or 1 - p (`printed`), averaged over the texts of a pair.
    The printed L_ml is the sum of p, "to maximize"; 1 - p has its negated gradient.
    """
    certainty = _certainty(system, encoded)
    if system.settings.context.loss == "printed":
        return torch.sigmoid(-certainty).sum() / 2
    return functional.softplus(-certainty).sum() / 2


def accuracy(system: System, encoded: Encoded) -> Tensor:
    """Compute the accuracy in percent, summed over pairs."""
    return 50.0 * (_certainty(system, encoded) > 0).sum()


OBJECTIVE = linear_objective("context", loss, accuracy=accuracy, order=9)
