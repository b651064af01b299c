"""Checkpoint averaging: the model is the mean of the weights of the last K checkpoints.

Notable choices:
- only the checkpoints that every run of these settings has are averaged (those at multiples of
  `checkpoint_every`, and the last): one that was saved because the run was stopped is not, so a
  stopped and resumed run gives the same model;
- sums are float64, tensor by tensor: no more than one tensor of each checkpoint is in memory.
"""

from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from ems.errors import EmsError
from ems.train.checkpoint import MODEL, Keep, checkpoints, step_of, verified


def averaged(state: Path, keep: Keep) -> tuple[dict[str, Tensor], list[int]]:
    """The mean weights of the last `keep.regular` checkpoints (of all, if there are fewer), and the
    steps of those. Raises `EmsError` for one that is not as it was written.
    """
    folders = [path for path in checkpoints(state) if keep.is_regular(step_of(path))]
    folders = folders[-keep.regular :]
    for at, folder in enumerate(folders):
        try:
            verified(folder)
        except EmsError as error:
            later = ", ".join(path.name for path in folders[at:])
            raise EmsError(
                f"train.average_checkpoints: {error.finding}; delete {later} in {state} and run "
                "the same command again: training goes on from the checkpoint before"
            ) from None
    return mean([folder / MODEL for folder in folders]), [step_of(path) for path in folders]


def mean(files: list[Path]) -> dict[str, Tensor]:
    """The mean of each tensor over some safetensors files of the same names, in its own type;
    tensors of whole numbers are those of the last file.
    """
    handles = [safe_open(file, "pt") for file in files]
    names = list(handles[-1].keys())
    return {name: _mean([handle.get_tensor(name) for handle in handles]) for name in names}


def _mean(tensors: list[Tensor]) -> Tensor:
    last = tensors[-1]
    if not last.is_floating_point():
        return last
    total = torch.zeros_like(last, dtype=torch.float64)
    for tensor in tensors:
        total += tensor
    return (total / len(tensors)).to(last.dtype)
