"""What is wrong with the numbers of a shard's file, in words; "" if nothing is.

Wrong ids or offsets end in an error of the model or, worse, in batches of other sentences, and the
size of a file says nothing of them. Each file is read once, in blocks, before it is mapped: the
pages of a map would count as memory of the process. `ems verify` checks the checksums too.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

BLOCK = 1 << 17  # numbers read at once: they stay in the processor's cache


def ids_fault(path: Path, pieces: int, offsets: np.ndarray) -> str:
    """Check that all token ids are below `pieces`; offsets int64[pairs + 1] tell the row."""
    for start, block in _blocks(path, np.uint16):
        if block.max() >= pieces:
            at = int(np.argmax(block >= pieces))
            row = int(np.searchsorted(offsets, start + at, side="right")) - 1
            return f"row {row:,}: expected token ids below {pieces:,}, found {block[at]:,}"
    return ""


def offsets_fault(path: Path, tokens: int) -> str:
    """Check that offsets begin at 0, rise with each sentence and end at the number of `tokens`."""
    last = 0
    for start, block in _blocks(path, np.int64):
        if start == 0 and block[0] != 0:
            return f"expected 0 as its first offset, found {block[0]:,}"
        begins = np.concatenate([[last if start else -1], block[:-1]])
        wrong = (block <= begins) | (block > tokens)
        if wrong.any():
            at = int(np.argmax(wrong))
            return (
                f"row {start + at - 1:,} begins at {begins[at]:,}: expected its end above that and "
                f"up to {tokens:,}, found {block[at]:,}"
            )
        last = int(block[-1])
    if last != tokens:
        return f"expected {tokens:,}, the number of ids, as its last offset, found {last:,}"
    return ""


def lines_fault(path: Path) -> str:
    """Check that all lines of the corpus are counted from 1."""
    for start, block in _blocks(path, np.int64):
        if block.min() < 1:
            at = int(np.argmax(block < 1))
            return f"row {start + at:,}: expected a line of the corpus, from 1, found {block[at]:,}"
    return ""


def _blocks(path: Path, dtype: type) -> Iterator[tuple[int, np.ndarray]]:
    """Read the numbers of a file into one buffer; yield each block with the place of its first."""
    buffer, start = np.empty(BLOCK, dtype), 0
    with open(path, "rb") as handle:
        while size := handle.readinto(buffer.data):
            block = buffer[: size // buffer.itemsize]
            yield start, block
            start += len(block)
