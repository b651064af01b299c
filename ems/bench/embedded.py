"""Embeddings of hundreds of thousands of sentences, encoded in parts.

Up to LIMIT bytes they are in memory; more of them lie memory-mapped in a file beside the scores.
The file has no name, so nothing is left of it whatever ends the process, and its space is claimed
at once, so that a full disk is an error and not a crash later.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

from ems.base.errors import EmsError
from ems.bench.task import Task

PART = 1 << 15  # sentences encoded at once
LIMIT = 1 << 30  # bytes; 200,000 sentences of 1,024 values stay in memory


def embedded(
    task: Task, lines: list[str], language: str, where: str, normalise: bool = True
) -> np.ndarray:
    """Return embeddings float32[len(lines), d], in memory or mapped, of length 1 or as they are.

    Raises `EmsError` as `Task.vectors` and `Task.features` do, and for a disk without room.
    """
    encode = task.vectors if normalise else task.features
    vectors = None
    for start in range(0, len(lines), PART):
        beyond = f"{where}, after {start:,} sentences" if start else where
        part = encode(lines[start : start + PART], language, beyond)
        if vectors is None:
            vectors = empty((len(lines), part.shape[1]), task.scratch)
        vectors[start : start + len(part)] = part
    return vectors


def empty(shape: tuple[int, int], scratch: Path) -> np.ndarray:
    """Return float32 of a shape, in memory, or above LIMIT bytes in a file in `scratch`."""
    size = 4 * shape[0] * shape[1]
    if size <= LIMIT:
        return np.empty(shape, np.float32)
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=scratch) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, np.float32, "w+", shape=shape)
    except OSError as error:
        raise EmsError(
            f"{scratch}: no room for {size:,} bytes of embeddings ({error.strerror or error}); "
            "free some space there, or put results/ on another disk"
        ) from error
