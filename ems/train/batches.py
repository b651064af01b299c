"""Training data, and batches that a thread draws while the step before them is computed.

A batch is a function of (seed, step), so drawing ahead changes nothing but the time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ems.objectives.system import Parts
from ems.shards.documents import DocumentStore
from ems.shards.index import TRAIN, shards_of
from ems.shards.reader import PairStore

VALIDATION = "validation"  # the role of shards besides TRAIN
T = TypeVar("T")
AHEAD = 3  # batches drawn before they are needed, at most


@dataclass
class Data:
    """The pairs of a training run, and the vocabulary that their shards were made with.

    A training on documents has documents to validate on, in `held_out`, besides pairs.
    """

    training: PairStore
    validation: PairStore | None
    vocabulary: Path
    held_out: PairStore | None = None

    def stores(self) -> dict[str, PairStore]:
        """Return the shards by role."""
        roles = {"train": self.training, "validation": self.validation, "held out": self.held_out}
        return {role: store for role, store in roles.items() if store is not None}

    @property
    def validated(self) -> list[PairStore]:
        """The shards to validate on."""
        return [store for role, store in self.stores().items() if role != "train"]


def training_data(
    settings: Parts, languages: list[str], index: dict[str, list[Path]], vocabulary: Path
) -> Data:
    """Open the shards of an index, role -> folders, that a system is trained and validated on.

    Raises `EmsError` when there are none to train on.
    """
    limit, share = settings.model.max_tokens, settings.train.corpus_share
    pairs = {role: shards_of(folders, languages) for role, folders in index.items()}
    held = PairStore(pairs[VALIDATION], languages, limit) if pairs[VALIDATION] else None
    if not settings.objectives.documents:
        return Data(PairStore(pairs[TRAIN], languages, limit, share), held, vocabulary)
    texts = {role: shards_of(folders, languages, 1) for role, folders in index.items()}
    sizes = languages, limit, settings.objectives.context.k
    held_out = DocumentStore(texts[VALIDATION], *sizes) if texts[VALIDATION] else None
    return Data(DocumentStore(texts[TRAIN], *sizes, share), held, vocabulary, held_out)


def drawn(draw: Callable[[int], T], steps: Iterable[int], ahead: int = AHEAD) -> Iterator[T]:
    """Yield `draw(step)` of each step; a thread draws up to `ahead` steps early (0: no thread).

    An error of `draw` is raised at its step. Closing the generator ends the thread.
    """
    if not ahead:
        yield from map(draw, steps)
        return
    pool = ThreadPoolExecutor(1, "batches")
    waiting: deque[Future[T]] = deque()
    try:
        for step in steps:
            waiting.append(pool.submit(draw, step))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
