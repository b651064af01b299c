"""Refuses a model that this machine has no memory to train, before any of it is made."""

from typing import Any

import psutil
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ems.errors import EmsError
from ems.objectives.system import Parts, System

HELD = 4  # numbers of each parameter: itself, its gradient, Adam's two moments; AMSGrad has a third
FLOAT = 4  # bytes


def check_fits(
    name: str, settings: Parts, languages: int, pieces: int, device: torch.device
) -> None:
    """Raise `EmsError` when what training holds, batches aside, is more than the device's memory.

    The parameters are counted without any memory, on PyTorch's meta device.
    """
    with torch.device("meta"), _NoValues():
        system = System(settings, languages, pieces)
    parameters = sum(value.numel() for value in system.parameters())
    held = HELD + settings.train.amsgrad if settings.train.steps else 1
    needed, there = held * FLOAT * parameters, _memory(device)
    if needed > there:
        raise EmsError(
            f"systems.{name}: {parameters:,} parameters need {needed / 1e9:,.1f} GB of memory to "
            f"be trained, {device.type} has {there / 1e9:,.1f} GB; lower model.width, "
            "model.layers, model.feed_forward or vocabulary.size"
        )


class _NoValues(TorchFunctionMode):
    """Draws no start values: on the meta device that would load PyTorch's compiler, in seconds."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), named: Any = None
    ) -> Any:
        if function is nn.init.normal_:
            return named["tensor"]
        return function(*args, **(named or {}))


def _memory(device: torch.device) -> int:
    """Bytes that the device has in all."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return psutil.virtual_memory().total
