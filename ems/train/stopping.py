"""SIGTERM and SIGUSR1: finish the step, save, and exit so that the job is run again.

Slurm sends SIGTERM before it takes a node away (preemption, scancel, time limit), and SIGUSR1 as
long before the time limit as `--signal=USR1@120` says. Both mean: save now.

Notable choices:
- a signal only sets a flag, which the loop reads after each step, so a step is whole or was not;
- validation may take longer than the warning: within `at_once` the signal ends it, and it is done
  again after the run is resumed;
- SIGINT stays what it is: the person at the keyboard wants to stop, not to wait.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ems.errors import REQUEUE, EmsError

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class StoppedError(BaseException):
    """A signal came within `at_once`; never leaves the loop."""


class Stop:
    """Whether a signal has asked to stop; `name` is that of the signal."""

    def __init__(self) -> None:
        self.name = ""
        self._at_once = False

    @contextmanager
    def heeded(self) -> Iterator["Stop"]:
        """Listen within this block; before and after it the signals do what they did."""
        before = {number: signal.signal(number, self._received) for number in SIGNALS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _received(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        if self._at_once:
            raise StoppedError

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Work that can be thrown away: a signal leaves it by `StoppedError`."""
        self._at_once = True
        try:
            if self.name:
                raise StoppedError
            yield
        finally:
            self._at_once = False

    def error(self, step: int) -> EmsError:
        """What the run ends with, once step `step` is saved."""
        return EmsError(
            f"stopped by {self.name} after step {step:,}, which is saved; the same command goes on "
            f"from there (exit status {REQUEUE})",
            REQUEUE,
        )
