"""Sends the loss log of a training to a tracker: dvclive, trackio or Weights & Biases.

A tracker only reads: training knows none of them, and a run is the same with and without. Each is
an optional package, imported when it is asked for. The rows of a finished training are in its
losses.jsonl; those of one that runs are in its newest checkpoint, in `results/E/state/S`.
"""

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from ems.base.errors import Damaged, EmsError
from ems.base.progress import log
from ems.tables.losses import BY_CORPUS, read_numbers

SECONDS = 5.0  # between two looks at a training that runs
Row = tuple[int, dict[str, float]]  # step, tag -> number


class DvcLive:
    """A folder with a table of each value by step."""

    def __init__(self, package: Any, project: str, name: str, folder: Path) -> None:
        self.live = package.Live(str(folder / project / name), save_dvc_exp=False, dvcyaml=None)

    def send(self, step: int, values: dict[str, float]) -> None:
        """Add a row."""
        self.live.step = step
        for tag, value in values.items():
            self.live.log_metric(tag, value)

    def close(self) -> None:
        """Write what is left."""
        self.live.end()


class Run:
    """A run of trackio or of Weights & Biases, whose calls are the same."""

    def __init__(self, package: Any, project: str, name: str, folder: Path) -> None:
        self.package = package
        package.init(project=project, name=name)

    def send(self, step: int, values: dict[str, float]) -> None:
        """Add a row."""
        self.package.log(values, step=step)

    def close(self) -> None:
        """End the run."""
        self.package.finish()


SINKS: dict[str, Callable[[Any, str, str, Path], Any]]
SINKS = {"dvclive": DvcLive, "trackio": Run, "wandb": Run}


def follow(sink: str, losses: Path, state: Path | None, folder: Path) -> int:
    """Send each row of `losses`; with `state`, those of a training that runs, until it has ended.

    Returns the number of rows. The run is named after the system, its project after the experiment.
    `folder` is where dvclive writes. Raises `EmsError` when the package is not installed or a row
    is malformed.
    """
    try:
        package = import_module(sink)
    except ModuleNotFoundError as error:
        needed = f"the package {error.name} is not installed; `pip install {sink}`"
        raise EmsError(f"--sink {sink}: {needed}") from None
    # .../EXPERIMENT/models/SYSTEM/losses.jsonl
    project, _, name = ["ems", "", "ems", *losses.absolute().parts[1:-1]][-3:]
    opened, sent = None, 0
    try:
        for step, values in _rows(losses, state):
            opened = opened or SINKS[sink](package, project, name, folder)
            opened.send(step, values)
            sent += 1
    finally:
        if opened:
            opened.close()
    return sent


def _rows(losses: Path, state: Path | None) -> Iterator[Row]:
    sent = 0
    while state and not losses.exists():
        rows = _of_checkpoint(state)
        yield from rows[sent:]
        sent = max(sent, len(rows))
        log.info("%s: %d rows; waiting for %s", state, sent, losses)
        time.sleep(SECONDS)
    yield from _read(losses)[sent:]


def _of_checkpoint(state: Path) -> list[Row]:
    """Return the rows of the newest checkpoint; none if it has gone or has none yet."""
    paths = state.glob("*/step-*/losses.jsonl")
    newest = max(paths, key=lambda path: path.parent.name, default=None)
    try:
        return _read(newest) if newest else []
    except Damaged:
        return []


def _read(path: Path) -> list[Row]:
    """Return the rows of a loss log, with the tags that TensorBoard has for them."""
    rows = []
    for entry, numbers in read_numbers(path):
        values = {f"{entry.part}/{name}": value for name, value in numbers.items()}
        values |= {f"p1/{code}": value for code, value in entry.languages.items()}
        values |= {f"{BY_CORPUS}/{name}": value for name, value in entry.corpora.items()}
        rows.append((entry.step, values))
    return rows
