"""Parts of gpu.py about training steps: train the recipe and count host syncs; profile."""

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from gpu_scale import MARGIN, RECIPE, emit, job_of, synchronize, trainer_of
from pairs_made import ROOT
from torch.utils._python_dispatch import TorchDispatchMode
from train_steps import our_steps

from ems.train.journal import Journal
from ems.train.step import Trainer

WARM, COUNTED, PROFILED = 10, 50, 20  # steps; COUNTED is the interval between two rows of the log
SHOW_EVERY = 5.0  # seconds
WAITING = {  # operations that return a number, or a tensor whose size depends on values
    *("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "bincount"),
    *("_unique", "_unique2", "unique_dim", "unique_consecutive"),
}
ON_HOST = "ems/model/packing.py"  # works on a copy that stays on the host
SYNCHRONISING = {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"}
TOP = 15  # kernels of the profile


def training(options: argparse.Namespace) -> None:
    """Train the recipe: WARM steps, COUNTED steps with each host sync noted, then `seconds` at
    full speed.
    """
    trainer, journal = trainer_of(options)
    device, done = trainer.device, journal.done
    steps = steps_of(trainer, journal)
    first = next(islice(steps, WARM - 1, None))
    waits = Waits(device)
    with waits.counted():
        next(islice(steps, COUNTED - 1, None))
    counted = {"loss_first": round(float(first), 4), "counted": COUNTED, **waits.figures()}
    synchronize(device)
    started, begun = time.monotonic(), done.step
    until = min(options.until - MARGIN, started + options.seconds)
    due = started + SHOW_EVERY
    for loss in steps:
        now = time.monotonic()
        if now < due and now < until:
            continue
        due = now + SHOW_EVERY
        latest = round(float(loss), 4)  # waits for all steps
        seconds, count = time.monotonic() - started, done.step - begun
        emit(
            system=RECIPE[1],
            parameters=sum(value.numel() for value in trainer.system.parameters()),
            batch=trainer.pairs,
            steps=count,
            seconds=round(seconds, 2),
            pairs_per_s=round(count * trainer.pairs / seconds, 1),
            steps_in_ten_minutes=round(600 * count / seconds),
            loss_last=latest,
            **counted,
        )
        if now >= until:
            break
    steps.close()


def steps_of(trainer: Trainer, journal: Journal) -> Iterator[torch.Tensor]:
    """Yield the loss of each step of a training, until `close`."""
    trainer.system.train()
    for batch in journal.timed(trainer.batches(0)):
        parts = trainer.step(batch)
        journal.add(parts)
        yield parts["total"]


class Waits:
    """Counts how often the host waits for a GPU, by the place in ems.

    On a GPU PyTorch reports it. On a CPU these are the operations that would wait on a GPU, since
    only the GPU knows the size or the value of their result.
    """

    def __init__(self, device: torch.device) -> None:
        self.on_gpu = device.type == "cuda"
        self.places: Counter[str] = Counter()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count within this block."""
        if not self.on_gpu:
            with _Watch(self.note):
                yield
            return
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = self._warned
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield
            finally:
                torch.cuda.set_sync_debug_mode("default")

    def _warned(self, message: Warning, *_: Any, **__: Any) -> None:
        if "synchroniz" in str(message):
            self.note()

    def note(self) -> None:
        """Count a wait at the innermost place in ems, or as `log` if the journal caused it."""
        frame, place, logged = sys._getframe(1), "", False
        while frame:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(ROOT / "ems"):
                name = f"{path.relative_to(ROOT)}:{frame.f_lineno}"
                place = place or f"{name} {frame.f_code.co_name}"
                logged |= path.name == "journal.py"
            frame = frame.f_back
        if self.on_gpu or not place.startswith(ON_HOST):
            self.places["log" if logged else place or "elsewhere"] += 1

    def figures(self) -> dict[str, Any]:
        """Return the numbers of waits of steps and of the log, and their places."""
        places = dict(self.places.most_common())
        logged = places.pop("log", 0)
        return {"waits": sum(places.values()), "waits_of_log": logged, "places": places}


class _Watch(TorchDispatchMode):
    """Calls `note` for each operation whose result the host waits for."""

    def __init__(self, note: Any) -> None:
        super().__init__()
        self.note = note

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.name().removeprefix("aten::").partition(".")[0]
        masks = [*args[1]] if name in ("index", "index_put", "index_put_") else []
        if name in WAITING or any(m is not None and m.dtype == torch.bool for m in masks):
            self.note()
        return function(*args, **(kwargs or {}))


# --- profile: what the steps are made of


def profile(options: argparse.Namespace) -> None:
    """Profile PROFILED steps of the size `ems`, then of the recipe."""
    job = replace(job_of(options, "ems"), warm=WARM, steps=PROFILED)
    emit(profiles=[profiled("size ems", our_steps(job, "ems"), job.device)])
    steps = steps_of(*trainer_of(options))
    emit(profiles=[profiled(RECIPE[1], steps, job.device)])
    steps.close()


def profiled(name: str, steps: Iterator[Any], device: torch.device) -> dict[str, Any]:
    """Return the TOP kernels of PROFILED steps (operations on a CPU), and the idle share."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity

    on_gpu = device.type == "cuda"  # operations on the host would slow it down
    kind = DeviceType.CUDA if on_gpu else DeviceType.CPU
    activities = [ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]
    next(islice(steps, WARM - 1, None))
    synchronize(device)
    with torch.profiler.profile(activities=activities) as profiler:
        started = time.perf_counter()
        next(islice(steps, PROFILED - 1, None))
        synchronize(device)
        seconds = time.perf_counter() - started
    events = [e for e in profiler.events() if e.device_type == kind and is_kernel(e)]
    busy = union([(e.time_range.start, e.time_range.end) for e in events]) / 1e6
    calls, times = Counter[str](), Counter[str]()
    for event in events:
        calls[event.name] += 1
        own = event.time_range.elapsed_us() if on_gpu else event.self_cpu_time_total
        times[event.name] += own
    total = sum(times.values())
    kernels = [
        {"name": key, "calls": calls[key], "ms": round(of / 1e3, 2), "share": round(of / total, 4)}
        for key, of in times.most_common(TOP)
    ]
    waits = sum(event.name in SYNCHRONISING for event in profiler.events())
    return {
        "what": name,
        "steps": PROFILED,
        "ms_per_step": round(1000 * seconds / PROFILED, 2),
        "idle": round(max(0.0, 1 - busy / seconds), 4),
        "waits": waits if on_gpu else None,
        "kernels": kernels,
    }


def is_kernel(event: Any) -> bool:
    """Return whether a profiler event is a kernel; an annotation spans many kernels."""
    note = getattr(event, "is_user_annotation", False)
    return not note and not event.name.startswith(("Optimizer.", "ProfilerStep"))


def union(ranges: list[tuple[float, float]]) -> float:
    """Return the total length that ranges cover, overlaps counted once."""
    covered, end = 0.0, float("-inf")
    for first, last in sorted(ranges):
        covered += max(0.0, last - max(first, end))
        end = max(end, last)
    return covered
