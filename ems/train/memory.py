"""Memory: reject models that do not fit, fit large batches on small GPUs, keep freed memory.
`GradCache` is exact (Gao et al., "Scaling Deep Contrastive Learning Batch Size under Memory Limited
Setup", RepL4NLP 2021). Each part of a batch is encoded without activations, the losses give the
gradient of the embeddings, and each part is encoded again, with the same dropout, to propagate it.
"""

import ctypes
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import psutil
import torch
from torch import Tensor

from ems.base.errors import mistake
from ems.model.encoder import NoStartValues
from ems.model.objectives.system import Parts, System

COPIES = 4  # values per parameter: itself, its gradient, Adam's two moments; AMSGrad has a third
FLOAT = 4  # bytes
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # options of mallopt
KEPT, LARGEST = (1 << 31) - 1, 1 << 30  # bytes: free memory at the heap's end; size of a block


def keep_freed() -> None:
    """Let this process keep the memory that it frees: new pages cost a sixth of a step's time. Does
    nothing without the GNU C library, which alone has these settings (mallopt(3)).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, KEPT)


def check_fits(
    name: str, settings: Parts, languages: int, pieces: int, device: torch.device
) -> None:
    """Raise `EmsError` if weights, gradients and moments exceed the device's memory."""
    system = without_memory(settings, languages, pieces)
    parameters = sum(value.numel() for value in system.parameters())
    copies = COPIES + settings.train.amsgrad if settings.train.steps else 1
    needed, present = copies * FLOAT * parameters, psutil.virtual_memory().total
    if device.type == "cuda":
        present = torch.cuda.get_device_properties(device).total_memory
    if needed > present:
        sizes = {"parameters": parameters, "needed": needed / 1e9, "present": present / 1e9}
        raise mistake("too little memory", name=name, device=device, **sizes)


def without_memory(settings: Parts, languages: int, pieces: int) -> System:
    """Create a system on PyTorch's meta device, with shapes but no values."""
    with torch.device("meta"), NoStartValues():
        return System(settings, languages, pieces)


@dataclass
class GradCache:
    """Encodes sentences, shortest first, in at most `count` parts of about equal token counts."""

    encode: Callable[[Tensor, Tensor], Tensor]  # tokens[T], lengths[N] -> [N, d]
    tokens: Tensor
    lengths: Tensor
    count: int
    seed: Callable[[int], int]  # part number -> dropout seed

    def vectors(self) -> Tensor:
        return torch.cat([self._encode(*part) for part in self._parts()])

    def backward(self, grad: Tensor) -> None:
        """Propagate grad[N, d] of the embeddings, with the activations of one part at a time."""
        for part in self._parts():
            self._encode(*part).backward(grad[part[2]])

    def _encode(self, number: int, tokens: slice, sentences: slice) -> Tensor:
        torch.manual_seed(self.seed(number))
        return self.encode(self.tokens[tokens], self.lengths[sentences])

    def _parts(self) -> Iterator[tuple[int, slice, slice]]:
        ends = [0, *torch.cumsum(self.lengths, 0).tolist()]
        limits = (ends[-1] * number / self.count for number in range(self.count + 1))
        bounds = [bisect_right(ends, limit) - 1 for limit in limits]
        for number, (first, last) in enumerate(pairwise(bounds)):
            if last > first:
                yield number, slice(ends[first], ends[last]), slice(first, last)
