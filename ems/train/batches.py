"""Training data, and batches that a thread draws while the step before them is computed.

A batch is a function of (seed, step), so drawing ahead changes nothing but the time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ems.shards.reader import PairStore

T = TypeVar("T")
AHEAD = 3  # batches drawn before they are needed, at most


@dataclass
class Data:
    """The pairs of a training run, and the vocabulary that their shards were made with."""

    training: PairStore
    validation: PairStore | None
    vocabulary: Path

    def stores(self) -> dict[str, PairStore]:
        """Return the shards by role."""
        held_out = {} if self.validation is None else {"validation": self.validation}
        return {"train": self.training, **held_out}


def drawn(draw: Callable[[int], T], steps: Iterable[int], ahead: int = AHEAD) -> Iterator[T]:
    """Yield `draw(step)` of each step; a thread draws up to `ahead` steps early (0: no thread).

    An error of `draw` is raised at its step. Closing the generator ends the thread.
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
