"""Log the progress of long work in one line: how far, how fast, and how long it still takes."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

log = logging.getLogger("ems")
Item = TypeVar("Item")


class Progress:
    """Logs a line at the start and then once per `interval` seconds; nothing if `what` is "".
    Without a `total` there is no share and no ETA. `before` units were done earlier: they count for
    the share, not for the rate. One of many `small` steps has neither the first nor the last line.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str,
        interval: float = 5.0,
        before: int = 0,
        small: bool = False,
    ) -> None:
        self.what, self.total, self.unit, self.interval = what, total, unit, interval
        self.done, self.before, self.started = before, before, time.monotonic()
        self.last, self.small = self.started, small
        if what and not small:
            log.info("%s: start%s", what, f", {total:,} {unit}" if total is not None else "")

    def add(self, count: int = 1, note: str | Callable[[], str] = "") -> None:
        """Count more units and log a line if one is due; only then is a function `note` called."""
        self.done += count
        now = time.monotonic()
        if self.what and now - self.last >= self.interval:
            self.last = now
            log.info("%s", self.line(now, note() if callable(note) else note))

    def over(
        self, items: Iterable[Item], size: Callable[[Item], int] = lambda item: 1
    ) -> Iterator[Item]:
        """Yield items, count each when it is done, and log the last line after them."""
        for item in items:
            yield item
            self.add(size(item))
        self.close()

    def line(self, now: float, note: str = "") -> str:
        rate = (self.done - self.before) / max(now - self.started, 1e-9)
        of, share = "", ""
        if self.total:
            of, share = f"/{self.total:,}", f" ({100 * self.done / self.total:.0f} %)"
        parts = [f"{self.what}: {self.done:,}{of} {self.unit}{share}"]
        parts.append(f"{rate:,.{1 if rate < 100 else 0}f} {self.unit}/s")
        if self.total and rate > 0:
            parts.append(f"ETA {clock((self.total - self.done) / rate)}")
        return ", ".join([*parts, note] if note else parts)

    def close(self, note: str = "") -> None:
        """Log the last line: the count, the mean rate and the time taken."""
        took = time.monotonic() - self.started
        if self.what and not self.small:
            log.info("%s; done in %s", self.line(time.monotonic(), note), clock(took))


def clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours}:{left:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
