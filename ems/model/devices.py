"""Devices: choosing one, copying to it, Adam without PyTorch's compiler, files of tensors."""

import inspect
import shutil
from collections.abc import Mapping, Set
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from ems.base.errors import Damaged, check
from ems.base.files import ENCODER, HEADS, VOCABULARY, atomic_path, system_error
from ems.model.weights import Shapes, check_fits, opened_weights

LARGEST = 1e15  # a weight: the sum of squares of a vector of such numbers is finite in float32


def choose_device(setting: str) -> torch.device:
    """Choose a device by `auto`, `cpu` or `cuda`. Raises `EmsError` for cuda without a GPU."""
    present = torch.cuda.is_available()
    check({"no GPU": setting == "cuda" and not present})
    return torch.device("cuda" if present and setting != "cpu" else "cpu")


def check_precision(setting: str, device: torch.device) -> None:
    check({"float16 without a GPU": setting == "float16" and device.type == "cpu"})


def onto(device: torch.device, tensor: Tensor) -> Tensor:
    """Copy a tensor to a device through pinned memory, so that the host does not wait."""
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def has_bfloat16(device: torch.device) -> bool:
    """Return whether the device has units for bfloat16 products (emulation does not count)."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    able = getattr(torch.cpu, "get_capabilities", dict)()  # missing in PyTorch 2.6
    return any(able.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # arm: bf16


class Adam(torch.optim.Adam):
    """PyTorch's Adam without the decorators of `torch.optim`, which import PyTorch's compiler (70
    MB and 1.2 s of CPU per training). Call `step` outside compiled code only.
    """

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Adam.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


def save_tensors(
    tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file. Raises `OSError` if that fails, as `atomic_path` expects."""
    whole = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    try:
        save_file(whole, path, metadata)
    except SafetensorError as error:
        raise system_error(error, path) from error
    # safetensors lets only the owner read; let the group and others read as they may the folder
    path.chmod(path.stat().st_mode | path.parent.stat().st_mode & 0o044)


def read_tensors(
    path: Path, shapes: Shapes | None = None, unused: Set[str] = frozenset()
) -> dict[str, Tensor]:
    """Read a safetensors file of weights, without the `unused`. Raises `Damaged` for other names,
    `shapes` (None: any) or types, before memory is used, and for a weight that is not finite.
    """
    with opened_weights(path, "pt") as file:
        slices = {name: file.get_slice(name) for name in sorted(set(file.keys()) - unused)}
        found = {name: (each.get_dtype(), each.get_shape()) for name, each in slices.items()}
        check_fits(path, found, shapes)
        tensors = {name: file.get_tensor(name) for name in found}
    for name, tensor in tensors.items():
        ends = [float(end) for end in torch.aminmax(tensor)] if tensor.numel() else []
        if not all(-LARGEST <= end <= LARGEST for end in ends):  # so is NaN
            raise Damaged(path, f"{name}: expected finite numbers up to 1e15, found others")
    return tensors


def save_model(
    out: Path, encoder: Mapping[str, Tensor], heads: Mapping[str, Tensor], vocabulary: Path
) -> None:
    """Write weights and vocabulary of a model folder; the caller writes model.json last."""
    for name, tensors in ((ENCODER, encoder), (HEADS, heads)):
        with atomic_path(out / name) as temporary:
            save_tensors(tensors, temporary)
    with atomic_path(out / VOCABULARY) as temporary:
        shutil.copyfile(vocabulary, temporary)
