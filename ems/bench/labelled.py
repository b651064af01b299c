"""Documents with a class, of every benchmark that trains a classifier on embeddings of them.

How the parts of a benchmark are read, and where their sizes come from, says the `KIND` of its
`score` module.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ems.bench.settings import ProbeSettings
from ems.bench.task import Task
from ems.benchmarks import module
from ems.errors import EmsError
from ems.evalsets.documents import Document

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Place:
    """One part of a benchmark: of a language (its code in the set), a domain ('' for none), and
    "train", "valid" or "test".
    """

    code: str
    domain: str
    part: str


@dataclass(frozen=True)
class Examples:
    """Texts (their lines are kept) with the number of the class of each; `where`: of which file."""

    where: str
    texts: list[str]
    labels: list[int]


@dataclass(frozen=True)
class Kind:
    """What there is of a benchmark: its classes, how a part is read, its domains, and whether
    English is the source only (then it is tested on too).
    """

    classes: tuple[str, ...]
    read: Callable[["Reader", Place], tuple[Path, Iterable[Document]]]
    domains: tuple[str, ...] = ("",)
    from_english: bool = False


class Reader:
    """Reads the parts of one benchmark."""

    def __init__(self, task: Task) -> None:
        self.folder, self.seed = task.folder, task.experiment.seed
        self.kind: Kind = module(task.benchmark, "score").KIND
        self.settings: ProbeSettings = task.experiment.probes[task.benchmark]
        self.drawn: dict[str, dict[str, list[Document]]] = {}  # by language and part, once drawn

    def examples(self, place: Place) -> Examples:
        """One part. Raises `EmsError` that names the file that is malformed or lacks a class."""
        path, documents = self.kind.read(self, place)
        found = list(documents)
        texts = [self._text(document) for document in found]
        labels = [self.kind.classes.index(document.label) for document in found]
        for number, name in enumerate(self.kind.classes):
            if number not in labels:
                raise EmsError(
                    f"{path}: none of the {len(found):,} examples of the part {place.part} is of "
                    f"the class {name}; expected some of each of {', '.join(self.kind.classes)}: "
                    "fetch the benchmark again"
                )
        return Examples(str(path), texts, labels)

    def _text(self, document: Document) -> str:
        """The title, where it is wanted or there is nothing else, and the text, line by line."""
        titled = getattr(self.settings, "title", False) or not document.text
        return "\n".join(filter(None, (titled and document.title, document.text)))


def drawn(documents: Iterable[Document], count: int, seed: str, path: Path) -> list[Document]:
    """`count` documents in random order, each as likely: a reservoir, so that none is kept long.

    Raises `EmsError` when there are fewer.
    """
    chance, left = random.Random(seed), iter(documents)
    kept = list(islice(left, count))
    if len(kept) < count:
        raise EmsError(
            f"{path}: expected at least {count:,} documents to draw from, found {len(kept):,}; "
            "lower the sizes under `probes` of the experiment"
        )
    for seen, document in enumerate(left, start=count + 1):
        place = chance.randrange(seen)
        if place < count:
            kept[place] = document
    chance.shuffle(kept)
    return kept
