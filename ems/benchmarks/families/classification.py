"""Zero-shot classification: trained in one language, tested in another (EMS v2 V-E, V-F).

A network (`ems.bench.probe`) on frozen embeddings is trained on the source language's train part;
the source language's validation part chooses the epoch, and the weight decay if several are given.
Only the test part of the target is read, so en-de and en-fr are one classifier tested twice.

The `data` module of a benchmark defines `CLASSES` and `read_part`. Optional are `DOMAINS`,
`FROM_ENGLISH` (English, or the probe's `source`, is the only source and also a target) and `DRAWN`:
"train" draws the train part with an equal share of each class, "parts" draws all parts from one
pool. A document with more tokens than `documents.split` is the mean of the embeddings of its
sentences; EMS v2 does not specify this.
"""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice, product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from ems.base.errors import mistake
from ems.base.progress import Progress
from ems.bench.probe import Classifier, Pool, Run, train
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.task import LineEncoder, Task
from ems.config.benchmarks import ProbeSettings
from ems.config.plugins import module
from ems.corpora.evalsets.formats import Document, Subset, sentences

MAJORITY = "most frequent class"
MOST_BYTES = 1 << 30  # training embeddings in memory at a time
PARTS = ("train", "valid", "test")
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")


@dataclass(frozen=True)
class Examples:
    """Texts (with line breaks), the index of the class of each, and their file."""

    file: str
    texts: list[str]
    labels: list[int]


class Reader:
    def __init__(self, task: Task) -> None:
        self.name, self.folder, self.seed = task.benchmark, task.folder, task.experiment.seed
        self.data = module(task.benchmark, "data")
        self.settings: ProbeSettings = task.experiment.probes[task.benchmark]
        self.parts: dict[tuple[str, str], list[Document]] = {}  # drawn parts by (language, part)

    def examples(self, place: Subset) -> Examples:
        """Read a part; raise `EmsError` if its file is malformed or lacks a class."""
        path, documents = self._read(place)
        drawing = getattr(self.data, "DRAWN", "")
        if drawing == "parts":
            documents = self._of_pool(place, path, documents)
        elif drawing == place.part == "train":
            documents = self._of_each_class(place, path)
        texts, labels, titled = [], [], getattr(self.settings, "title", False)
        for document in documents:
            if document.label in self.data.CLASSES:
                labels.append(self.data.CLASSES.index(document.label))
                title = (titled or not document.text) and document.title
                texts.append("\n".join(filter(None, (title, document.text))))
        subject = f"examples of the part {place.part} is of the class"
        check_classes(labels, self.data.CLASSES, str(path), subject)
        return Examples(str(path), texts, labels)

    def _read(self, place: Subset) -> tuple[Path, Iterable[Document]]:
        return self.data.read_part(self.folder, place, getattr(self.settings, "train", None))

    def _of_pool(self, place: Subset, path: Path, documents: Iterable[Document]) -> list[Document]:
        """Draw all parts of a language at once, without balancing the classes."""
        if (place.code, place.part) not in self.parts:
            sizes = [getattr(self.settings, part) for part in PARTS]
            pool = iter(drawn(documents, sum(sizes), f"{self.seed} {self.name} {place.code}", path))
            for part, size in zip(PARTS, sizes, strict=True):
                self.parts[place.code, part] = list(islice(pool, size))
        return self.parts[place.code, place.part]

    def _of_each_class(self, place: Subset, path: Path) -> list[Document]:
        """Draw `train` documents (a setting), an equal share of each class."""
        count, classes, documents = self.settings.train, self.data.CLASSES, []
        for number, name in enumerate(classes):
            share = count * (number + 1) // len(classes) - count * number // len(classes)
            _, pool = self._read(place)
            of_class = (document for document in pool if document.label == name)
            seed = f"{self.seed} {self.name} {place.code} {name}"
            documents += drawn(of_class, share, seed, path)
        return documents


def check_classes(labels: list[int], classes: tuple[str, ...], file: str, subject: str) -> None:
    """Raise `EmsError` if a class has no example."""
    for number, name in enumerate(classes):
        if number not in labels:
            words = {"count": len(labels), "subject": subject, "name": name, "classes": classes}
            raise mistake("no example of a class", file=file, **words)


def drawn(documents: Iterable[Document], count: int, seed: str, path: Path) -> list[Document]:
    """Draw `count` documents in random order (reservoir); raise `EmsError` if there are fewer."""
    chance, left = random.Random(seed), iter(documents)
    kept = list(islice(left, count))
    if len(kept) < count:
        raise mistake("too few documents", path=path, count=count, kept=len(kept))
    for seen, document in enumerate(left, start=count + 1):
        place = chance.randrange(seen)
        if place < count:
            kept[place] = document
    chance.shuffle(kept)
    return kept


def token_counts(encoder: LineEncoder, lines: list[str], language: str) -> list[int]:
    """Count the tokens of each line, or the words if the encoder has no tokens. A word is a run of
    letters and digits, a character of an unspaced script, or a punctuation mark.
    """
    count = getattr(encoder, "token_counts", None)
    return count(lines, language) if count else [len(WORD.findall(line)) for line in lines]


def embed_documents(task: Task, texts: list[str], language: str, location: str) -> np.ndarray:
    """Return embeddings float32[N, d] of N texts, not normalised, as in LASER's MLDoc task. Raises
    `EmsError`, naming `location`, if an embedding is not finite.
    """
    pieces = split_long(task.encoder, texts, language, task.experiment.documents.split)
    lines = [line for document in pieces for line in document]
    vectors = task.features(lines, language, location)
    if len(lines) == len(texts):
        return vectors
    counts = [len(document) for document in pieces]
    starts = [0, *accumulate(counts)][:-1]
    sums = np.add.reduceat(vectors, starts, axis=0)  # [lines, d] -> [N, d]
    return sums / np.array(counts, np.float32)[:, None]


def split_long(encoder: LineEncoder, texts: list[str], language: str, most: int) -> list[list[str]]:
    """Return the lines of each text: sentences if it has over `most` (not 0) tokens, or itself."""
    whole = [" ".join(text.split()) for text in texts]
    counts = token_counts(encoder, whole, language) if most else [0] * len(whole)
    return [
        ([" ".join(part.split()) for part in sentences(text)] if count > most else []) or [line]
        for text, line, count in zip(texts, whole, counts, strict=True)
    ]


def score(task: Task) -> Result:
    """Return the accuracy of each direction, "en-de", or of each domain of it, "en-de books"."""
    reader, names = Reader(task), task.evalset.languages
    directions = _directions(task, reader)
    classifiers = _classifiers(task, reader, list(dict.fromkeys((s, d) for s, _, d in directions)))
    progress = Progress(f"{task.benchmark} {task.system}", len(directions), "directions")
    rows: list[Score] = []
    details = {}
    for target, domain in dict.fromkeys((t, d) for _, t, d in directions):  # each embedded once
        examples, vectors = _embedded(task, reader, Subset(target, domain, "test"))
        pool = Pool.from_vectors(torch.from_numpy(vectors))
        for source in (s for s, *place in directions if place == [target, domain]):
            place = (names[source], names[target], domain)
            rows += tested(classifiers[source, domain], pool, np.array(examples.labels), place)
            details[rows[-1].direction] = chosen(classifiers[source, domain])
            progress.add(1, f"{rows[-1].direction} {mean_accuracy(rows, rows[-1].direction):.1f}")
    progress.close(f"mean accuracy {mean_accuracy(rows):.1f}")
    return accuracies(task, rows, details)


def accuracies(task: Task, rows: list[Score], details: Mapping[str, Any]) -> Result:
    """Return the result of a classification benchmark; `details` are by direction."""
    languages = {task.evalset.languages[code]: spoken for code, spoken in task.languages.items()}
    parallel = task.record.parallel
    return Result("accuracy", rows, languages, "direction", parallel=parallel, details=details)


def mean_accuracy(rows: list[Score], direction: str = "") -> float:
    """Return the mean over seeds and directions, or over the seeds of one direction."""
    return mean(row.value for row in rows if not row.measure and direction in ("", row.direction))


def _directions(task: Task, reader: Reader) -> list[tuple[str, str, str]]:
    """Return (source, target, domain) of each direction. English (or the `source` of the settings)
    is one side, or with FROM_ENGLISH the only source.
    """
    source = getattr(reader.settings, "source", None) or ENGLISH
    first = [code for code in task.languages if task.evalset.languages[code] == source]
    others = [code for code in task.languages if code not in first]
    if not first or not others:
        known = ", ".join(task.languages.values()) or "none"
        raise mistake("no other language", task=task, known=known, source=source)
    pairs = [(first[0], other) for other in others]
    both_ways = getattr(reader.settings, "both_ways", False)
    if getattr(reader.data, "FROM_ENGLISH", False) and not both_ways:
        pairs = [(first[0], first[0]), *pairs]
    else:
        pairs = [way for pair in pairs for way in (pair, pair[::-1])]
    domains = getattr(reader.data, "DOMAINS", ("",))
    return [(*pair, domain) for pair in pairs for domain in domains]


def _embedded(task: Task, reader: Reader, place: Subset) -> tuple[Examples, np.ndarray]:
    examples = reader.examples(place)
    where = f"{task.benchmark} {place.code} {place.domain} {place.part}".replace("  ", " ")
    language = task.languages[place.code]
    vectors = embed_documents(task, examples.texts, language, f"{where} ({examples.file})")
    return examples, vectors


def _classifiers(
    task: Task, reader: Reader, sources: list[tuple[str, str]]
) -> dict[tuple[str, str], list[Classifier]]:
    """Train a classifier per (language, domain) and seed, in groups of up to MOST_BYTES."""
    classifiers: dict[tuple[str, str], list[Classifier]] = {}
    vectors, labels, parts = [], [], {}
    for source in sources:
        ranges = []
        for part in ("train", "valid"):
            examples, embedded = _embedded(task, reader, Subset(*source, part))
            ranges.append(range(len(labels), len(labels) + len(embedded)))
            vectors.append(embedded)
            labels += examples.labels
        parts[source] = tuple(ranges)
        if source == sources[-1] or sum(part.nbytes for part in vectors) >= MOST_BYTES:
            pool = Pool.from_vectors(torch.from_numpy(np.concatenate(vectors)))
            classifiers |= trained(task, pool, labels, parts, len(reader.data.CLASSES))
            vectors, labels, parts = [], [], {}
    return classifiers


def trained(
    task: Task, pool: Pool, labels: list[int], parts: dict[Any, tuple[range, range]], classes: int
) -> dict[Any, list[Classifier]]:
    """Train a classifier for each seed and entry of `parts` (training rows, validation rows). Of
    several weight decays, keep the best on validation, the first on ties.
    """
    settings = task.experiment.probes[task.benchmark]
    decays, seeds, own = settings.weight_decay, range(1, settings.seeds + 1), task.experiment.seed
    every = product(parts, seeds, decays)
    runs = {(key, seed, decay): Run((own, seed), *parts[key], decay) for key, seed, decay in every}
    what = f"{task.benchmark} {task.system}, train classifiers"
    targets = torch.tensor(labels, device=pool.device)
    done = train(pool, targets, classes, list(runs.values()), settings, what)
    by_name = dict(zip(runs, done, strict=True))

    def best(key: Any, seed: int) -> Classifier:
        return max((by_name[key, seed, decay] for decay in decays), key=lambda one: one.correct)

    return {key: [best(key, seed) for seed in seeds] for key in parts}


def tested(
    classifiers: list[Classifier], pool: Pool, labels: np.ndarray, place: tuple[str, str, str]
) -> list[Score]:
    """Return the accuracy of each seed's classifier on `pool`, then the share of the most frequent
    class. `place` is (source, target, domain).
    """
    source, target, domain = place
    rows = []
    for seed, classifier in enumerate(classifiers, start=1):
        hits = classifier.predict(pool, range(len(labels))) == labels
        rows.append(Score.from_hits(source, target, hits, split=domain, seed=seed))
    return [*rows, majority(labels, place)]


def majority(labels: np.ndarray, place: tuple[str, str, str]) -> Score:
    """Return the accuracy of always predicting the most frequent class of `labels`."""
    share = 100 * int(np.bincount(labels).max()) / len(labels)
    source, target, domain = place
    return Score(source, target, share, len(labels), domain, measure=MAJORITY)


def chosen(classifiers: list[Classifier]) -> dict[str, list]:
    """Return the epochs and weight decays chosen on validation, by seed."""
    return {
        "epochs": [classifier.epoch for classifier in classifiers],
        "weight_decay": [classifier.weight_decay for classifier in classifiers],
    }
