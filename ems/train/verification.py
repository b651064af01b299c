"""Checksums of the shards before a long run: every byte is read before the first checkpoint.

Notable choices:
- only when more than an hour is left, as the median of the first steps says: few of them compile,
  save, or wait for a cold disk;
- before any checkpoint, so that no run is resumed from weights that saw damaged text;
- several processes verify a share each, and all of them end with the first error.
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
    """Verifies shards once a start, if more than LONG seconds are left of the run."""

    def __init__(
        self,
        stores: Iterable[PairStore],
        world: World,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shards = [shard for store in stores for shard in store.shards]
        self.world, self.now = world, now
        self.begins: list[float] = []  # of the steps
        self.left, self.due = 0, True

    def step(self, left: int) -> None:
        """Time a step that begins, the first of `left`; verify once TIMED of them are timed."""
        if not self.due:
            return
        self.left = left
        if len(self.begins) == TIMED:
            self.settle()
        self.begins.append(self.now())

    def settle(self) -> None:
        """Verify, unless that was done or little is left. Call it before anything is saved. Raises
        `EmsError` in all processes.
        """
        if not self.due or not self.begins:
            return
        times = pairwise([*self.begins, self.now()])
        seconds = self.left * statistics.median(end - begin for begin, end in times)
        if self.world.any(seconds > LONG):
            log.info("%s of training are left: every byte of the shards is read", clock(seconds))
            self._verify()
        self.due = False

    def _verify(self) -> None:
        """Verify this process's share of the shards."""
        own = self.shards[self.world.rank :: self.world.size]
        fault = ""
        try:
            verify_shards(own)
        except EmsError as error:
            fault = str(error)
        if fault := self.world.first(fault):
            raise EmsError(fault)
