"""Worker processes that share the pieces of a file.

Notable choices:
- workers are spawned and make their tools themselves: a tokenizer that was used before a fork
  answers with other processes' lines, without an error;
- no worker outlives its parent, however that ends: each waits for the end of it in a thread;
- at most as many pieces are handed out as there are workers.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from itertools import islice
from pathlib import Path

from ems.errors import EmsError
from ems.text.pieces import Piece, Start, Work, do


def in_workers(start: Start, waiting: list[Piece], folder: Path, workers: int) -> Iterator[Piece]:
    """Do pieces in `workers` processes and yield each when it is done.

    Raises what a worker raises, and `EmsError` when one is killed; none is left behind.
    """
    others = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")
    count = min(workers, len(waiting))
    pool = ProcessPoolExecutor(count, mp_context=spawn, initializer=_enter)
    queue, running = iter(waiting), dict[Future, Piece]()
    try:
        while True:
            for piece in islice(queue, count - len(running)):
                running[pool.submit(_do_in_worker, start, piece, folder)] = piece
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                done.result()
                yield running.pop(done)
    except BrokenProcessPool:
        names = ", ".join(piece.name for piece in running.values())
        raise EmsError(
            f"{waiting[0].source}: a worker process was killed while it was at one of the pieces "
            f"{names}, most likely for want of memory; run again with fewer workers or more "
            f"memory (finished pieces are kept in {folder})"
        ) from None
    finally:
        if running:
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()
        pool.shutdown(cancel_futures=True)


def _enter() -> None:
    """What a worker does first: leave Ctrl-C to its parent, and go when that has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_go_with_parent, daemon=True).start()


def _go_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


@cache
def _started(start: Start) -> Work:
    """The tools of this worker, made at its first piece."""
    return start()


def _do_in_worker(start: Start, piece: Piece, folder: Path) -> None:
    do(_started(start), piece, folder, lambda lines: None)
