"""Devices: the choice of one, copies to it, and what it can do."""

import warnings

import torch
from torch import Tensor, nn

from ems.base.errors import EmsError

PRECISIONS = ("float32", "bfloat16", "int8")  # of the matrix products of a trained encoder


def choose_device(setting: str) -> torch.device:
    """Return the device for `auto`, `cpu` or `cuda`. Raises `EmsError` for cuda without a GPU."""
    present = torch.cuda.is_available()
    if setting == "cuda" and not present:
        raise EmsError("train.device: cuda, but PyTorch finds no GPU here; say auto or cpu")
    return torch.device("cuda" if present and setting != "cpu" else "cpu")


def check_precision(setting: str, device: torch.device) -> None:
    """Raise `EmsError` for float16 on a CPU."""
    if setting == "float16" and device.type == "cpu":
        raise EmsError(
            "train.precision: float16 needs a GPU, and the training would be on a CPU here; say "
            "float32 or bfloat16"
        )


def in_int8(module: nn.Module) -> nn.Module:
    """Return a copy with linear layers in int8, scaled as they run. Raises `EmsError` on a GPU."""
    if any(weight.is_cuda for weight in module.parameters()):
        raise EmsError("precision int8 runs on a CPU only, found a GPU; say cpu, or bfloat16")
    with warnings.catch_warnings():  # that torchao will have it one day
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, torch.qint8)


def onto(device: torch.device, tensor: Tensor) -> Tensor:
    """Copy a tensor of the host to a device; through pinned memory, so that nothing waits."""
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


def has_bfloat16(device: torch.device) -> bool:
    """Return whether the device multiplies bfloat16 matrices itself and does not emulate it."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    able = getattr(torch.cpu, "get_capabilities", dict)()  # PyTorch 2.6 does not tell
    return any(able.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # arm: bf16
