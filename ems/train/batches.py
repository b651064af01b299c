"""What a run is trained on, and its batches, drawn while the step before them is computed.

The draw is a pure function of (seed, step), so drawing ahead changes nothing but the time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ems.shards.reader import PairStore

T = TypeVar("T")
AHEAD = 3  # batches that are drawn before they are asked for, at most


@dataclass
class Data:
    """What a system is trained on, and the vocabulary that its shards were made with."""

    training: PairStore
    validation: PairStore | None
    vocabulary: Path

    def stores(self) -> dict[str, PairStore]:
        """The shards by role."""
        stores = {"train": self.training, "validation": self.validation}
        return {role: store for role, store in stores.items() if store is not None}


def drawn(draw: Callable[[int], T], steps: Iterable[int], ahead: int = AHEAD) -> Iterator[T]:
    """`draw(step)` of each step, drawn by a thread up to `ahead` steps early (0: without a thread).

    An error of `draw` is raised where its batch is asked for. Close the generator: the thread ends.
    """
    if not ahead:
        yield from map(draw, steps)
        return
    pool = ThreadPoolExecutor(1, "batches")
    waiting: deque[Future[T]] = deque()
    try:
        for step in steps:
            waiting.append(pool.submit(draw, step))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
