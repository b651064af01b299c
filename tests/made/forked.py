"""Snakemake in a process that is forked from one which has imported it: a second less each.

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
    """Run `python -m snakemake` in a folder, as `subprocess.run` would, and return how it ended."""
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
    """Turn this process into the command."""
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
