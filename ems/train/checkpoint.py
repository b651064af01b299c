"""Checkpoints: everything that the next step depends on, whole or passed over, no pickle.

    <state>/lock                        held by the process that trains this system
    <state>/<identity>/identity.json    what the checkpoints are of (identity.py)
    <state>/<identity>/step-00000200/   model.safetensors  optimizer.safetensors
                                        losses.jsonl  times.jsonl  state.json

Notable choices:
- the folder is written under a temporary name and renamed, so each one that has a name was whole;
- state.json is written last and holds the sha256 of the other files and of itself: a file that a
  disk changed or cut short is found, and the newest checkpoint that is as it was written wins;
- a checkpoint is renamed before it is deleted, so that a kill never leaves a part of one;
- no random state is kept: batches and dropout are functions of (seed, step);
- only the checkpoints that every run of the same settings has are averaged (those at multiples of
  `checkpoint_every`, and the last): one that was saved because the run was stopped is not, so a
  stopped and resumed run gives the same model.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ems.config.provenance import digest
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import (
    atomic_path,
    check_state,
    parse_json,
    read_json,
    sha256_file,
    write_json,
    write_text,
)
from ems.progress import log
from ems.shapes import BELOW, COUNT, TEXT, mapping, record

MODEL, OPTIMIZER = "model.safetensors", "optimizer.safetensors"
LOSSES, TIMES = "losses.jsonl", "times.jsonl"
FILES = (MODEL, OPTIMIZER, LOSSES, TIMES)
STATE = "state.json"
SHAPE = record(  # of state.json, whose `check` says that the rest is as it was written
    {"check": TEXT, "step": COUNT, "sha256": {**mapping(TEXT, BELOW), "required": list(FILES)}}
)


@dataclass
class Progressed:
    """How far a run is: steps done, wall seconds they took and those of them that the trainer
    waited for data, tokens read, the sums of the loss parts of the `summed` steps since the last
    row of the log, and the rows of both logs so far.
    """

    step: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    tokens: int = 0
    summed: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    losses: list[dict[str, Any]] = field(default_factory=list)
    times: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Keep:
    """Which checkpoints stay: the newest `newest`, and of those at a multiple of `every` steps (or
    at step `last`) the newest `regular`, which are averaged at the end.
    """

    newest: int
    regular: int = 0
    every: int = 1
    last: int = 0

    def is_regular(self, step: int) -> bool:
        """Whether a run has this checkpoint whatever stops and resumes it."""
        return step % self.every == 0 or step == self.last

    def of(self, steps: list[int]) -> set[int]:
        """Those of some steps, ascending, that stay."""
        regular = [step for step in steps if self.is_regular(step)]
        return {*steps[-self.newest :], *(regular[-self.regular :] if self.regular else ())}


def json_lines(rows: list[dict[str, Any]]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


@contextmanager
def claimed(state: Path) -> Iterator[None]:
    """Hold the state folder of a system for this process alone. Raises `EmsError` when another one
    holds it.

    The lock is the kernel's (flock), so it goes with the process, however that ends. At the end the
    folder is removed when nothing else is in it.
    """
    check_state(state, ("identity.json", "step-", "bad-batch-"))
    state.mkdir(parents=True, exist_ok=True)
    with open(state / "lock", "a") as handle:
        _lock(handle, state)
        yield
        if [path.name for path in state.iterdir()] == ["lock"]:
            shutil.rmtree(state)


def _lock(handle: TextIO, state: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle.fileno()).st_ino == (state / "lock").stat().st_ino:
            return
    except (BlockingIOError, FileNotFoundError):  # not found: its holder has just finished
        pass
    raise EmsError(f"{state}: another process is training this system now; wait for it or stop it")


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors. A failure (disk full) is an `OSError`, for `atomic_path`."""
    try:
        save_file({key: value.detach().cpu().contiguous() for key, value in tensors.items()}, path)
    except SafetensorError as error:
        raise OSError(None, str(error), str(path)) from error


def save_checkpoint(
    state: Path, modules: nn.Module, optimizer: torch.optim.Optimizer, done: Progressed, keep: Keep
) -> None:
    """Save the state after `done.step` steps and drop the checkpoints that need not stay."""
    with atomic_path(_folder(state, done.step), _is_checkpoint) as folder:
        folder.mkdir(parents=True)
        save_tensors(modules.state_dict(), folder / MODEL)
        save_tensors(_optimizer_tensors(optimizer), folder / OPTIMIZER)
        write_text(folder / LOSSES, json_lines(done.losses))
        write_text(folder / TIMES, json_lines(done.times))
        numbers = {k: v for k, v in asdict(done).items() if k not in ("losses", "times")}
        value = {**numbers, "sha256": {name: sha256_file(folder / name) for name in FILES}}
        write_json(folder / STATE, {**value, "check": digest(value)})
    older = [path for path in checkpoints(state) if step_of(path) <= done.step]
    stay = keep.of([step_of(path) for path in older])
    for path in older:
        if step_of(path) not in stay:
            _remove(path)


def _is_checkpoint(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= {*FILES, STATE}


def _folder(state: Path, step: int) -> Path:
    return state / f"step-{step:08}"


def step_of(folder: Path) -> int:
    """The steps that were done when a checkpoint was saved."""
    return int(folder.name.removeprefix("step-"))


def checkpoints(state: Path) -> list[Path]:
    """The checkpoints of a state folder, oldest first."""
    return sorted(state.glob("step-[0-9]*"))


def _remove(folder: Path) -> None:
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    folder.rename(doomed)
    shutil.rmtree(doomed)


def clean(state: Path) -> None:
    """Remove what a kill left half-written or half-deleted. The caller holds the state folder."""
    for path in state.glob(".*.part"):
        log.info("%s: left by a run that was killed; removed", path)
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def verified(folder: Path) -> dict[str, Any]:
    """state.json of a checkpoint each of whose files is as it was written; otherwise a `Damaged`
    says which one is not.
    """
    value = read_json(folder / STATE, SHAPE)
    if value.pop("check") != digest(value) or value["step"] != step_of(folder):
        raise Damaged(folder / STATE, "not as it was written")
    for name, sha256 in value.pop("sha256").items():
        if not (folder / name).is_file() or sha256_file(folder / name) != sha256:
            raise Damaged(folder / name, "missing, or not the file that was written")
    return value


def load_checkpoint(
    state: Path, modules: nn.Module, optimizer: torch.optim.Optimizer
) -> Progressed:
    """Load the newest checkpoint that is as it was written; nothing done when there is none.

    A checkpoint is read as a whole before anything of it is loaded, so that nothing of a corrupt
    one is kept.
    """
    for folder in reversed(checkpoints(state)):
        try:
            numbers = verified(folder)
            weights, moments = load_file(folder / MODEL), load_file(folder / OPTIMIZER)
            losses, times = _rows(folder / LOSSES), _rows(folder / TIMES)
        except (OSError, SafetensorError, ValueError, EmsError) as error:
            problem = error.finding if isinstance(error, EmsError) else error
            log.warning("checkpoint %s cannot be read (%s); trying the one before", folder, problem)
            continue
        modules.load_state_dict(weights)
        _restore(optimizer, moments)
        return Progressed(**numbers, losses=losses, times=times)
    if checkpoints(state):
        log.warning("%s: none of its checkpoints can be read; training starts anew", state)
    return Progressed()


def _rows(path: Path) -> list[dict[str, Any]]:
    return [parse_json(line) for line in path.read_text().splitlines()]


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


# --- averaging


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
    tensors of whole numbers are those of the last file. No more than one tensor of each file is in
    memory; sums are float64.
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
