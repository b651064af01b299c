"""Cross-entropy of sparse label rows against a whole vocabulary, without dense labels or softmax.

What XTR, UGT, SMLM and MLM have in common: each of N states predicts a distribution over V pieces,
given as a few (row, token, weight) entries.

Notable choices:
- sum_w p(w) (logsumexp(z) - z(w)): the labels are never made dense, their logits are gathered;
- the gradient, mass softmax(z) - p, is made chunk by chunk of rows already in the forward pass: one
  chunk of logits is all that is ever held, it is computed once, and so is its softmax, from whose
  largest value logsumexp follows (max logit - log max softmax): a pass of exponentials less;
- a row's mass (the sum of its weights) scales its state, k wide, and not its softmax, V wide;
- bfloat16 halves the bytes and uses the matrix units that have it; sums stay of the weights' dtype.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

CHUNK = 1 << 22  # logits held at once: 16 MB in float32


@dataclass
class Target:
    """Sparse label rows: row[T], token[T] and weight[T] of each entry, in any order.

    A token that a row has twice counts with the sum of its weights; the weights of a row need not
    add up to 1, and a row without entries is no label at all.
    """

    row: Tensor
    token: Tensor
    weight: Tensor

    def mass(self, rows: int) -> Tensor:
        """The sum of the weights of each row, [rows]."""
        return self.weight.new_zeros(rows).index_add(0, self.row, self.weight)


class _FusedCrossEntropy(torch.autograd.Function):
    """The sum over rows, with its gradients by states, output and bias."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        output: Tensor,
        bias: Tensor | None,
        row: Tensor,
        token: Tensor,
        weight: Tensor,
    ) -> Tensor:
        needs = any(ctx.needs_input_grad)
        sums = {"dtype": weight.dtype, "device": states.device}
        grad_states = torch.empty(states.shape, **sums) if needs else None
        grad_output = torch.zeros(output.shape, **sums) if needs else None
        grad_bias = torch.zeros(bias.shape, **sums) if needs and bias is not None else None
        total = torch.zeros((), **sums)
        mass = Target(row, token, weight).mass(len(states))  # (N,)
        share_of = weight / torch.where(mass > 0, mass, 1)[row]  # (T,): 1 in all for each row
        step = max(1, CHUNK // output.shape[0])
        for first in range(0, len(states), step):
            chunk, masses = states[first : first + step], mass[first : first + step]
            inside = (row >= first) & (row < first + step)
            rows, tokens = row[inside] - first, token[inside]
            logits = chunk @ output.T  # (chunk, V)
            if bias is not None:
                logits += bias
            shares = torch.softmax(logits, dim=1)  # (chunk, V)
            highest, share = (part.amax(1).to(weight.dtype) for part in (logits, shares))
            total += (
                masses @ (highest - share.log())
                - logits[rows, tokens].to(weight.dtype) @ weight[inside]
            )
            if needs:
                minus = -share_of[inside].to(shares.dtype)
                shares.index_put_((rows, tokens), minus, accumulate=True)
                grad_states[first : first + step] = (shares @ output) * masses[:, None]
                grad_output += shares.T @ (chunk * masses[:, None].to(chunk.dtype))
            if grad_bias is not None:
                grad_bias += masses.to(shares.dtype) @ shares
        ctx.save_for_backward(grad_states, grad_output, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        made = (None if part is None else part * grad for part in ctx.saved_tensors)
        return *made, None, None, None


def fused_cross_entropy(
    states: Tensor,
    output: Tensor,
    target: Target,
    bias: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """-sum of p(w) log softmax(states output^T + bias)(w) over all rows and tokens of `target`.

    states[N, k], output[V, k], bias[V]. Natural logarithm, a sum, not a mean. The logits and their
    gradient are of `dtype` (that of `states`, if None), the sums are of that of the weights.
    """
    factors = (states, output, bias)
    if not torch.is_grad_enabled():  # validation: no gradient is made
        factors = tuple(part if part is None else part.detach() for part in factors)
    if dtype:
        factors = tuple(part if part is None else part.to(dtype) for part in factors)
    return _FusedCrossEntropy.apply(*factors, target.row, target.token, target.weight)


@torch.no_grad()
def entropy(target: Target, pieces: int) -> Tensor:
    """-sum of p log p over the distinct (row, token) of `target`; tokens are below `pieces`."""
    keys, at = torch.unique(target.row * pieces + target.token, return_inverse=True)
    share = target.weight.new_zeros(len(keys)).index_add(0, at, target.weight)
    return -torch.special.xlogy(share, share).sum()


def kl_loss(
    states: Tensor,
    output: Tensor,
    target: Target,
    bias: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Sum over rows of KL(p || softmax(states output^T + bias)), p the rows of `target`.

    As `fused_cross_entropy`, less the entropy of the target: a constant, but then 0 is perfect.
    """
    cross_entropy = fused_cross_entropy(states, output, target, bias, dtype)
    return cross_entropy - entropy(target, output.shape[0])
