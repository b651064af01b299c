"""Locks between downloading processes: a limit of connections to a host, one writer to a file.

The locks are `flock`s on files, which the kernel releases however a process ends. The lock files of
connections are kept: if one were removed while open elsewhere, two processes could hold its slot.

A network file system may have no locks, or locks that other machines do not see, without saying so.
A file is therefore locked twice, in its own folder for other machines and in a temporary folder for
this one, and partial files are named after the machine (`MACHINE`). Without locks between machines
a file may be downloaded twice, but never by two processes into one file.
"""

import fcntl
import hashlib
import io
import os
import random
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from ems.base.progress import log

PAUSE = 0.2  # seconds between attempts to get a slot
PLANNED = "EMS_PLANNED"  # time at which the Snakemake that started this process made its plan
NOT_IN_NAMES = "[^A-Za-z0-9.-]"
MACHINE = f"on-{re.sub(NOT_IN_NAMES, '_', socket.gethostname())[:64]}"  # a part of file names


@contextmanager
def slot(host: str, limit: int, folder: Path | None) -> Iterator[None]:
    """Hold one of `limit` connections to a host. `folder` (default: temporary) holds the locks."""
    folder = folder or Path(tempfile.gettempdir()) / f"ems-downloads-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(NOT_IN_NAMES, "_", host)[:200]
    for attempt in count():
        for number in range(limit):
            with (folder / f"{name}.{number}.lock").open("a+b", buffering=0) as handle:
                if _lock(handle):
                    yield
                    return
        if attempt == 0:
            log.info("waiting for one of the %s connections to %s", limit, host)
        time.sleep(PAUSE * random.uniform(0.5, 1.5))


def _lock(handle: io.FileIO, wait: bool = False) -> bool:
    """Lock a file; return False if another process holds the lock and `wait` is not set."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        log.info("no locks in this file system (%s): going on without", error.strerror)
    return True


@contextmanager
def held(path: Path) -> Iterator[io.FileIO]:
    """Open or create `path` to read and append, exclusively; remove it afterwards if empty."""
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    here = Path(tempfile.gettempdir()) / f"ems-{os.getuid()}-{name}.lock"
    with _held(here), _held(path) as handle:
        yield handle


@contextmanager
def alone(target: Path, last: Path) -> Iterator[bool]:
    """Keep other processes from writing `target`, whose file `last` is written last, during the
    block. Yield True if one wrote it while this one waited, or after the Snakemake that started
    this one made its plan: two runs that share a data folder plan the same downloads.
    """
    planned = float(os.environ.get(PLANNED, "inf"))
    before, place = _written(last), target.absolute()  # "." has no name
    with held(place.parent / f".{place.name}.lock"):
        now = _written(last) if target.exists() else 0.0
        exists = now > before or now >= planned
        if exists:
            log.info("%s: another process has just written it; kept", target)
        yield exists


def _written(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0


@contextmanager
def _held(path: Path) -> Iterator[io.FileIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        handle = path.open("a+b", buffering=0)
        if not _lock(handle):
            log.info("%s: another process is writing it; waiting", path)
            _lock(handle, wait=True)
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(handle.fileno())):
                break
        handle.close()  # the other process moved or removed the file
    with handle:
        try:
            yield handle
        finally:
            if not os.fstat(handle.fileno()).st_size:
                path.unlink(missing_ok=True)
