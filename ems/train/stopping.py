"""SIGTERM and SIGUSR1: finish the step, save, and exit so that the job is run again.

Slurm sends SIGTERM before it takes a node away (preemption, scancel, time limit), and SIGUSR1 as
long before the time limit as `--signal=USR1@120` says. SIGINT is not caught: the person at the
keyboard wants to stop at once.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ems.base.errors import REQUEUE, EmsError

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class StoppedError(BaseException):
    """A signal came within `at_once`; never leaves the training loop."""


class Stop:
    """A request to stop: `name` is that of the signal, or empty."""

    def __init__(self) -> None:
        self.name = ""
        self._at_once = False

    @contextmanager
    def heeded(self) -> Iterator["Stop"]:
        """Listen to the signals within this block."""
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
        """Raise `StoppedError` within this block, whose work can be done again, at a signal."""
        self._at_once = True
        try:
            if self.name:
                raise StoppedError
            yield
        finally:
            self._at_once = False

    def error(self, step: int) -> EmsError:
        """Return the error that ends the run, once step `step` is saved."""
        return EmsError(
            f"stopped by {self.name} after step {step:,}, which is saved; the same command goes on "
            f"from there (exit status {REQUEUE})",
            REQUEUE,
        )
