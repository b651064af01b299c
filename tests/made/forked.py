"""Forked processes: Snakemake, already imported (a second less each), and the memory of a function.

The server is multiprocessing's; `PRELOAD` holds nothing of ems, since each project has its own.
"""

import gc
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

PRELOAD = ["snakemake.cli", "torch"]  # PyTorch: for the tests that fork a training
multiprocessing.set_forkserver_preload(PRELOAD)


def snakemake(
    arguments: tuple[str, ...], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as streams:
        context = multiprocessing.get_context("forkserver")
        process = context.Process(target=_become, args=(arguments, folder, environment, streams))
        process.start()
        process.join()
        out, err = (Path(streams, name).read_text() for name in ("out", "err"))
    return subprocess.CompletedProcess(("snakemake", *arguments), process.exitcode, out, err)


def _become(
    arguments: tuple[str, ...], folder: Path, environment: dict[str, str], streams: str
) -> None:
    assert not any(name == "ems" or name.startswith("ems.") for name in sys.modules)
    gc.freeze()  # what the server has imported is no garbage, and to look at it copies its memory
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # of the environment
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(streams, name), os.O_WRONLY | os.O_CREAT), stream)
    sys.path.insert(0, environment["PYTHONPATH"])
    sys.argv = ["snakemake", *arguments]
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)


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
