"""Shards that change during a run: their sizes are looked at again before anything is saved. In a
long run every byte is read once, before the first checkpoint, and compared with the checksums.

A run is long if more than an hour is left by the median of its first steps (few of them compile,
save, or wait for a cold disk). Several processes verify a share each and end with the same error.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from ems.base.errors import EmsError
from ems.base.progress import clock, log
from ems.shards.reader import PairStore
from ems.shards.shard import Shard, check_sizes, verify_shards
from ems.train.distributed import World

LONG = 3600.0  # seconds of training that are left
TIMED = 20  # steps that are timed


class Verification:
    """Verifies shards once per start, if more than LONG seconds of the run are left, and their
    sizes whenever something is saved.
    """

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
        """Verify now, as far as that is due. Call it before anything is saved.

        Raises `EmsError` in all processes for a damaged shard.
        """
        self._share(check_sizes)
        self._settle_bytes()

    def _settle_bytes(self) -> None:
        """Read every byte now, if that is due and the run is long."""
        if not self.due or not self.starts:
            return
        times = pairwise([*self.starts, self.now()])
        seconds = self.left * statistics.median(end - start for start, end in times)
        if self.world.any(seconds > LONG):
            log.info("%s of training are left: every byte of the shards is read", clock(seconds))
            self._share(verify_shards)
        self.due = False

    def _share(self, check: Callable[[Sequence[Shard]], None]) -> None:
        """Check a share of the shards in each process. Raises the first's `EmsError` in all."""
        fault = ""
        try:
            check(self.shards[self.world.rank :: self.world.size])
        except EmsError as error:
            fault = str(error)
        if fault := self.world.first(fault):
            raise EmsError(fault)
