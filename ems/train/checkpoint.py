"""Checkpoints: everything that the next step of a training run depends on.

    <state>/lock                        locked by the process that trains this system
    <state>/<identity>/identity.json    the settings and data of the checkpoints (job.py)
    <state>/<identity>/step-00000200/   model.safetensors  optimizer.safetensors
                                        losses.jsonl  times.jsonl  state.json

state.json is written last and holds the sha256 of the other files and of itself; a damaged
checkpoint is skipped. Batches and dropout are functions of (seed, step), so they need no state.
"""

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn, optim

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import atomic_path, parse_json, read_json, sha256_file, write_json, write_text
from ems.base.progress import log
from ems.base.provenance import digest
from ems.base.records import Below, Count, Json, NonBlank, Record
from ems.config.train import TrainSettings
from ems.model.devices import save_tensors
from ems.train.measures import LogRow

MODEL, OPTIMIZER = "model.safetensors", "optimizer.safetensors"
LOSSES, TIMES = "losses.jsonl", "times.jsonl"
FILES = (MODEL, OPTIMIZER, LOSSES, TIMES)
STATE = "state.json"


class _State(Record):
    check: NonBlank
    step: Count
    sha256: dict[Below, NonBlank]
    written: Json


@dataclass
class RunProgress:
    """The progress of a run, as a checkpoint stores it."""

    step: int = 0
    attempts: int = 0  # this start, and the earlier ones that saved a checkpoint
    seconds: float = 0.0  # wall time
    waited: float = 0.0  # seconds spent waiting for data
    tokens: int = 0
    summed: int = 0  # steps since the last row of the log
    sums: dict[str, float] = field(default_factory=dict)  # losses, summed over these steps
    scaling: dict[str, float] = field(default_factory=dict)  # state of float16's loss scaling
    losses: list[LogRow] = field(default_factory=list)
    times: list[LogRow] = field(default_factory=list)


@dataclass(frozen=True)
class Keep:
    """Which checkpoints to keep, and which make the model: the `best` one, or the last regular
    ones, averaged: of multiples of `checkpoint_every` and the last step, not after a signal.
    """

    settings: TrainSettings
    best: int | None = None

    def kept(self, steps: list[int]) -> set[int]:
        return {*steps[-self.settings.keep_checkpoints :], *self.chosen(steps)}

    def chosen(self, steps: list[int]) -> list[int]:
        """Choose, from ascending steps, the ones that make the model; empty: the last weights."""
        if self.best is not None:
            return [self.best]
        every, last = self.settings.checkpoint_every, self.settings.steps
        regular = [step for step in steps if step % every == 0 or step == last]
        count = self.settings.average_checkpoints
        return regular[-count:] if count else []


def json_lines(rows: list[LogRow]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def save_checkpoint(
    state: Path, modules: nn.Module, optimizer: optim.Optimizer, done: RunProgress, keep: Keep
) -> None:
    """Save the state after `done.step` steps; remove older checkpoints except those to `keep`."""
    ours = {*FILES, STATE}
    own = _folder(state, done.step)
    with atomic_path(own, lambda old: {path.name for path in old.iterdir()} <= ours) as folder:
        folder.mkdir(parents=True)
        save_tensors(modules.state_dict(), folder / MODEL)
        save_tensors(_optimizer_tensors(optimizer), folder / OPTIMIZER)
        write_text(folder / LOSSES, json_lines(done.losses))
        write_text(folder / TIMES, json_lines(done.times))
        numbers = {k: v for k, v in vars(done).items() if k not in ("losses", "times")}
        value = {**numbers, "sha256": {name: sha256_file(folder / name) for name in FILES}}
        write_json(folder / STATE, {**value, "check": digest(value)})
    older = [path for path in checkpoints(state) if step_of(path) <= done.step]
    kept = keep.kept([step_of(path) for path in older])
    for path in older:
        if step_of(path) not in kept:
            # renamed first, so that a kill leaves no partial one under its name
            shutil.rmtree(path.rename(path.with_name(f".{path.name}.{os.getpid()}.part")))


def _folder(state: Path, step: int) -> Path:
    return state / f"step-{step:08}"


def step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def checkpoints(state: Path) -> list[Path]:
    return sorted(state.glob("step-[0-9]*"))


def verified(folder: Path) -> Json:
    """Read state.json of a checkpoint. Raises `Damaged` if a file has changed or is missing."""
    value = read_json(folder / STATE, _State).written
    whole = value.pop("check") == digest(value) and value["sha256"].keys() >= {*FILES}
    if not whole or value["step"] != step_of(folder):
        raise Damaged(folder / STATE, "it has changed since it was written")
    for name, sha256 in value.pop("sha256").items():
        if not (folder / name).is_file() or sha256_file(folder / name) != sha256:
            raise Damaged(folder / name, "it is missing or has changed since it was written")
    return value


def load_checkpoint(state: Path, modules: nn.Module, optimizer: optim.Optimizer) -> RunProgress:
    """Load the newest undamaged checkpoint and return its progress (step 0 if there is none)."""
    for folder in reversed(checkpoints(state)):
        try:
            numbers = verified(folder)
            weights, moments = load_file(folder / MODEL), load_file(folder / OPTIMIZER)
            losses, times = (_rows(folder / name) for name in (LOSSES, TIMES))
        except (OSError, SafetensorError, ValueError, EmsError) as error:
            problem = error.finding if isinstance(error, EmsError) else error
            log.warning("checkpoint %s cannot be read (%s); trying the one before", folder, problem)
            continue
        modules.load_state_dict(weights)
        _restore(optimizer, moments)
        return RunProgress(**numbers, losses=losses, times=times)
    if checkpoints(state):
        log.warning("%s: none of its checkpoints can be read; training starts anew", state)
    return RunProgress()


def _rows(path: Path) -> list[LogRow]:
    return list(map(parse_json, path.read_text().splitlines()))


def _optimizer_tensors(optimizer: optim.Optimizer) -> dict[str, Tensor]:
    states = optimizer.state_dict()["state"].items()
    return {f"{index}.{name}": value for index, state in states for name, value in state.items()}


def _restore(optimizer: optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def chosen_weights(state: Path, keep: Keep) -> tuple[dict[str, Tensor], list[int]]:
    """Average the chosen checkpoints; return weights and steps. Raises `EmsError` if damaged."""
    present = checkpoints(state)
    folders = [_folder(state, step) for step in keep.chosen([step_of(path) for path in present])]
    for folder in folders:
        try:
            verified(folder)
        except EmsError as error:
            later = ", ".join(path.name for path in present if path >= folder)
            raise mistake("damaged checkpoint", error=error, later=later, state=state) from None
    files = [safe_open(folder / MODEL, "pt") for folder in folders]
    names = list(files[-1].keys())
    weights = {name: _mean([file.get_tensor(name) for file in files]) for name in names}
    return weights, [step_of(path) for path in folders]


def _mean(tensors: list[Tensor]) -> Tensor:
    """Average tensors in float64 and return their own dtype; for integers, return the last."""
    mean = sum(tensor.double() for tensor in tensors) / len(tensors)
    return mean.to(tensors[-1].dtype) if tensors[-1].is_floating_point() else tensors[-1]
