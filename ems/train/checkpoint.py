"""Checkpoints: everything that the next step depends on, whole or absent, no pickle.

    <state>/step-00000200/   model.safetensors  optimizer.safetensors  state.json
                             losses.jsonl  times.jsonl

Notable choices:
- the folder is written under a temporary name and renamed, so each one that has a name is whole;
- the state folder is named by a hash of the settings, the data and the source: a state of another
  configuration can never be picked up;
- no random state is kept: batches and dropout are functions of (seed, step).
"""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ems.errors import EmsError
from ems.files import atomic_path, read_json, write_json, write_text
from ems.progress import log

KEEP = 2  # newest checkpoints kept


@dataclass
class Progressed:
    """How far a run is: steps done, wall seconds they took, and the rows of both logs so far."""

    step: int = 0
    seconds: float = 0.0
    losses: list[dict[str, Any]] = field(default_factory=list)
    times: list[dict[str, Any]] = field(default_factory=list)


def json_lines(rows: list[dict[str, Any]]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


@contextmanager
def claimed(state: Path) -> Iterator[None]:
    """Hold the state folder for this process alone. Raises `EmsError` when another one holds it.

    The lock is the kernel's (flock), so it goes with the process, however that ends.
    """
    state.mkdir(parents=True, exist_ok=True)
    with open(state / "lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EmsError(
                f"{state}: another process is training this system now; wait for it or stop it"
            ) from None
        yield


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors. A failure (disk full) is an `OSError`, for `atomic_path`."""
    try:
        save_file({key: value.detach().cpu().contiguous() for key, value in tensors.items()}, path)
    except SafetensorError as error:
        raise OSError(None, str(error), str(path)) from error


def save_checkpoint(
    state: Path, modules: nn.Module, optimizer: torch.optim.Optimizer, done: Progressed
) -> None:
    """Save the state after `done.step` steps and drop old checkpoints."""
    with atomic_path(state / f"step-{done.step:08}") as folder:
        folder.mkdir(parents=True)
        save_tensors(modules.state_dict(), folder / "model.safetensors")
        save_tensors(_optimizer_tensors(optimizer), folder / "optimizer.safetensors")
        write_text(folder / "losses.jsonl", json_lines(done.losses))
        write_text(folder / "times.jsonl", json_lines(done.times))
        write_json(folder / "state.json", {"step": done.step, "seconds": done.seconds})
    for old in checkpoints(state)[:-KEEP]:
        shutil.rmtree(old)


def checkpoints(state: Path) -> list[Path]:
    """The whole checkpoints of a state folder, oldest first."""
    return sorted(path for path in state.glob("step-*") if (path / "state.json").exists())


def load_checkpoint(
    state: Path, modules: nn.Module, optimizer: torch.optim.Optimizer
) -> Progressed:
    """Load the newest checkpoint that can be read; nothing done when there is none.

    A checkpoint is read as a whole before anything of it is loaded, so that nothing of a corrupt
    one is kept.
    """
    for folder in reversed(checkpoints(state)):
        try:
            weights = load_file(folder / "model.safetensors")
            moments = load_file(folder / "optimizer.safetensors")
            losses, times = (_rows(folder / name) for name in ("losses.jsonl", "times.jsonl"))
            done = Progressed(**read_json(folder / "state.json"), losses=losses, times=times)
        except (OSError, SafetensorError, ValueError, TypeError, EmsError) as error:
            log.warning("checkpoint %s cannot be read (%s); trying the one before", folder, error)
            continue
        modules.load_state_dict(weights)
        _restore(optimizer, moments)
        return done
    return Progressed()


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{index}.{name}": value
        for index, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }


def _restore(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
