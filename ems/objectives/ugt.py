"""The unified generative task, UGT: XTR and SMLM in one label (Lightweight Eq. 3-4).

One token w_t of each pair is masked, in S1 or in S2. A sentence S with translation S' predicts
- Eq. 3, N_w / |S'|, if w_t is masked in S';
- Eq. 4, N_w / (2 |S'|) and 1/2 at w_t, if w_t is masked in S itself.
"""

import torch
from torch import Tensor

from ems.objectives.batch import Encoded
from ems.objectives.fused import Target, kl_loss
from ems.objectives.generative import add_head, flops_of_sentences, generate
from ems.objectives.system import Objective, System
from ems.objectives.xtr import xtr_target


def ugt_target(
    labels: tuple[Tensor, Tensor, Tensor],
    masked: Tensor,
    hidden: Tensor,
    dtype: torch.dtype = torch.float32,
    kind: str = "counts",
) -> Target:
    """The labels of Eq. 3-4; `labels` are (row[T], token[T], lengths[N]) as `xtr_target` has them.

    masked[B] is the row of each pair whose own sentence has the masked token, hidden[B] that token.
    A hidden token that S' has too gets the sum of both, so that rows add up to 1. `distinct` is the
    authors' code: the tokens of S' count once, and where S' has the hidden token, its 1/2 is
    overwritten by 1 / (2 |S'|). (There `labels` hold <mask> for what is masked in S'.)
    """
    base = xtr_target(*labels, dtype, kind)
    halved = torch.zeros(len(labels[2]), dtype=torch.bool, device=hidden.device)
    halved[masked] = True  # (N,)
    weight = torch.where(halved[base.row], base.weight / 2, base.weight)
    own = torch.full(hidden.shape, 0.5, dtype=dtype, device=hidden.device)
    if kind == "distinct":
        own = own * ~_holds(base, masked, hidden)
    return Target(
        torch.cat([base.row, masked]), torch.cat([base.token, hidden]), torch.cat([weight, own])
    )


def _holds(target: Target, row: Tensor, token: Tensor) -> Tensor:
    """bool[B]: whether `target` has an entry for (row, token)."""
    pieces = torch.cat([target.token, token]).amax() + 1
    return torch.isin(row * pieces + token, target.row * pieces + target.token)


def loss(system: System, encoded: Encoded) -> Tensor:
    """As XTR, and half of the label of a sentence with a masked token is that token."""
    batch, kind = encoded.batch, system.settings.ugt.target
    labels = batch.labels(kind == "distinct")
    target = ugt_target(labels, *encoded.masked, encoded.sentences.dtype, kind)
    return generate(system, kl_loss, encoded.sentences, batch.languages[batch.other], target)


OBJECTIVE = Objective(loss, add_head, hide="word", flops=flops_of_sentences, order=2)
