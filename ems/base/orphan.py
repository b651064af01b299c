"""End a job when the Snakemake that started it is gone.

`kill -9` of Snakemake leaves its jobs running, and the next run would start each of them a second
time. So the Snakefile puts its process id into the environment, and a stage watches that process.
On a cluster this is the Snakemake inside the job: the job survives the one on the login node.
"""

import logging
import os
import signal
import threading
import time

log = logging.getLogger("ems")
VARIABLE = "EMS_SNAKEMAKE_PID"
INTERVAL = 1.0  # seconds between two looks


def stop_with_snakemake() -> None:
    """Start the watch, if a Snakemake started this process."""
    if VARIABLE in os.environ:
        threading.Thread(target=_watch, args=(int(os.environ[VARIABLE]),), daemon=True).start()


def _watch(pid: int) -> None:
    import psutil

    try:
        process = psutil.Process(pid)
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(INTERVAL)
    except psutil.NoSuchProcess:
        pass
    log.error("error: Snakemake (process %s) is gone; stopping", pid)
    os.kill(os.getpid(), signal.SIGKILL)
