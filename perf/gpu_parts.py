"""One part of gpu.py in a process of its own: `python perf/gpu_parts.py PART FOLDER ...`.

A part prints its figures as lines of JSON behind MARK as soon as it has them. Lists are added to
those of earlier lines; any other value replaces an earlier one. FOLDER has what `data` made.
"""

import argparse
import ctypes
import json
import logging
import os
import platform
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from gpu_report import MARK
from pairs_made import FEW_PIECES, ROOT, SIZES, prepare, store_of
from sentencepiece import SentencePieceProcessor
from torch.utils._python_dispatch import TorchDispatchMode
from train_steps import Job, our_steps
from train_throughput import timed

import ems
from ems.config import SystemSettings, load_experiment, load_site
from ems.model.letters import letters_of
from ems.objectives.system import System
from ems.train.batches import Data
from ems.train.distributed import World
from ems.train.journal import Journal
from ems.train.scalars import Scalars
from ems.train.step import Trainer

RECIPE = ("small62", "gpu-ten-minutes")  # experiment and system
FOREVER = 10**7  # steps
WARM, COUNTED, PROFILED = 10, 50, 20  # steps; COUNTED are as many as between two rows of the log
SHOW_EVERY = 5.0  # seconds
WAITING = {  # operations that return a number, or a tensor whose size depends on values
    *("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "bincount"),
    *("_unique", "_unique2", "unique_dim", "unique_consecutive"),
}
ON_HOST = "ems/model/packing.py"  # works on a copy that stays on the host
SYNCHRONISING = {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"}
MARGIN = 3.0  # seconds before its limit in which a part ends by itself
TOP = 15  # kernels of the profile


class Size(NamedTuple):
    """An encoder that is trained: its sizes, its pieces, and the pairs of a step."""

    model: dict[str, int]
    pieces: int
    batch: int


@dataclass(frozen=True)
class Scale:
    """What is run on a device: the sizes, the steps of `throughput` off and on the clock, and
    changes to the settings of RECIPE.
    """

    sizes: dict[str, Size]
    precision: str
    warm: int
    steps: int
    matrix: int  # rows and columns of the matrix product that is timed
    changes: dict[str, dict[str, Any]]
    table: int  # pieces of the table that `training` trains


def _small(layers: int, width: int) -> Size:
    model = {"layers": layers, "width": width, "heads": 4, "feed_forward": 2 * width}
    return Size(model, 5_000, 16)


SCALES = {
    "cuda": Scale(
        sizes={
            "ems": Size(SIZES["ems"], 60_000, 608),
            "lightweight": Size(SIZES["lightweight"], 50_000, 1024),
            "12x512": Size(SIZES["12x512"], 32_000, 1024),
        },
        precision="bfloat16",
        warm=15,  # every shape that is compiled comes within these
        steps=40,
        matrix=8192,
        changes={"train": {"device": "cuda"}},
        table=32_000,
    ),
    "cpu": Scale(
        sizes={"ems": _small(6, 64), "lightweight": _small(2, 32), "12x512": _small(12, 32)},
        precision="float32",
        warm=2,
        steps=4,
        matrix=1024,
        changes={
            "model": {"table": 32, "ngrams": 1000},
            "train": {"device": "cpu", "batch_pairs": 32, "precision": "float32", "threads": 2},
        },
        table=5_000,
    ),
}


def emit(**figures: Any) -> None:
    """Print figures for the program that started this one, past what pytest captures."""
    print(MARK + json.dumps(figures), file=sys.__stdout__, flush=True)


# --- data: the machine, and what the other parts read


def data(options: argparse.Namespace) -> None:
    """Describe the machine; write the pairs, a vocabulary and shards. Exits with one line where
    there is no GPU.
    """
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} finds no GPU here; the same in small: --device cpu")
    started = time.monotonic()
    emit(machine=machine(options.device))
    shared = options.shared if options.shared and options.shared.is_dir() else None
    pieces = FEW_PIECES["demo" if shared is None else "corpora"]
    prepare(options.folder, shared, "small", (pieces,), few=True)
    (options.folder / f"{pieces}").rename(options.folder / "data")
    _, store = store_of(options.folder / "data")
    batch = store.draw(1, 0, min(int(store.sizes.sum()), 2000), 1.0)
    emit(
        text="the embedded demo" if shared is None else "Tatoeba and bible-uedin",
        pairs=int(store.sizes.sum()),
        tokens_per_pair=round(len(batch.tokens) / batch.pairs, 1),
        data_seconds=round(time.monotonic() - started, 1),
    )


def machine(device: str) -> dict[str, Any]:
    """Return the versions, and on a GPU its name, driver and the speed of its arithmetic."""
    facts: dict[str, Any] = {
        "device": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.platform(),
        "ems": _commit() or ems.__version__,
    }
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        facts["device"] = properties.name
        facts["memory_gib"] = round(properties.total_memory / 2**30, 1)
        driver = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        facts["cuda"], facts["driver"] = torch.version.cuda, driver
    return facts | _ceilings(torch.device(device))


def _commit() -> str:
    """Return the commit of the checkout; nothing for a copy without one."""
    inside = (ROOT / ".git").exists()
    return _output("git", "describe", "--always", "--dirty") if inside else ""


def _output(*command: str) -> str:
    """Return what a command prints; nothing if it fails or is not there."""
    with suppress(OSError):
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return ""


def _processor() -> str:
    """Return the name of the CPU."""
    with suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        return found[1] if found else platform.machine()
    return platform.machine()


def _ceilings(device: torch.device) -> dict[str, float]:
    """Return the TFLOP/s of a matrix product on random numbers, and the GB/s of a copy, bytes read
    and written: what no training of any code can pass.
    """
    scale = SCALES[device.type]
    dtype = getattr(torch, scale.precision)
    one, other = (torch.randn(scale.matrix, scale.matrix, device=device).to(dtype) for _ in "ab")
    out = torch.empty_like(one)
    seconds = _seconds(lambda: torch.mm(one, other, out=out), device)
    flat = torch.randn(scale.matrix**2 * 8 if device.type == "cuda" else 1 << 24, device=device)
    target = torch.empty_like(flat)
    copied = _seconds(lambda: target.copy_(flat), device)
    return {
        "matmul": f"{scale.matrix} x {scale.matrix} x {scale.matrix}, {scale.precision}",
        "matmul_tflops": round(2 * scale.matrix**3 / seconds / 1e12, 3),
        "copy_gb_per_s": round(2 * flat.numel() * 4 / copied / 1e9, 1),
    }


def _seconds(work: Any, device: torch.device, rounds: int = 10) -> float:
    """Return the median time of a piece of work after three for warming up."""
    times = []
    for _ in range(3 + rounds):
        synchronize(device)
        started = time.perf_counter()
        work()
        synchronize(device)
        times.append(time.perf_counter() - started)
    return statistics.median(times[3:])


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize()


# --- throughput: one trainer at one size


def throughput(options: argparse.Namespace) -> None:
    """Measure one trainer at one size."""
    job = job_of(options, options.size)
    size = SCALES[options.device].sizes[options.size]
    facts = {"size": options.size, "trainer": options.trainer, **size._asdict()}
    figure = timed(job, options.trainer)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    memory = round(figure.pop("gpu_mb", peak))
    emit(runs=[{**facts, **figure, "memory_mb": memory}])


def job_of(options: argparse.Namespace, name: str) -> Job:
    """Return the steps of `throughput` at one of its sizes."""
    scale, device = SCALES[options.device], torch.device(options.device)
    size = scale.sizes[name]
    settings, store = store_of(options.folder / "data")
    settings = settings.overridden({"model": size.model})
    if device.type == "cpu":
        torch.set_num_threads(2)
    run = (size.batch, scale.warm, scale.steps, device, scale.precision, False)
    return Job(settings, store, size.pieces, *run, options.folder / f"scratch-{name}")


# --- training: the recipe, as `ems train` runs it


class Unsaved(Journal):
    """A journal without checkpoints, which are 3.6 GB each."""

    def _save(self) -> None:
        pass


def training(options: argparse.Namespace) -> None:
    """Train the recipe: WARM steps, COUNTED in which each wait for the GPU is noted, then `seconds`
    at full speed.
    """
    trainer, journal = trainer_of(options)
    device, done = trainer.device, journal.done
    steps = steps_of(trainer, journal)
    first = next(islice(steps, WARM - 1, None))
    with Waits(device) as waits:
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
    """Yield the loss of each step of a training that nothing but `close` ends."""
    trainer.system.train()
    for batch in journal.timed(trainer.batches(0)):
        parts = trainer.step(batch)
        journal.add(parts)
        yield parts["total"]


def trainer_of(options: argparse.Namespace) -> tuple[Trainer, Journal]:
    """Return the trainer of RECIPE on the pairs that `data` made, with a table for all pieces of
    the true vocabulary, and its journal.
    """
    scale, device = SCALES[options.device], torch.device(options.device)
    _, store = store_of(options.folder / "data")
    train = dict.fromkeys(("steps", "checkpoint_every", "validate_every"), FOREVER)
    settings = recipe().overridden(scale.changes).overridden({"train": train})
    torch.set_num_threads(settings.train.threads)
    torch.manual_seed(1)
    system = System(settings, len(store.languages), scale.table, settings.train.precision)
    vocabulary = options.folder / "data/bpe.model"
    letters = letters_of(SentencePieceProcessor(model_file=str(vocabulary)))
    system.encoder.table.ngrams.letters[: len(letters)] = letters
    state = options.folder / "state"
    trainer = Trainer(system.to(device), settings.train, 1, store, state, device, World())
    trainer.waits = False  # a CPU does what a GPU would
    journal = Unsaved(RECIPE[1], trainer, Data(store, None, vocabulary), Scalars(None))
    journal.resume()
    return trainer, journal


def recipe() -> SystemSettings:
    """Return the settings of RECIPE as its experiment has them."""
    experiment, system = RECIPE
    site = load_site(ROOT / "config.yaml")
    return load_experiment(experiment, site, ROOT / "configs").systems[system]


class Waits:
    """Counts how often the host waits for a GPU, by the place in ems.

    On a GPU PyTorch tells; on a CPU these are the operations that would wait on a GPU, since the
    size or the value of what they return is known only there.
    """

    def __init__(self, device: torch.device) -> None:
        self.on_gpu = device.type == "cuda"
        self.places: Counter[str] = Counter()

    def __enter__(self) -> "Waits":
        if not self.on_gpu:
            self.watch = _Watch(self.note).__enter__()
            return self
        self.caught = warnings.catch_warnings()
        self.caught.__enter__()
        warnings.simplefilter("always")
        warnings.showwarning = self._warned
        torch.cuda.set_sync_debug_mode("warn")
        return self

    def __exit__(self, *error: Any) -> None:
        if not self.on_gpu:
            self.watch.__exit__(*error)
            return
        torch.cuda.set_sync_debug_mode("default")
        self.caught.__exit__(*error)

    def _warned(self, message: Warning, *_: Any, **__: Any) -> None:
        if "synchroniz" in str(message):
            self.note()

    def note(self) -> None:
        """Count one at the innermost place in ems, as `log` if the journal asked for it."""
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
        """Return the number of waits, apart those of the log, and their places."""
        places = dict(self.places.most_common())
        logged = places.pop("log", 0)
        return {"waits": sum(places.values()), "waits_of_log": logged, "places": places}


class _Watch(TorchDispatchMode):
    """Calls `note` for each operation whose result a host has to wait for."""

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
    """Return the TOP kernels (on a CPU: operations) of PROFILED steps, and the share of the time in
    which none ran.
    """
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
    """Return whether an event of the profiler is no annotation, which spans many kernels."""
    note = getattr(event, "is_user_annotation", False)
    return not note and not event.name.startswith(("Optimizer.", "ProfilerStep"))


def union(ranges: list[tuple[float, float]]) -> float:
    """Return the length of what ranges cover together."""
    covered, end = 0.0, float("-inf")
    for first, last in sorted(ranges):
        covered += max(0.0, last - max(first, end))
        end = max(end, last)
    return covered


# --- laws: the tests of devices


def laws(options: argparse.Namespace) -> None:
    """Run the tests of devices on this one, a case of each law first, then a second one of each."""
    import pytest

    files = [str(path) for path in sorted((ROOT / "tests").glob("test_*.py")) if has_laws(path)]
    flags = ["-v", "--no-header", "--capture=sys", "-p", "no:cacheprovider", "-o", "addopts="]
    status = pytest.main([f"--rootdir={ROOT}", *flags, *files], plugins=[Laws(options)])
    if status:
        sys.exit(int(status))


def has_laws(path: Path) -> bool:
    """Return whether a file has tests that run on each device."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(line.startswith("from devices_made import") for line in lines)


class Laws:
    """A plug-in of pytest: the cases to run, their order, their end; it prints how each ended."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.names: dict[str, str] = {}  # test -> law

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Keep the cases of this device, at most `cases` of each law, the laws in turn."""
        ranks: Counter[str] = Counter()
        ranked = []
        for item in items:
            mark = item.get_closest_marker("law")
            values = getattr(item, "callspec", None)
            if mark is None or values is None or self.options.device not in values.params.values():
                continue
            law = self.names[item.nodeid] = mark.args[0]
            ranks[law] += 1
            ranked.append((ranks[law], item))
        chosen = [item for rank, item in ranked if rank <= (self.options.cases or rank)]
        order = {item: rank for rank, item in ranked}
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = sorted(chosen, key=order.__getitem__)

    def pytest_runtest_setup(self, item: Any) -> None:
        """Leave a case out when the time is over."""
        import pytest

        if time.monotonic() > self.options.until - MARGIN:
            pytest.skip("no time left")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Print how a case ended."""
        if report.when != "call" and report.outcome == "passed":
            return
        name = report.nodeid.partition("::")[2]
        case = {"law": self.names[report.nodeid], "case": name, "outcome": report.outcome}
        if report.failed:
            case["traceback"] = report.longreprtext
        facts = dict(report.user_properties)
        emit(cases=[{**case, "seconds": round(report.duration, 2), **facts}])


PARTS = {part.__name__: part for part in (data, laws, throughput, training, profile)}


def main() -> None:
    with suppress(OSError, AttributeError):  # Linux: a part ends with the program that started it
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", choices=SCALES, required=True)
    parser.add_argument("--until", type=float, required=True, help="end, of time.monotonic()")
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--size")
    parser.add_argument("--trainer")
    options = parser.parse_args()
    if options.part != "laws":
        logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
