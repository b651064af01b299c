"""Locks between the processes that download: so many connections to a host, one writer to a file.

Notable choices:
- each fetch job is a process of its own, so the limit is held by `flock` on files: the kernel
  releases a lock when its process dies, however it dies;
- a lock file stays, since removing one that another process has open would give two the same slot;
- some file systems of clusters have no locks: then downloads go on without a limit, and say so.
"""

import fcntl
import io
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ems.progress import log

LOOK = 0.2  # seconds between two looks for a free slot


def default_folder() -> Path:
    """Where the locks lie unless a setting says so: this machine's, this user's."""
    return Path(tempfile.gettempdir()) / f"ems-downloads-{os.getuid()}"


@contextmanager
def slot(host: str, limit: int, folder: Path) -> Iterator[None]:
    """Hold one of the `limit` connections to a host; wait until one is free."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9.-]", "_", host)[:200]
    handle, told = _free(folder, name, limit), False
    while handle is None:
        if not told:
            log.info("waiting for one of the %s connections to %s", limit, host)
        told = True
        time.sleep(LOOK * random.uniform(0.5, 1.5))
        handle = _free(folder, name, limit)
    with handle:
        yield


def _free(folder: Path, name: str, limit: int) -> io.FileIO | None:
    for number in range(limit):
        handle = _open(folder / f"{name}.{number}.lock")
        if _lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return handle
        handle.close()
    return None


def _open(path: Path) -> io.FileIO:
    """For reading and writing from the start, made if it is not there."""
    return io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")


def _lock(handle: io.FileIO, how: int) -> bool:
    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        return False
    except OSError as error:
        log.info("no locks in this file system (%s): going on without", error.strerror)
    return True


@contextmanager
def held(path: Path) -> Iterator[io.FileIO]:
    """`path`, made if it is not there, open for reading and writing by this process alone.

    Waits for another process that holds it. An empty file is removed in the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _own(path)
    with handle:
        try:
            yield handle
        finally:
            if not os.fstat(handle.fileno()).st_size:
                path.unlink(missing_ok=True)


def _own(path: Path) -> io.FileIO:
    while True:
        handle = _open(path)
        if not _lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
            log.info("%s: another process is writing it; waiting", path)
            _lock(handle, fcntl.LOCK_EX)
        if path.exists() and os.path.samestat(path.stat(), os.fstat(handle.fileno())):
            return handle
        handle.close()  # the other one has moved or removed it
