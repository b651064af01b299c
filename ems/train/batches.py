"""Training data, and batches that a thread draws while the step before them is computed.

A batch is a function of (seed, step), so drawing ahead changes nothing but the time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ems.base.errors import EmsError
from ems.model.objectives.system import Parts
from ems.shards.documents import DocumentStore, MinedStore
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
    settings: Parts,
    languages: list[str],
    index: dict[str, list[Path]],
    vocabulary: Path,
    mined: Path | None = None,
) -> Data:
    """Open the shards of an index, role -> folders, that a system is trained and validated on, and
    the pairs that were `mined` in them.

    Raises `EmsError` when there are none to train on.
    """
    objectives, limit = settings.objectives, settings.model.max_tokens
    share = settings.train.corpus_share
    held = validation_pairs(settings, languages, index)
    if bool(objectives.coherence.weight) != (mined is not None):
        found = "found none" if mined is None else f"found {mined}"
        expected = "mined pairs, for" if mined is None else "no mined pairs without"
        raise EmsError(f"--mined: expected {expected} objectives.coherence, {found}")
    if not objectives.documents:
        folders = shards_of(index[TRAIN], languages)
        return Data(PairStore(folders, languages, limit, share), held, vocabulary)
    folders = shards_of(index[TRAIN], languages, 1)
    if mined:
        own = objectives.coherence
        store = MinedStore(mined, folders, languages, limit, own.k, own.target)
        return Data(store, held, vocabulary)
    sizes = languages, limit, objectives.context.k
    others = shards_of(index[VALIDATION], languages, 1)
    held_out = DocumentStore(others, *sizes) if others else None
    return Data(DocumentStore(folders, *sizes, share), held, vocabulary, held_out)


def mined_documents(
    settings: Parts, languages: list[str], index: dict[str, list[Path]]
) -> DocumentStore:
    """Open the documents of an index that pairs are mined in. Raises `EmsError` for none."""
    folders = shards_of(index[TRAIN], languages, 1)
    k = settings.objectives.coherence.k
    return DocumentStore(folders, languages, settings.model.max_tokens, k)


def validation_pairs(
    settings: Parts, languages: list[str], index: dict[str, list[Path]]
) -> PairStore | None:
    """Open the pairs of an index to validate on; None where there are none."""
    folders = shards_of(index[VALIDATION], languages)
    return PairStore(folders, languages, settings.model.max_tokens) if folders else None


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
