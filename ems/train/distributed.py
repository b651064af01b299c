"""Data parallel training under `torchrun`: several processes share the pairs of each step.

Notable choices:
- a step's pairs are a function of (seed, step) for all processes together; each assembles its
  slice, so that N processes train on exactly the pairs of one;
- gradients are summed, not averaged: each process divides its losses by the pairs of the whole
  step (EMS v2 Eq. 12), so the sum is the gradient of one process;
- the sum is our own and not DistributedDataParallel's, whose buckets are laid out anew after its
  first backward pass: with three or more processes the order of additions, and so the last bits,
  would differ between a run and the same run resumed. Here the buckets are those of the
  parameters, always. Each is sent as soon as the backward pass has filled it;
- every process reads the same checkpoint, rank 0 alone writes; what one process finds out (a
  signal, a loss that is not finite) is agreed on, so that all stop at the same step.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed, nn

from ems import torchrun
from ems.errors import EmsError

AGREE_EVERY = 10  # steps on a GPU between two times that the processes ask who has to stop
WAIT = timedelta(hours=2)  # that a process waits for the others: rank 0 may write a checkpoint
BUCKET = 25 << 20  # bytes of gradients sent at once, at least


@dataclass(frozen=True)
class World:
    """The processes that train together: this one is `rank` of `size`."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def share(self, pairs: int) -> slice:
        """Which of a step's pairs are this process's. Raises `EmsError` if they cannot be shared
        equally.
        """
        if pairs % self.size:
            raise EmsError(
                f"train.batch_pairs: {pairs} pairs cannot be shared by {self.size} processes; "
                f"choose a multiple of {self.size}, or other `gpus` in config.yaml"
            )
        own = pairs // self.size
        return slice(self.rank * own, (self.rank + 1) * own)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of `values` (any shape) over all processes, on each of them."""
        if self.size > 1:
            values = values.detach().clone()
            distributed.all_reduce(values)
        return values

    def sums(self, parts: dict[str, Tensor]) -> dict[str, Tensor]:
        """The sums of scalars over all processes, in one exchange that nothing waits for."""
        if self.size == 1:
            return parts
        names, values = list(parts), list(parts.values())
        return dict(zip(names, self.sum(torch.stack(values).detach()).unbind(), strict=True))

    def any(self, found: bool) -> bool:
        """Whether any process found something. All wait for it."""
        if self.size == 1:
            return found
        return bool(self.sum(torch.tensor(float(found), device=self.device)) > 0)

    def first(self, text: str) -> str:
        """The first text that is not empty, of all processes; "" if there is none. All wait."""
        texts: list[str] = [text] * self.size
        if self.size > 1:
            distributed.all_gather_object(texts, text)
        return next(filter(None, texts), "")

    def wait(self) -> None:
        """Go on when all processes have come here."""
        self.any(False)

    def check_same(self, step: int) -> None:
        """Raise `EmsError` unless all processes go on from the same `step`."""
        if self.size == 1:
            return
        ends = torch.tensor([step, -step], device=self.device)
        distributed.all_reduce(ends, distributed.ReduceOp.MAX)
        last, first = int(ends[0]), -int(ends[1])
        if first != last:
            raise EmsError(
                f"the processes read different checkpoints, of step {first} and of step {last}: "
                "they need one file system; start again once it shows all of them the same"
            )


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """The processes that torchrun started with this one, able to talk: over NCCL on GPUs, else
    gloo. One process alone needs nothing.

    Raises `EmsError` when there are more processes on this machine than GPUs.
    """
    world = World(torchrun.rank(), torchrun.processes(), device.type)
    if world.size == 1:
        yield world
        return
    if device.type == "cuda":
        torch.cuda.set_device(_own_gpu())
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=WAIT)
    try:
        yield world
    finally:
        distributed.destroy_process_group()


def _own_gpu() -> int:
    own, present = torchrun.local_rank(), torch.cuda.device_count()
    if own >= present:
        raise EmsError(
            f"{os.environ['LOCAL_WORLD_SIZE']} processes were started on this machine, but "
            f"PyTorch finds {present} GPUs; set `gpus` in config.yaml to as many as there are"
        )
    return own


def dropout_seed(seed: int, step: int, rank: int = 0, part: int = 0) -> int:
    """The seed of a step's dropout: a pure function of the run's seed, step, process and, where a
    batch is encoded in parts (GradCache), part. They differ in the low 32 bits, all that
    PyTorch's generator on a CPU takes.
    """
    return seed * 1_000_003 + step + rank * 0x9E3779B1 + part * 0x85EBCA6B


class GradientSum:
    """Sums the gradients of all processes, bucket by bucket, while the backward pass goes on.

    Call `finish` after the backward pass of a step and before the optimiser. A pass that is not
    the last one before it belongs into `waiting`. A parameter without gradient counts as zero.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], world: World) -> None:
        last_first = [p for p in parameters if p.requires_grad][::-1]  # about as they are filled
        self.buckets = _buckets(last_first) if world.size > 1 else []
        self.sent: list[tuple[list[nn.Parameter], Tensor, distributed.Work]] = []
        self.open = [len(bucket) for bucket in self.buckets]
        self.paused = False
        for index, bucket in enumerate(self.buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(self._filled(index))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Backward passes inside add to the gradients and send nothing."""
        self.paused = True
        try:
            yield
        finally:
            self.paused = False

    def finish(self) -> None:
        """Send what is not sent yet, and put the sums where the gradients were."""
        while self.buckets and len(self.sent) < len(self.buckets):
            self._send()
        for bucket, flat, work in self.sent:
            work.wait()  # on a GPU the stream waits, not this process
            pieces = flat.split([parameter.numel() for parameter in bucket])
            for parameter, piece in zip(bucket, pieces, strict=True):
                parameter.grad = piece.view_as(parameter)
        self.sent = []
        self.open = [len(bucket) for bucket in self.buckets]

    def _filled(self, index: int) -> Callable[[Tensor], None]:
        def hook(_: Tensor) -> None:
            if self.paused:
                return
            self.open[index] -= 1
            # always in this order, whatever was filled first: all processes must send alike
            while len(self.sent) < len(self.buckets) and not self.open[len(self.sent)]:
                self._send()

        return hook

    def _send(self) -> None:
        bucket = self.buckets[len(self.sent)]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = grads[0].flatten() if len(grads) == 1 else torch.cat([g.flatten() for g in grads])
        self.sent.append((bucket, flat, distributed.all_reduce(flat, async_op=True)))


def _buckets(parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Neighbours, until they are BUCKET bytes."""
    buckets: list[list[nn.Parameter]] = [[]]
    held = 0
    for parameter in parameters:
        if held >= BUCKET:
            buckets.append([])
            held = 0
        buckets[-1].append(parameter)
        held += parameter.numel() * parameter.element_size()
    return buckets
