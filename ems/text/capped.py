"""Some of many items, drawn while they stream by."""

import random
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def capped(items: Iterable[T], total: int, keep: int, seed: str) -> Iterator[T]:
    """Draw exactly `keep` of `total` items without replacement, in their order.

    Selection sampling (Knuth, TAOCP vol. 2, algorithm S): seeded and streaming.
    """
    draw, left, needed = random.Random(seed), total, keep
    for item in items:
        if draw.random() * left < needed:
            needed -= 1
            yield item
        left -= 1
