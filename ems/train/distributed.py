"""Data parallel training under `torchrun`: several processes share the pairs of each step.

Gradients are summed, not averaged: each process divides its losses by the pairs of the whole step
(EMS v2 Eq. 12). `GradientSum` replaces DistributedDataParallel, which rebuilds its buckets after
the first backward pass, so that a resumed run of three processes would differ in the last bits.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

from ems.base import torchrun
from ems.base.errors import check, mistake

T = TypeVar("T")
AGREE_EVERY = 10  # steps on a GPU between two exchanges about whether to stop
WAIT = timedelta(minutes=30)  # longest wait for another process, as for rank 0 to save
BUCKET = 25 << 20  # bytes of gradients to send at once, at least


@dataclass(frozen=True)
class World:
    """The processes that train together; this one is `rank` of `size`."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def share(self, pairs: int) -> slice:
        """Return this process's part of a step's pairs. Raises `EmsError` for unequal parts."""
        check({"pairs of processes": pairs % self.size}, pairs=pairs, this=self)
        own = pairs // self.size
        return slice(self.rank * own, (self.rank + 1) * own)

    def sum(self, values: Tensor) -> Tensor:
        """Sum `values` (any shape) over all processes."""
        if self.size > 1:
            values = values.detach().clone()
            distributed.all_reduce(values)
        return values

    def sums(self, parts: dict[str, Tensor]) -> dict[str, Tensor]:
        """Sum scalars over all processes in one exchange, without waiting for a GPU."""
        if self.size == 1:
            return parts
        values = self.sum(torch.stack([*parts.values()]).detach()).unbind()
        return dict(zip(parts, values, strict=True))

    def any(self, flag: bool) -> bool:
        """Return whether any process has the flag set. Waits until all have called it."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor(float(flag), device=self.device)) > 0)

    def wait(self) -> None:
        self.any(False)

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, by rank."""
        values = [value] * self.size
        if self.size > 1:
            distributed.all_gather_object(values, value)
        return values

    def check_same(self, step: int) -> None:
        """Raise `EmsError` unless all processes are at the same step."""
        steps = self.gather(step)
        least, most = min(steps), max(steps)
        check({"other checkpoints": least < most}, least=least, most=most)


@contextmanager
def process_group(device: torch.device) -> Iterator[World]:
    """Connect the processes that torchrun started. Raises `EmsError` if they outnumber GPUs."""
    world = World(torchrun.rank(), torchrun.processes(), device.type)
    if world.size == 1:
        yield world
        return
    if device.type == "cuda":
        own, present = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if own >= present:
            local = os.environ["LOCAL_WORLD_SIZE"]
            raise mistake("processes without GPUs", local=local, present=present)
        torch.cuda.set_device(own)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=WAIT)
    try:
        yield world
    finally:
        distributed.destroy_process_group()


def dropout_seed(seed: int, step: int, rank: int = 0, part: int = 0) -> int:
    """Return the dropout seed of a step, a process and a part of a batch (GradCache)."""
    # seeds differ in the low 32 bits, since PyTorch's CPU generator ignores the others
    return seed * 1_000_003 + step + rank * 0x9E3779B1 + part * 0x85EBCA6B


class GradientSum:
    """Sums gradients over all processes, bucket by bucket, as the backward pass fills the buckets.
    Call `finish` after the last backward pass of a step. Run earlier ones inside `paused`.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], world: World) -> None:
        last_first = [p for p in parameters if p.requires_grad][::-1]  # about the order of filling
        self.buckets = _buckets(last_first) if world.size > 1 else []
        self.sent: list[tuple[list[nn.Parameter], Tensor, distributed.Work]] = []
        self.open = [len(bucket) for bucket in self.buckets]  # gradients still missing
        self.sends = True
        for index, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self._filled, index))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Send nothing within this block, in which backward passes add to the gradients."""
        self.sends = False
        try:
            yield
        finally:
            self.sends = True

    def finish(self) -> None:
        """Send the remaining buckets and replace the gradients by their sums."""
        while len(self.sent) < len(self.buckets):
            self._send()
        for bucket, flat, work in self.sent:
            work.wait()  # on a GPU the stream waits, not this process
            pieces = flat.split([parameter.numel() for parameter in bucket])
            for parameter, piece in zip(bucket, pieces, strict=True):
                parameter.grad = piece.view_as(parameter)
        self.sent = []
        self.open = [len(bucket) for bucket in self.buckets]

    def _filled(self, index: int, _: Tensor) -> None:
        if not self.sends:
            return
        self.open[index] -= 1
        # all processes must send in the same order, the order of the buckets
        while len(self.sent) < len(self.buckets) and not self.open[len(self.sent)]:
            self._send()

    def _send(self) -> None:
        bucket = self.buckets[len(self.sent)]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = grads[0].flatten() if len(grads) == 1 else torch.cat([g.flatten() for g in grads])
        self.sent.append((bucket, flat, distributed.all_reduce(flat, async_op=True)))


def _buckets(parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    buckets: list[list[nn.Parameter]] = [[]]
    size = 0
    for parameter in parameters:
        if size >= BUCKET:
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += parameter.numel() * parameter.element_size()
    return buckets
