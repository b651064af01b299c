"""Worker processes: they share the items of a job, and none of them outlives its parent."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from ems.base.errors import mistake

Item = TypeVar("Item")


def in_workers(
    work: Callable[[Item], object],
    items: Iterable[Item],
    count: int,
    name: Callable[[Item], str],
    method: str = "spawn",
    ahead: int = 0,
) -> Iterator[tuple[Item, Future]]:
    """Yield each item with its finished future, in the order in which they end, at most `count` at
    once, while `ahead` more are made and wait. Raises `EmsError` if a worker was killed. Use
    `closing`: no worker is left running when the generator is closed. Workers are spawned and load
    their own tools: a tokenizer used before a fork would silently return lines of other processes.
    Workers that use no tools may be forked: they start at once.
    """
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context(method)
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_enter)
    queue, running = iter(items), dict[Future, Item]()
    try:
        while True:
            for item in islice(queue, count + ahead - len(running)):
                running[pool.submit(work, item)] = item
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                if isinstance(done.exception(), BrokenProcessPool):
                    raise BrokenProcessPool
                yield running.pop(done), done
    except BrokenProcessPool:
        raise mistake("worker killed", items=list(map(name, running.values()))) from None
    finally:
        if running:
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()
        pool.shutdown(cancel_futures=True)


def _enter() -> None:
    """Set up a worker: leave Ctrl-C to its parent, and exit when the parent has exited."""

    def watch() -> None:
        multiprocessing.parent_process().join()
        os.kill(os.getpid(), signal.SIGKILL)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
