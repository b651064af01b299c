"""Zero-shot classification: learnt in one language, tested in another (EMS v2 sections V-E, V-F).

Each benchmark that names this module says in its own `score` module which parts and classes it has
(`ems.bench.labelled`). A network (`probe`) on frozen embeddings learns from the source language's
train part; the source language's validation part chooses its epoch, and its weight decay where
several are given; the target's test part is all that is read of the target.

- en-de and en-fr are one classifier tested twice: what a run learns does not depend on the target;
- all sources, domains and seeds are trained as one batched problem, or as several where their
  embeddings are more than MOST_BYTES;
- the score is the mean over the seeds; each seed's accuracy, interval and hits are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import numpy as np
import torch

from ems.bench.document_vectors import embed_documents
from ems.bench.labelled import Examples, Place, Reader
from ems.bench.probe import Classifier, Probe, Run, Vectors, train
from ems.bench.task import Task
from ems.errors import EmsError
from ems.progress import Progress
from ems.scores import ENGLISH, Result, Score

MAJORITY = "most frequent class"
MOST_BYTES = 1 << 30  # of embeddings to train on that are held at once


@dataclass(frozen=True)
class Source:
    """What a classifier learns from: a language of the set and a domain."""

    code: str
    domain: str


@dataclass
class Learnt:
    """Embeddings and classes of train and validation parts, one after the other."""

    vectors: list[np.ndarray] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    parts: dict[Source, tuple[range, range]] = field(default_factory=dict)

    def add(self, source: Source, parts: list[tuple[np.ndarray, list[int]]]) -> None:
        """Add the train and the validation part of a source."""
        ranges = []
        for vectors, labels in parts:
            ranges.append(range(len(self.labels), len(self.labels) + len(labels)))
            self.vectors.append(vectors)
            self.labels += labels
        self.parts[source] = (ranges[0], ranges[1])

    @property
    def bytes(self) -> int:
        """Bytes of the embeddings."""
        return sum(part.nbytes for part in self.vectors)


def score(task: Task) -> Result:
    """Return the accuracy of each direction, "en-de", or of each of its domains, "en-de books"."""
    reader, names = Reader(task), task.evalset.languages
    directions = _directions(task, reader)
    classifiers = _classifiers(task, reader, directions)
    progress = Progress(f"{task.benchmark} {task.system}", len(directions), "directions")
    rows: list[Score] = []
    details = {}
    for target, sources in _by_target(directions).items():
        examples, vectors = _embedded(task, reader, Place(target.code, target.domain, "test"))
        pool = Vectors(torch.from_numpy(vectors))
        for source in sources:
            place = (names[source.code], names[target.code], target.domain)
            rows += tested(classifiers[source], pool, np.array(examples.labels), place)
            details[rows[-1].direction] = chosen(classifiers[source])
            progress.add(1, f"{rows[-1].direction} {mean_accuracy(rows, rows[-1].direction):.1f}")
    progress.close(f"mean accuracy {mean_accuracy(rows):.1f}")
    return accuracies(task, rows, details)


def accuracies(task: Task, rows: list[Score], details: dict[str, Any]) -> Result:
    """Return the result of a benchmark of classification; `details` by direction."""
    languages = {task.evalset.languages[code]: spoken for code, spoken in task.spoken.items()}
    how = {"label": "direction", "parallel": task.record.parallel, "details": details}
    return Result("accuracy", rows, languages, **how)


def mean_accuracy(rows: list[Score], direction: str = "") -> float:
    """Return the mean over seeds and directions, or over the seeds of one direction."""
    every = [row for row in rows if row.measure == "" and direction in ("", row.direction)]
    return mean(row.value for row in every)


def _directions(task: Task, reader: Reader) -> list[tuple[Source, Source]]:
    """(source, target) of the system's languages: with English on one side, or from English."""
    english = [code for code in task.spoken if task.evalset.languages[code] == ENGLISH]
    others = [code for code in task.spoken if code not in english]
    if not english or not others:
        raise EmsError(
            f"evalsets.{task.benchmark}.languages: {task.system} is scored on "
            f"{', '.join(task.spoken.values()) or 'none'}; a direction needs en and another one"
        )
    pairs = [(english[0], other) for other in others]
    if reader.kind.from_english:
        pairs = [(english[0], english[0]), *pairs]
    else:
        pairs = [way for pair in pairs for way in (pair, pair[::-1])]
    return [
        (Source(source, domain), Source(target, domain))
        for source, target in pairs
        for domain in reader.kind.domains
    ]


def _by_target(directions: list[tuple[Source, Source]]) -> dict[Source, list[Source]]:
    """Target -> its sources, so that each test part is embedded once."""
    found: dict[Source, list[Source]] = {}
    for source, target in directions:
        found.setdefault(target, []).append(source)
    return found


def _embedded(task: Task, reader: Reader, place: Place) -> tuple[Examples, np.ndarray]:
    examples = reader.examples(place)
    where = f"{task.benchmark} {place.code} {place.domain} {place.part}".replace("  ", " ")
    language = task.spoken[place.code]
    vectors = embed_documents(task, examples.texts, language, f"{where} ({examples.where})")
    return examples, vectors


def _classifiers(
    task: Task, reader: Reader, directions: list[tuple[Source, Source]]
) -> dict[Source, list[Classifier]]:
    """Of each source the chosen classifier of each seed."""
    found: dict[Source, list[Classifier]] = {}
    for learnt in _learnt(task, reader, list(dict.fromkeys(source for source, _ in directions))):
        pool = Vectors(torch.from_numpy(np.concatenate(learnt.vectors)))
        found |= trained(task, pool, learnt.labels, learnt.parts, len(reader.kind.classes))
    return found


def _learnt(task: Task, reader: Reader, sources: list[Source]) -> Iterator[Learnt]:
    """Train and validation parts of the sources, as many at a time as fit into MOST_BYTES."""
    learnt = Learnt()
    for source in sources:
        parts = []
        for part in ("train", "valid"):
            examples, vectors = _embedded(task, reader, Place(source.code, source.domain, part))
            parts.append((vectors, examples.labels))
        learnt.add(source, parts)
        if learnt.bytes >= MOST_BYTES:
            yield learnt
            learnt = Learnt()
    if learnt.parts:
        yield learnt


def trained(
    task: Task, pool: Any, labels: list[int], parts: dict[Any, tuple[range, range]], classes: int
) -> dict[Any, list[Classifier]]:
    """Of each entry of `parts` (rows to learn from, rows to choose by) a classifier for each seed:
    of several weight decays the one with the most hits on validation, of equals the first.
    """
    settings = task.experiment.probes[task.benchmark]
    decays, seeds = settings.weight_decay, range(1, settings.seeds + 1)
    runs = {
        (key, seed, decay): Run((task.experiment.seed, seed), *both, decay)
        for key, both in parts.items()
        for seed in seeds
        for decay in decays
    }
    what = f"{task.benchmark} {task.system}, train classifiers"
    targets = torch.tensor(labels, device=pool.device)
    done = train(pool, targets, classes, list(runs.values()), Probe.of(settings), what)
    by_name = dict(zip(runs, done, strict=True))
    return {
        key: [
            max((by_name[key, seed, decay] for decay in decays), key=lambda found: found.correct)
            for seed in seeds
        ]
        for key in parts
    }


def tested(
    classifiers: list[Classifier], pool: Any, labels: np.ndarray, place: tuple[str, str, str]
) -> list[Score]:
    """Return the accuracy of each seed's classifier on all of `pool`, whose classes are `labels`.

    `place`: source, target and domain. The last row is the accuracy of always saying the most
    frequent class of `labels`, which a classifier of another language cannot know.
    """
    source, target, domain = place
    every = range(len(labels))
    rows = [
        Score.of_hits(
            source, target, classifier.predict(pool, every) == labels, split=domain, seed=at
        )
        for at, classifier in enumerate(classifiers, start=1)
    ]
    return [*rows, majority(labels, place)]


def majority(labels: np.ndarray, place: tuple[str, str, str]) -> Score:
    """Return the share in percent of the most frequent of `labels`."""
    source, target, domain = place
    share = 100 * int(np.bincount(labels).max()) / len(labels)
    return Score(source, target, share, len(labels), domain, measure=MAJORITY)


def chosen(classifiers: list[Classifier]) -> dict[str, Any]:
    """Return which epoch and weight decay validation chose, of each seed."""
    return {
        "epochs": [classifier.epoch for classifier in classifiers],
        "weight_decay": [classifier.weight_decay for classifier in classifiers],
    }
