"""Checksums of the shards in a long run: every byte is read once, before the first checkpoint.

A run is long if more than an hour is left by the median of its first steps (few of them compile,
save, or wait for a cold disk). Several processes verify a share each and end with the same error.
"""

import statistics
import time
from collections.abc import Callable, Iterable
from itertools import pairwise

from ems.errors import EmsError
from ems.progress import clock, log
from ems.shards.reader import PairStore, verify_shards
from ems.train.distributed import World

LONG = 3600.0  # seconds of training that are left
TIMED = 20  # steps that are timed


class Verification:
    """Verifies shards once per start, if more than LONG seconds of the run are left."""

    def __init__(
        self,
        stores: Iterable[PairStore],
        world: World,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shards = [shard for store in stores for shard in store.shards]
        self.world, self.now = world, now
        self.starts: list[float] = []  # of steps
        self.left, self.due = 0, True

    def step(self, left: int) -> None:
        """Time a step that starts, the first of `left`; verify once TIMED steps are timed."""
        if not self.due:
            return
        self.left = left
        if len(self.starts) == TIMED:
            self.settle()
        self.starts.append(self.now())

    def settle(self) -> None:
        """Verify now, if that is due and the run is long. Call it before anything is saved.

        Raises `EmsError` in all processes for a damaged shard.
        """
        if not self.due or not self.starts:
            return
        times = pairwise([*self.starts, self.now()])
        seconds = self.left * statistics.median(end - start for start, end in times)
        if self.world.any(seconds > LONG):
            log.info("%s of training are left: every byte of the shards is read", clock(seconds))
            fault = ""
            try:
                verify_shards(self.shards[self.world.rank :: self.world.size])
            except EmsError as error:
                fault = str(error)
            if fault := self.world.first(fault):
                raise EmsError(fault)
        self.due = False
