"""What a stage cost: wall seconds, CPU seconds, peak memory, as the kernel counted them.

Notable choices:
- the kernel's own account, not samples: most jobs of the text path are over before a sampler looks
  at them twice;
- the peak of this process is VmHWM: ru_maxrss starts at the size of whoever started it;
- costs lie apart from scores, so that the same seed gives the same tables byte for byte (DESIGN).
"""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ems.files import write_json
from ems.progress import log


@contextmanager
def measured(stage: str, out: Path | None) -> Iterator[None]:
    """Log what the work inside cost, children included; write it to `out` if that is given.

    {"stage", "seconds", "cpu_seconds", "max_rss_mb"}: the memory is the resident peak of this
    process or of its largest child, whichever is more, in MB of 10^6 bytes. Work that fails leaves
    no file.
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
        write_json(out, costs)


def _peak() -> int:
    """Highest resident memory of this process so far, in KiB."""
    status = Path("/proc/self/status")
    if not status.exists():  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0])
