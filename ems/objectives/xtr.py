"""Cross-lingual token-level reconstruction, XTR (EMS v2 Eq. 4-7).

For a sentence and its translation S': KL(p_S' || q), where q = softmax(logits) is predicted from
the sentence, and p_S'(w) = N_w / |S'| counts the pieces of the translation.

Notable choices:
- KL = sum_w p log p + logsumexp(logits) - sum_w p(w) logits(w): the target is never made dense, its
  |S'| entries are gathered;
- the gradient, softmax(logits) - p, is made chunk by chunk of rows already in the forward pass: one
  chunk of logits is all that is ever held, it is computed once, and so is its softmax, from whose
  largest value logsumexp follows (max logit - log max softmax): a pass of exponentials less;
- `bfloat16` halves the bytes and uses the matrix units that have it; sums stay float32.
"""

from typing import Any

import torch
from torch import Tensor

CHUNK = 1 << 22  # logits held at once: 16 MB in float32


class _FusedXtr(torch.autograd.Function):
    """Sum over rows of logsumexp(z W^T) minus the weighted gathered logits, with its gradients."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, output: Tensor, row: Tensor, token: Tensor, weight: Tensor
    ) -> Tensor:
        needs = any(ctx.needs_input_grad)
        sums = {"dtype": weight.dtype, "device": states.device}
        grad_states = torch.empty(states.shape, **sums) if needs else None
        grad_output = torch.zeros(output.shape, **sums) if needs else None
        total = torch.zeros((), **sums)
        step = max(1, CHUNK // output.shape[0])
        for first in range(0, len(states), step):
            chunk = states[first : first + step]
            inside = (row >= first) & (row < first + step)
            rows, tokens, weights = row[inside] - first, token[inside], weight[inside]
            logits = chunk @ output.T  # (chunk, V)
            shares = torch.softmax(logits, dim=1)  # (chunk, V)
            highest, share = (part.amax(1).to(weight.dtype) for part in (logits, shares))
            total += (highest - share.log()).sum() - (logits[rows, tokens] * weights).sum()
            if needs:
                shares.index_put_((rows, tokens), -weights.to(shares.dtype), accumulate=True)
                grad_states[first : first + step] = shares @ output
                grad_output += shares.T @ chunk
        ctx.save_for_backward(grad_states, grad_output)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_output = ctx.saved_tensors
        return grad_states * grad, grad_output * grad, None, None, None


def xtr_loss(
    states: Tensor,
    output: Tensor,
    row: Tensor,
    token: Tensor,
    lengths: Tensor,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Sum over N rows of KL(p || softmax(states output^T)) (Eq. 6, both directions when N = 2B).

    states[N, d'], output[V, d']; the target of row n are the tokens with `row == n`: row[T],
    token[T], lengths[N] their number per row. p(w) = N_w / |S| (Eq. 7). Natural logarithm, a sum,
    not a mean. The logits and their gradient are of `dtype` (that of `states`, if None), the loss
    is not.
    """
    if not torch.is_grad_enabled():  # validation: no gradient is made
        states, output = states.detach(), output.detach()
    weight = 1.0 / lengths[row].to(states.dtype)  # (T,)
    factors = (states.to(dtype), output.to(dtype)) if dtype else (states, output)
    cross_entropy = _FusedXtr.apply(*factors, row, token, weight)
    return cross_entropy - target_entropy(row, token, lengths, output.shape[0])


@torch.no_grad()
def target_entropy(row: Tensor, token: Tensor, lengths: Tensor, pieces: int) -> Tensor:
    """Sum over rows of -sum_w p(w) log p(w), with p as in Eq. 7."""
    keys, counts = torch.unique(row * pieces + token, return_counts=True)
    share = counts / lengths[keys // pieces]
    return -(share * share.log()).sum()
