"""Locks between the processes that download: so many connections to a host, one writer to a file.

Each fetch job is a process of its own, so the locks are `flock`s on files, which the kernel
releases however a process dies. The files of the connections stay: if one were removed while
another process has it open, two could hold the same slot. Where a file system has no locks,
downloads go on without a limit and log it.

A network file system may have no locks, or locks that other machines do not see, and does not say
which. So a file is locked twice, beside itself for other machines and in a temporary folder for the
processes of this one, and what must not be mixed has the name of its machine in it (`MACHINE`).
Without locks between machines a file may be downloaded twice, never by two into one.
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
from pathlib import Path

from ems.base.progress import log

PAUSE = 0.2  # seconds between two attempts to get a slot
PLANNED = "EMS_PLANNED"  # when the Snakemake that started this process read its plan
NOT_IN_NAMES = "[^A-Za-z0-9.-]"
MACHINE = f"on-{re.sub(NOT_IN_NAMES, '_', socket.gethostname())[:64]}"  # a part of file names


@contextmanager
def slot(host: str, limit: int, folder: Path | None) -> Iterator[None]:
    """Hold one of the `limit` connections to a host; wait until one is free.

    The locks lie in `folder` (None: a temporary folder of this machine and user).
    """
    folder = folder or Path(tempfile.gettempdir()) / f"ems-downloads-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(NOT_IN_NAMES, "_", host)[:200]
    paths = [folder / f"{name}.{number}.lock" for number in range(limit)]
    handle = _first_free(paths)
    if handle is None:
        log.info("waiting for one of the %s connections to %s", limit, host)
    while handle is None:
        time.sleep(PAUSE * random.uniform(0.5, 1.5))
        handle = _first_free(paths)
    with handle:
        yield


def _first_free(paths: list[Path]) -> io.FileIO | None:
    for path in paths:
        handle = path.open("a+b", buffering=0)
        if _lock(handle):
            return handle
        handle.close()
    return None


def _lock(handle: io.FileIO, wait: bool = False) -> bool:
    """Lock a file; return False if another process holds it and `wait` is not set."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        log.info("no locks in this file system (%s): going on without", error.strerror)
    return True


@contextmanager
def held(path: Path) -> Iterator[io.FileIO]:
    """Open `path` for reading, and for writing at its end, by this process alone; make it if it is
    absent.

    Waits while another process holds it. A file that is empty at the end is removed.
    """
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    here = Path(tempfile.gettempdir()) / f"ems-{os.getuid()}-{name}.lock"
    with _held(here), _held(path) as handle:
        yield handle


@contextmanager
def alone(target: Path, last: Path) -> Iterator[bool]:
    """Keep other processes from making `target` during the block; wait while one does.

    `last` is the file that is written last. Yields True if another process has made the target
    while this one waited, or since the Snakemake that started this one made its plan: two
    Snakemakes that share a data folder plan the same downloads.
    """
    planned = float(os.environ.get(PLANNED, "inf"))
    before, place = _written(last), target.absolute()  # "." has no name
    with held(place.parent / f".{place.name}.lock"):
        now = _written(last) if target.exists() else 0.0
        made = now > before or now >= planned
        if made:
            log.info("%s: another process has just made it; kept", target)
        yield made


def _written(path: Path) -> float:
    """Return when a file was written; 0 if it is absent."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


@contextmanager
def _held(path: Path) -> Iterator[io.FileIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _lock_path(path) as handle:
        try:
            yield handle
        finally:
            if not os.fstat(handle.fileno()).st_size:
                path.unlink(missing_ok=True)


def _lock_path(path: Path) -> io.FileIO:
    while True:
        handle = path.open("a+b", buffering=0)
        if not _lock(handle):
            log.info("%s: another process is writing it; waiting", path)
            _lock(handle, wait=True)
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(handle.fileno())):
                return handle
        handle.close()  # the other process moved or removed the file
