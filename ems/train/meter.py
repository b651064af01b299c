"""How fast training is: pairs/s, tokens/s, MFU, and the share of time that it waits for data."""

import time
from dataclasses import dataclass, field


@dataclass
class Meter:
    """Counts what was done since the last `read`; `peak` is the device's FLOP/s, if known. Of
    `processes` that share each step alike, one counts and the rates are those of all.
    """

    peak: float | None = None
    processes: int = 1
    pairs: int = 0
    tokens: int = 0
    flops: int = 0
    waited: float = 0.0
    since: float = field(default_factory=time.monotonic)

    def add(self, pairs: int, tokens: int, flops: int, waited: float) -> None:
        """Count a step: its sizes, and the seconds it waited for its batch."""
        self.pairs += pairs
        self.tokens += tokens
        self.flops += flops
        self.waited += waited

    def restart(self) -> None:
        """Count from now on."""
        self.read(time.monotonic())

    def read(self, now: float) -> str:
        """The rates since the last reading, as words; `now` is of `time.monotonic`."""
        seconds = max(now - self.since, 1e-9)
        used = f"{100 * self.flops / seconds / self.peak:.1f} %" if self.peak else "-"
        each = seconds / self.processes
        words = (
            f"{self.pairs / each:,.0f} pairs/s, {self.tokens / each:,.0f} tokens/s, "
            f"MFU {used}, {100 * self.waited / seconds:.1f} % waiting for data"
        )
        self.pairs = self.tokens = self.flops = 0
        self.waited, self.since = 0.0, now
        return words
