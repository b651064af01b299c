"""The unified generative task, UGT: XTR and SMLM in one target (Lightweight Eq. 3-4).

One token w_t of each pair is masked, in S1 or in S2. A sentence S with translation S' predicts
- Eq. 3, N_w / |S'|, if w_t is masked in S';
- Eq. 4, N_w / (2 |S'|) and 1/2 at w_t, if w_t is masked in S itself.
"""

import torch
from torch import Tensor

from ems.model.objectives.fused import Target, kl_loss
from ems.model.objectives.generative import add_head, flops_of_sentences, generate
from ems.model.objectives.system import Encoded, Objective, System
from ems.model.objectives.xtr import xtr_target


def loss(system: System, encoded: Encoded) -> Tensor:
    """Compute XTR, where the masked token takes half of the target of its own sentence. If S' has
    that token too, weights are summed; the authors' code (`distinct`) leaves 1 / (2 |S'|) alone.
    """
    batch, distinct = encoded.batch, system.settings.ugt.target == "distinct"
    base = xtr_target(*batch.labels(masked=distinct), encoded.sentences.dtype, distinct)
    masked, hidden = encoded.masked  # (B,): row and id of the masked token of each pair
    halved = torch.zeros(2 * len(masked), dtype=torch.bool, device=masked.device)
    halved[masked] = True  # (2B,)
    weight = torch.where(halved[base.row], base.weight / 2, base.weight)
    own = torch.full_like(hidden, 0.5, dtype=weight.dtype)
    if distinct:
        pieces = torch.cat([base.token, hidden]).amax() + 1
        own *= ~torch.isin(masked * pieces + hidden, base.row * pieces + base.token)
    row, token = torch.cat([base.row, masked]), torch.cat([base.token, hidden])
    target = Target(row, token, torch.cat([weight, own]))
    return generate(system, kl_loss, encoded.sentences, batch.languages[batch.other], target)


OBJECTIVE = Objective(loss, add_head, hide="word", flops=flops_of_sentences, order=2)
