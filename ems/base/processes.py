"""Housekeeping of every EMS process: measure costs, end with Snakemake, collect garbage rarely."""

import atexit
import gc
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ems.base.files import write_json
from ems.base.progress import log

# Python looks for reference cycles after every 700 new objects, and importing PyTorch alone makes
# 270,000: a tenth of the time of a short job, and of Snakemake's plan. Arrays, lines and tensors,
# the bulk of EMS's objects, are freed without it.
OBJECTS = 500_000  # between collections; as pairs of small dictionaries 100 MB
VARIABLE = "EMS_SNAKEMAKE_PID"  # set by rules/common.smk
INTERVAL = 1.0  # seconds between two checks of Snakemake


@contextmanager
def measured(stage: str, out: Path | None) -> Iterator[None]:
    """Log the costs of the work inside, including child processes, and write them to `out` if
    given and nothing fails. `max_rss_mb` is the peak resident memory of this process or its largest
    child, in MB of 10^6 bytes, by the kernel: most jobs end before a sampler would look twice.
    """
    started = time.monotonic()
    yield
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    peak, status = own.ru_maxrss, Path("/proc/self/status")  # in KiB
    if status.exists():  # on Linux, ru_maxrss starts at the size of the parent process
        peak = int(status.read_text().partition("VmHWM:")[2].split()[0])
    costs = {
        "stage": stage,
        "seconds": round(time.monotonic() - started, 2),
        "cpu_seconds": round(cpu, 2),
        "max_rss_mb": round(max(peak, children.ru_maxrss) * 1024 / 1e6, 1),
    }
    log.info("%s s, %s s CPU, %s MB at most", *list(costs.values())[1:])
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda and cuda.is_initialized():
        costs["gpu"] = cuda.get_device_name()
    if out is not None:
        write_json(out, costs)


def look_rarely() -> None:
    """Let Python collect garbage less often, and not at exit."""
    gc.set_threshold(OBJECTS)
    atexit.register(gc.freeze)


def stop_with_snakemake() -> None:
    """End this process when the Snakemake that started it is gone. `kill -9` of Snakemake leaves
    its jobs running, and the next run would start each a second time. On a cluster, this is the
    Snakemake inside the job, which survives the one on the login node.
    """
    if VARIABLE in os.environ:
        threading.Thread(target=_watch, args=(int(os.environ[VARIABLE]),), daemon=True).start()


def _watch(pid: int) -> None:
    import psutil

    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(INTERVAL)
    log.error("error: Snakemake (process %s) is gone; stopping", pid)
    os.kill(os.getpid(), signal.SIGKILL)
