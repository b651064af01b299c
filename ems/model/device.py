"""Where tensors live: `auto` takes a GPU when there is one."""

import torch

from ems.errors import EmsError


def choose_device(setting: str) -> torch.device:
    """The device for `auto`, `cpu` or `cuda`. Raises `EmsError` for cuda without a GPU."""
    present = torch.cuda.is_available()
    if setting == "cuda" and not present:
        raise EmsError("train.device: cuda, but PyTorch finds no GPU here; say auto or cpu")
    return torch.device("cuda" if present and setting != "cpu" else "cpu")
