"""Worker processes that share a list of tasks.

Workers are spawned and make their tools themselves: a tokenizer that was used before a fork answers
with other processes' lines, without an error. No worker outlives its parent, however that ends.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, TypeVar

Task = TypeVar("Task")


class WorkerKilledError(Exception):
    """A worker process was killed. Its arguments are the tasks that the workers had."""


def in_workers(work: Callable[[Task], Any], tasks: list[Task], workers: int) -> Iterator[Task]:
    """Do `work(task)` for all tasks in `workers` processes and yield each task when it is done.

    `work` is pickled. Raises what a worker raises, and `WorkerKilledError` when one is killed;
    none is left behind.
    """
    others = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")
    count = min(workers, len(tasks))  # also the most tasks that are handed out at once
    pool = ProcessPoolExecutor(count, mp_context=spawn, initializer=_enter)
    queue, running = iter(tasks), dict[Future, Task]()
    try:
        while True:
            for task in islice(queue, count - len(running)):
                running[pool.submit(work, task)] = task
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                done.result()
                yield running.pop(done)
    except BrokenProcessPool:
        raise WorkerKilledError(*running.values()) from None
    finally:
        if running:
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()
        pool.shutdown(cancel_futures=True)


def _enter() -> None:
    """Set up a worker: leave Ctrl-C to its parent, and end when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)
