"""Group texts into batches that amortise a call, bounded in number and in characters.

Sentences are short, but a corpus may have a thousand lines of a megabyte in a row.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

BATCH = 2000  # texts or pairs handled at once: small in memory, large enough to amortise a call
CHARACTERS = 1 << 21  # or bytes, in a batch: about 10 MB in memory with all results

Item = TypeVar("Item")


def batched(
    items: Iterable[Item],
    length: Callable[[Item], int],
    size: int = BATCH,
    characters: int | None = None,
) -> Iterator[list[Item]]:
    """Yield lists of up to `size` items; a list ends early once it is `characters` (CHARACTERS)
    long.
    """
    limit = characters or CHARACTERS
    batch: list[Item] = []
    held = 0
    for item in items:
        batch.append(item)
        held += length(item)
        if len(batch) == size or held >= limit:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
