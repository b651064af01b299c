"""Measure what a stage costs: wall seconds, CPU seconds, peak memory, as the kernel counted them.

Most jobs of the text path are over before a sampler would look at them twice.
"""

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ems.base.files import write_json
from ems.base.progress import log


@contextmanager
def measured(stage: str, out: Path | None) -> Iterator[None]:
    """Log the costs of the work inside, children included, and write them to `out` if given.

    {"stage", "seconds", "cpu_seconds", "max_rss_mb"}: the memory is the resident peak of this
    process or of its largest child, whichever is more, in MB of 10^6 bytes. Work that used a GPU
    names it under "gpu". Work that fails leaves no file.
    """
    started = time.monotonic()
    yield
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    memory = max(_peak(), children.ru_maxrss) * 1024 / 1e6
    costs = {
        "stage": stage,
        "seconds": round(time.monotonic() - started, 2),
        "cpu_seconds": round(cpu, 2),
        "max_rss_mb": round(memory, 1),
    }
    log.info("%s s, %s s CPU, %s MB at most", *list(costs.values())[1:])
    if out is not None:
        write_json(out, costs | _gpu())


def _gpu() -> dict[str, str]:
    """Return the name of the GPU that this process used, if it did."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return {"gpu": cuda.get_device_name()} if cuda and cuda.is_initialized() else {}


def _peak() -> int:
    """Return the highest resident memory of this process in KiB.

    VmHWM: ru_maxrss starts at the size of the process that started this one.
    """
    status = Path("/proc/self/status")
    if not status.exists():  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0])
