"""How much memory a function takes."""

import multiprocessing
from pathlib import Path


def _peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0]) * 1024


def _measure(out, work, arguments):
    before = _peak()
    work(*arguments)
    out.value = _peak() - before


def growth(work, *arguments):
    """By how many bytes a function raises the peak of resident memory, in its own process."""
    context = multiprocessing.get_context("forkserver")
    out = context.Value("q", -1)
    process = context.Process(target=_measure, args=(out, work, arguments))
    process.start()
    process.join(300)
    assert process.exitcode == 0
    return out.value
