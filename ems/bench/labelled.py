"""Documents with a class, of every benchmark that trains a classifier on embeddings of them.

Where the sizes of EMS v2 V-E and V-F come from, and what the papers leave open:
- MLDoc: train.1000, dev and test as published; the paragraphs without the headline, as its script;
- CLS (Amazon version 1): train; the *source* language's test part is its validation (2,000), since
  nothing else of it has labels, and the target's test part is the test;
- MARC (version 2): 2,000 reviews drawn of the source's 160,000, half of each class as dev and test
  are; dev and test as published without three stars (4,000 each);
- RCV2 titles (monolingual paper, 4.3): how many is not said. Drawn here as many as MLDoc has, in
  the classes' own proportion;
- SIB-200 and Amazon counterfactual: as published, English learnt, every language tested.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import ems.evalsets.cls as cls  # one by one: the fetchers beside them are no part of this
import ems.evalsets.counterfactual as counterfactual
import ems.evalsets.marc as marc
import ems.evalsets.mldoc as mldoc
import ems.evalsets.rcv2 as rcv2
import ems.evalsets.reuters as reuters
import ems.evalsets.sib200 as sib200
from ems.bench.task import Task
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
    """What there is of a benchmark: its classes, its domains, whether English is the source only
    (then it is tested on too), and how a part is read.
    """

    classes: tuple[str, ...]
    read: Callable[["Reader", Place], tuple[Path, Iterable[Document]]]
    domains: tuple[str, ...] = ("",)
    from_english: bool = False
    parallel: bool = False  # the same sentences in every language


class Reader:
    """Reads the parts of one benchmark."""

    def __init__(self, task: Task) -> None:
        self.folder, self.seed = task.folder, task.experiment.seed
        self.kind: Kind = KINDS[task.benchmark]
        self.settings: dict[str, Any] = task.experiment.probes[task.benchmark]
        self.titles: dict[str, dict[str, list[Document]]] = {}  # drawn of RCV2, by language, part

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
        titled = self.settings.get("title", False) or not document.text
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


def _read_mldoc(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    names = {"train": f"train.{reader.settings['train']}", "valid": "dev", "test": "test"}
    split = names[place.part]
    path = reader.folder / mldoc.file_name(place.code, split)
    return path, mldoc.read_split(reader.folder, place.code, split)


def _read_cls(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    split = "train" if place.part == "train" else "test"
    path = reader.folder / cls.file_name(place.code, place.domain, split)
    return path, cls.read_split(reader.folder, place.code, place.domain, split)


def _read_marc(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    split = {"valid": "dev"}.get(place.part, place.part)
    path = reader.folder / marc.file_name(place.code, split)
    classes = reader.kind.classes
    if split != "train":
        return path, _of(marc.read_split(reader.folder, place.code, split), classes)
    count, found = reader.settings["train"], []
    for number, name in enumerate(classes):
        share = count * (number + 1) // len(classes) - count * number // len(classes)
        some = _of(marc.read_split(reader.folder, place.code, split), (name,))
        found += drawn(some, share, f"{reader.seed} marc {place.code} {name}", path)
    return path, found


def _of(documents: Iterable[Document], classes: tuple[str, ...]) -> Iterator[Document]:
    return (document for document in documents if document.label in classes)


def _read_rcv2(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    path = reader.folder / reuters.corpus_folder(place.code)
    if place.code not in reader.titles:
        sizes = [reader.settings[part] for part in PARTS]
        titles = rcv2.read_titles(reader.folder, place.code)
        every = iter(drawn(titles, sum(sizes), f"{reader.seed} rcv2 {place.code}", path))
        parts = {part: list(islice(every, size)) for part, size in zip(PARTS, sizes, strict=True)}
        reader.titles[place.code] = parts
    return path, reader.titles[place.code][place.part]


def _read_sib200(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    split = {"valid": "dev"}.get(place.part, place.part)
    path = reader.folder / f"{place.code}/{split}.tsv"
    return path, (Document(label, "", text) for label, text in sib200.read_split(path))


def _read_counterfactual(reader: Reader, place: Place) -> tuple[Path, Iterable[Document]]:
    path = reader.folder / counterfactual.file_name(place.code, place.part)
    return path, counterfactual.read_file(path)


KINDS = {
    "mldoc": Kind(reuters.LABELS, _read_mldoc),
    "cls": Kind(cls.LABELS, _read_cls, domains=cls.DOMAINS),
    "marc": Kind(("negative", "positive"), _read_marc),
    "rcv2": Kind(reuters.LABELS, _read_rcv2),
    "sib200": Kind(sib200.LABELS, _read_sib200, from_english=True, parallel=True),
    "counterfactual": Kind(counterfactual.LABELS, _read_counterfactual, from_english=True),
}
