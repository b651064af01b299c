"""Batches drawn ahead by a thread, while the step before them is computed.

The draw is a pure function of (seed, step), so drawing ahead changes nothing but the time.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
AHEAD = 2  # batches that wait at most


class Prefetched(Generic[T]):
    """The values of `make(step)` for steps [first, last), made by a thread at most AHEAD ahead.

    An error of `make` is raised where its value is asked for. Close it, or use it with `with`: the
    thread ends and nothing is left running.
    """

    def __init__(self, make: Callable[[int], T], first: int, last: int) -> None:
        self._made: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(AHEAD)
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(make, first, last), name="batches", daemon=True
        )
        self._thread.start()

    def _run(self, make: Callable[[int], T], first: int, last: int) -> None:
        for step in range(first, last):
            try:
                made = (make(step), None)
            except BaseException as error:  # the main thread's to raise
                made = (None, error)
            if not self._put(made) or made[1]:
                return

    def _put(self, made: tuple[T | None, BaseException | None]) -> bool:
        while not self._closed.is_set():
            try:
                self._made.put(made, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def next(self) -> T:
        """The value of the next step. Raises what `make` raised."""
        value, error = self._made.get()
        if error:
            raise error
        return value

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def __enter__(self) -> "Prefetched[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Made(Generic[T]):
    """The same without a thread: each value is made when it is asked for."""

    def __init__(self, make: Callable[[int], T], first: int, last: int) -> None:
        self._values: Iterator[T] = (make(step) for step in range(first, last))

    def next(self) -> T:
        """The value of the next step."""
        return next(self._values)

    def __enter__(self) -> "Made[T]":
        return self

    def __exit__(self, *_: object) -> None:
        pass
