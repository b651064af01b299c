"""A job does not outlive the Snakemake that started it.

`kill -9` of Snakemake leaves its jobs running; the next run would then start each of them a second
time beside the first. So a stage watches the nearest Snakemake among its ancestors and stops when
that is gone. On a cluster this is the Snakemake inside the job, so that the job survives the one on
the login node.
"""

import logging
import os
import signal
import threading
import time

import psutil

log = logging.getLogger("ems")
INTERVAL = 1.0  # seconds between two looks


def stop_with_snakemake() -> None:
    """Start the watch, if a Snakemake is among this process's ancestors."""
    watched = next(filter(_is_snakemake, psutil.Process().parents()), None)
    if watched is not None:
        threading.Thread(target=_watch, args=(watched,), daemon=True).start()


def _is_snakemake(process: psutil.Process) -> bool:
    try:
        return any(os.path.basename(word) == "snakemake" for word in process.cmdline()[:3])
    except psutil.Error:
        return False


def _watch(process: psutil.Process) -> None:
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(INTERVAL)
    log.error("error: Snakemake (process %s) is gone; stopping", process.pid)
    os.kill(os.getpid(), signal.SIGKILL)
