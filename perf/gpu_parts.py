"""Run one part of gpu.py: `python perf/gpu_parts.py PART FOLDER ...`.

A part prints each figure as soon as it has it, as a line of JSON after MARK (`emit`). Lists extend
the lists of earlier lines; other values replace earlier ones. FOLDER holds the output of the part
`data`.
"""

import argparse
import ctypes
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
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from gpu_scale import MARGIN, SCALES, emit, job_of, synchronize
from gpu_steps import profile, training
from pairs_made import FEW_PIECES, ROOT, prepare, store_of
from train_throughput import timed

import ems

# --- data: the machine, and the input of the other parts


def data(options: argparse.Namespace) -> None:
    """Describe the machine; write the pairs, a vocabulary and shards. Exits without a GPU."""
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
        "packages": ", ".join(_versions()),
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


def _versions() -> Iterator[str]:
    """Yield the packages that matter for speed, with their versions, if installed."""
    for name in ("numpy", "sentencepiece", "triton", "sentence-transformers", "transformers"):
        with suppress(PackageNotFoundError):
            yield f"{name} {version(name)}"


def _commit() -> str:
    """Return the commit of the checkout; "" for a copy without one."""
    inside = (ROOT / ".git").exists()
    return _output("git", "describe", "--always", "--dirty") if inside else ""


def _output(*command: str) -> str:
    """Return the output of a command; "" if it fails or is missing."""
    with suppress(OSError):
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return ""


def _processor() -> str:
    with suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        return found[1] if found else platform.machine()
    return platform.machine()


def _ceilings(device: torch.device) -> dict[str, float]:
    """Return the TFLOP/s of a matrix product and the GB/s of a copy (bytes read and written).

    No training can exceed them.
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
    """Return the median time of a piece of work, after three warm-up runs."""
    times = []
    for _ in range(3 + rounds):
        synchronize(device)
        started = time.perf_counter()
        work()
        synchronize(device)
        times.append(time.perf_counter() - started)
    return statistics.median(times[3:])


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


# --- laws: the tests of devices


def laws(options: argparse.Namespace) -> None:
    """Run the device tests: the first case of every law, then the second case of every law, ..."""
    import pytest

    files = [str(path) for path in sorted((ROOT / "tests").glob("test_*.py")) if has_laws(path)]
    flags = ["-v", "--no-header", "--capture=sys", "-p", "no:cacheprovider", "-o", "addopts="]
    status = pytest.main([f"--rootdir={ROOT}", *flags, *files], plugins=[Laws(options)])
    if status:
        sys.exit(int(status))


def has_laws(path: Path) -> bool:
    """Return whether a file has tests that run on each device."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(line.startswith("from made.objectives import DEVICES") for line in lines)


class Laws:
    """pytest plug-in: selects and orders the cases, prints the outcome of each as a figure."""

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
        """Print the name of the case; skip it if no time is left."""
        import pytest

        if time.monotonic() > self.options.until - MARGIN:
            pytest.skip("no time left")
        emit(running=item.nodeid.partition("::")[2])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Print the outcome of a case."""
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
