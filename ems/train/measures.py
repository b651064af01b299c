"""Figures of a training run: TensorBoard scalars, throughput, and utilisation (MFU).

MFU (Chowdhery et al. 2022, PaLM, appendix B) is the number of operations that the model needs,
divided by the number that the device could do in the same time. A forward pass of T real tokens, in
sentences of L_i tokens, needs 2 T operations per weight of the linear layers, 4 d sum L_i^2 per
layer of attention, and `Objective.flops`. A backward pass needs twice as many. Nothing else counts.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ems.base.files import read_table
from ems.config.train import check_tensorboard
from ems.model.objectives.system import System, linear_weights

SUFFIX = ".ems"  # marks our event files; others in the folder are never deleted
LogRow = dict[str, Any]  # a line of losses.jsonl or times.jsonl
NO_SCALARS = {"part", "step", "pairs"}  # keys of a row
BY_LANGUAGE, BY_CORPUS = "p1_by_language", "p1_by_corpus"
TAGS = {BY_LANGUAGE: "p1", BY_CORPUS: BY_CORPUS}  # tag prefixes of the values in these mappings


def rounded(value: Any) -> Any:
    """Round a number, or each value of a mapping, to six significant digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return float(f"{value:.6g}")


class Scalars:
    """Writes an event file in `folder`, if any. Raises `EmsError` if tensorboard is missing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.writer: Any = None
        if folder:
            check_tensorboard()

    def write(self, log: list[LogRow]) -> None:
        """Add the last row of the loss log; the first call replaces older files by all rows."""
        if self.folder is None:
            return
        rows = log[-1:] if self.writer else log
        if not self.writer:
            from torch.utils.tensorboard import SummaryWriter

            old = list(self.folder.glob(f"events.out.tfevents.*{SUFFIX}"))
            # purge_step: an open TensorBoard page drops the values of older files
            self.writer = SummaryWriter(str(self.folder), purge_step=0, filename_suffix=SUFFIX)
            for path in old:
                path.unlink()
        for row in rows:
            for tag, value in scalars(row).items():
                self.writer.add_scalar(tag, value, row["step"])
        self.writer.flush()

    def close(self) -> None:
        if self.writer:
            self.writer.close()


def scalars(row: LogRow) -> dict[str, float]:
    """Return the values of a row by tag, like "train/xtr", "p1/de" or "p1_by_corpus/NTREX"."""
    values = {f"{row['part']}/{k}": row[k] for k in row if k not in NO_SCALARS | TAGS.keys()}
    for key, tag in TAGS.items():
        values |= {f"{tag}/{name}": value for name, value in row.get(key, {}).items()}
    return values


def step_flops(system: System, lengths: np.ndarray) -> int:
    """Count the FLOPs of a step; `lengths[2B]`: number of tokens of each sentence."""
    settings, lengths = system.encoder.settings, lengths.astype(np.int64)
    forward = 2 * linear_weights(system.encoder.layers) * int(lengths.sum())
    forward += 4 * settings.width * settings.layers * int((lengths**2).sum())
    for objective in system.objectives.values():
        forward += objective.flops(system, lengths)
    return 3 * forward  # a backward pass costs two forward passes


def peak_flops(device: torch.device, half: bool) -> float | None:
    """Return the peak FLOP/s of a GPU in bfloat16 (`half`) or float32; None if unknown."""
    return peak_of(torch.cuda.get_device_name(device), half) if device.type == "cuda" else None


def peak_of(name: str, half: bool) -> float | None:
    """Return the dense peak FLOP/s of matrix products, by the first matching row of gpus.tsv."""
    for row in read_table(Path(__file__).with_name("gpus.tsv")):
        if row["name"] in name.split("-")[0]:
            peak = row["bfloat16" if half else "float32"]
            return None if peak == "-" else float(peak)
    return None


@dataclass
class Meter:
    """Measures throughput since the last `read`, summed over `processes`. `peak`: FLOP/s of one."""

    peak: float | None = None
    processes: int = 1
    sums: Counter[str] = field(default_factory=Counter)
    since: float = field(default_factory=time.monotonic)

    def add(self, pairs: int, tokens: int, flops: int, waited: float) -> None:
        """Count a step; `waited`: seconds until its batch was ready."""
        self.sums.update(pairs=pairs, tokens=tokens, flops=flops, waited=waited)

    def read(self, now: float) -> str:
        """Format the rates since the last call; `now` is `time.monotonic()`."""
        seconds, sums = max(now - self.since, 1e-9), self.sums
        used = f"{100 * sums['flops'] / seconds / self.peak:.1f} %" if self.peak else "-"
        each = seconds / self.processes
        self.sums, self.since = Counter(), now
        rates = f"{sums['pairs'] / each:,.0f} pairs/s, {sums['tokens'] / each:,.0f} tokens/s"
        return f"{rates}, MFU {used}, {100 * sums['waited'] / seconds:.1f} % waiting for data"
