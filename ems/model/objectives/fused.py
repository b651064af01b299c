"""Cross-entropy of sparse label rows against a whole vocabulary, without dense labels or softmax.

XTR, UGT, SMLM and MLM share it: each of N states predicts a distribution over V pieces, given as a
few (row, token, weight) entries. Two identities make it cheap:
- sum_w p(w) (logsumexp(z) - z(w)) = mass logsumexp(z) - <state, sum_w p(w) W_w>: labels need only
  the few output vectors that they name, not the logits, so a GPU never waits for the host;
- the gradient by logits is mass softmax(z) - p. The forward pass computes it in chunks of rows, in
  one buffer that the softmax overwrites; logsumexp is max logit - log max softmax.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch
from torch import Tensor

CHUNK = 1 << 22  # logits in memory at once: 16 MB in float32
ON_GPU = 16  # factor on a GPU, since each chunk reads all output vectors and their gradients


@dataclass
class Target:
    """Sparse labels: row[T], token[T], weight[T]; equal ones add up, the sum of a row is free."""

    row: Tensor
    token: Tensor
    weight: Tensor

    def select(self, chosen: Tensor, rows: int) -> "Target":
        """Return the entries of the `chosen` of `rows` rows, which become rows 0, 1, ..."""
        place = torch.full((rows,), -1, device=chosen.device)
        place[chosen] = torch.arange(len(chosen), device=chosen.device)
        kept = place[self.row] >= 0
        return Target(place[self.row[kept]], self.token[kept], self.weight[kept])


class _FusedCrossEntropy(torch.autograd.Function):
    """The cross-entropy summed over rows, with its gradients by states, output and bias."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        # states, output, bias (or None), and row, token, weight of the target
        ctx.save_for_backward(*inputs)
        total, ctx.gradients = _value_and_gradients(inputs, ctx.needs_input_grad)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # gradients are scaled in place, so a second backward pass must compute them again
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            _, gradients = _value_and_gradients(ctx.saved_tensors, ctx.needs_input_grad)
        return *(None if part is None else part.mul_(grad) for part in gradients), None, None, None


def _value_and_gradients(
    inputs: tuple[Any, ...], needs: tuple[bool, ...]
) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """Return the sum over rows, and its gradients by states, output and bias if any is needed."""
    states, output, bias, *entries = inputs
    target = Target(*entries)
    mass = target.weight.new_zeros(len(states)).index_add(0, target.row, target.weight)  # (N,)
    logsumexp, gradients = _softmax_part(states, output, bias, mass, any(needs), needs[2])
    vectors = output[target.token].to(mass.dtype) * target.weight[:, None]  # (T, k)
    expected = vectors.new_zeros(len(states), output.shape[1])
    expected.index_add_(0, target.row, vectors)  # (N, k)
    total = mass @ logsumexp - (states.to(mass.dtype) * expected).sum()
    if bias is not None:
        total -= target.weight @ bias[target.token].to(mass.dtype)
    if any(needs):
        grad_states, grad_output, grad_bias = gradients
        grad_states -= expected
        pull = states[target.row].to(mass.dtype) * target.weight[:, None]  # (T, k)
        grad_output.index_add_(0, target.token, pull, alpha=-1)
        if grad_bias is not None:
            grad_bias.index_add_(0, target.token, target.weight, alpha=-1)
    return total, gradients


def _softmax_part(
    states: Tensor, output: Tensor, bias: Tensor | None, mass: Tensor, needs: bool, needs_bias: bool
) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """Return logsumexp[N] of the logits, and the gradients of mass @ logsumexp if needed."""
    sums = {"dtype": mass.dtype, "device": states.device}
    logsumexp = [mass.new_empty(0)]
    grad_states = torch.empty(states.shape, **sums) if needs else None
    grad_output = torch.zeros(output.shape, **sums) if needs else None
    grad_bias = torch.zeros(len(output), **sums) if needs_bias else None
    most = max(1, (CHUNK * ON_GPU if states.is_cuda else CHUNK) // len(output))  # rows in a chunk
    chunks = max(1, ceil(len(states) / most))
    step = max(1, ceil(len(states) / chunks))  # chunks of about equal size
    held = states.new_empty(step, len(output))  # (step, V)
    for first in range(0, len(states), step):
        part = slice(first, first + step)
        chunk, masses = states[part], mass[part]
        logits = torch.mm(chunk, output.T, out=held[: len(chunk)])  # (step, V)
        if bias is not None:
            logits += bias
        highest = logits.amax(1).to(mass.dtype)
        shares = torch.softmax(logits, dim=1, out=logits)  # (step, V)
        logsumexp.append(highest - shares.amax(1).to(mass.dtype).log())
        if needs:
            grad_states[part] = (shares @ output) * masses[:, None]
            weighted = chunk * masses[:, None].to(chunk.dtype)  # (step, k)
            if grad_output.dtype == chunk.dtype:
                grad_output.addmm_(shares.T, weighted)
            else:
                grad_output += shares.T @ weighted
        if grad_bias is not None:
            grad_bias += masses.to(shares.dtype) @ shares
    return torch.cat(logsumexp), (grad_states, grad_output, grad_bias)


@dataclass(frozen=True)
class Logits:
    """The logits states[N, k] output[V, k]^T + bias[V], of type `dtype` (default: the states')."""

    states: Tensor
    output: Tensor
    bias: Tensor | None = None
    dtype: torch.dtype | None = None


def fused_cross_entropy(logits: Logits, target: Target) -> Tensor:
    """Sum -p(w) log softmax(logits)(w) over the entries of `target`, in the weights' type."""
    factors = (logits.states, logits.output, logits.bias)
    if not torch.is_grad_enabled():  # in validation, compute no gradients
        factors = tuple(part if part is None else part.detach() for part in factors)
    if logits.dtype:
        factors = tuple(part if part is None else part.to(logits.dtype) for part in factors)
    return _FusedCrossEntropy.apply(*factors, target.row, target.token, target.weight)


@torch.no_grad()
def entropy(target: Target, pieces: int) -> Tensor:
    """Sum -p log p over the distinct (row, token) of `target`; tokens are below `pieces`."""
    # no size depends on values, so nothing waits for a GPU
    keys, order = torch.sort(target.row * pieces + target.token, stable=True)
    number = (keys.diff(prepend=keys[:1]) != 0).cumsum(0)  # numbers the distinct keys
    share = target.weight.new_zeros(len(keys)).index_add(0, number, target.weight[order])
    return -torch.special.xlogy(share, share).sum()


def kl_loss(
    logits: Logits, target: Target, cross_entropy: Callable[..., Tensor] = fused_cross_entropy
) -> Tensor:
    """Sum KL(p || softmax(logits)) over the rows p of `target`."""
    return cross_entropy(logits, target) - entropy(target, len(logits.output))
