"""Strict and lax precision, recall and F1 of sentence alignments, over all documents together.

Every system is scored with the aligner of `ems align` (`ems.use.align`): a model without layers
adds the vectors of words, another one encodes adjacent sentences joined by spaces, up to its token
limit. The figures follow vecalign's score.py, except that sentences without a partner count nowhere
(there they count in precision). In the baseline, all vectors are equal, so that only lengths
decide, as in Gale and Church (1993).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from ems.base.schema import plain
from ems.bench.scores import Result, Score
from ems.bench.task import Task
from ems.benchmarks.alignment.data import LENGTHS, MAIN, MEASURES, SIDES, Pair, read_document
from ems.use.align import Side, align_sides

Read = Callable[[list[str], str], Side]  # lines and their code


def score(task: Task) -> Result:
    """Return strict F1 in percent; the other figures and the baseline are measures."""
    documents = [read_document(task.folder, name) for name in task.protocol.documents]
    gold = [alignments for _, alignments in documents]
    encoder, largest, count = task.encoder, task.protocol.largest, sum(map(len, gold))

    def read(lines: list[str], code: str) -> Side:
        language, where = task.languages[code], f"{task.benchmark} {code}"
        if hasattr(encoder, "sums"):
            return Side.of_sums(lines, *encoder.sums(lines, language), encoder.vectors_of)
        return Side.of_windows(lines, lambda own: task.embedded(own, language, where), largest)

    def figures(read: Read) -> dict[str, float]:
        return figures_of([aligned(sides, read, largest) for sides, _ in documents], gold)

    own, lengths = figures(read), figures(equal_vectors)
    measures = {"" if name == MAIN else name: value for name, value in own.items()}
    rows = [Score(*SIDES, value, count, measure=name) for name, value in measures.items()]
    rows += [Score(*SIDES, v, count, split=n, measure=LENGTHS) for n, v in lengths.items()]
    protocol = plain(task.protocol) | {"documents": " ".join(task.protocol.documents)}
    return Result("F1", rows, task.languages, label="direction", protocol=protocol)


def equal_vectors(lines: list[str], code: str) -> Side:
    sums, counts = np.ones((len(lines), 1)), np.ones((len(lines), 2))
    return Side.of_sums(lines, sums, counts, lambda sums, _: sums)


def aligned(sides: Sequence[list[str]], read: Read, largest: int) -> list[Pair]:
    """Align the sentences of a document; leave out those without a partner."""
    alignments = align_sides(*map(read, sides, SIDES), largest)
    pairs = [(tuple(each.source), tuple(each.target)) for each in alignments]
    return [pair for pair in pairs if all(pair)]


def figures_of(predicted: Sequence[list[Pair]], gold: Sequence[list[Pair]]) -> dict[str, float]:
    """Return each of MEASURES in percent, from the alignments of each document."""
    documents = list(zip(predicted, gold, strict=True))
    right = sum(counts(one, other) for one, other in documents)
    found = sum(counts(other, one) for one, other in documents)
    values = []
    for kind in (0, 1):  # strict, lax
        p, r = (100 * float(each[kind] / max(each[2], 1)) for each in (right, found))
        values += [p, r, 2 * p * r / (p + r or 1)]
    return dict(zip(MEASURES, values, strict=True))


def counts(pairs: list[Pair], others: list[Pair]) -> np.ndarray:
    """Return how many pairs are in `others`, how many overlap with one of them (share a source and
    a target sentence), and their number.
    """
    targets: dict[int, set[int]] = defaultdict(set)
    for source, target in others:
        for sentence in source:
            targets[sentence].update(target)
    strict = len({*pairs} & {*others})
    lax = sum(any(not targets[n].isdisjoint(target) for n in source) for source, target in pairs)
    return np.array([strict, lax, len(pairs)])
