"""Strict and lax precision, recall and F1 of sentence alignments, over all documents together.

Every system is scored with the aligner of `ems align` (`ems.use.align`), on its vectors of adjacent
sentences joined by spaces, which its token limit may cut. The figures follow vecalign's score.py,
except that sentences without a partner count nowhere (there they count in precision). In the
baseline, all vectors are equal, so that only lengths decide, as in Gale and Church (1993).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from ems.base.schema import plain
from ems.bench.scores import Result, Score
from ems.bench.task import Task
from ems.benchmarks.alignment.data import SIDES, Pair, read_document
from ems.use.align import Side, align_sides

MAIN = "strict F1"  # the measure that systems are compared by
MEASURES = ("strict P", "strict R", MAIN, "lax P", "lax R", "lax F1")
LENGTHS = "by length alone"  # the baseline
Embed = Callable[[list[str], str], np.ndarray]  # lines and their code -> vectors of length 1


def score(task: Task) -> Result:
    """Return strict F1 in percent; the other figures and the baseline are measures."""
    documents = [read_document(task.folder, name) for name in task.protocol.documents]
    gold = [alignments for _, alignments in documents]
    count = sum(map(len, gold))

    def embed(lines: list[str], code: str) -> np.ndarray:
        return task.embedded(lines, task.languages[code], f"{task.benchmark} {code}")

    def figures(vectors: Embed) -> dict[str, float]:
        predicted = [aligned(sides, vectors, task.protocol.largest) for sides, _ in documents]
        return figures_of(predicted, gold)

    own, lengths = figures(embed), figures(lambda lines, _: np.ones((len(lines), 1)))
    rows = [
        Score(*SIDES, value, count, measure="" if name == MAIN else name)
        for name, value in own.items()
    ]
    rows += [Score(*SIDES, v, count, split=n, measure=LENGTHS) for n, v in lengths.items()]
    protocol = plain(task.protocol) | {"documents": " ".join(task.protocol.documents)}
    return Result("F1", rows, task.languages, label="direction", protocol=protocol)


def aligned(sides: Sequence[list[str]], embed: Embed, largest: int) -> list[Pair]:
    """Align the sentences of a document; leave out those without a partner."""
    first, second = (
        Side.of_windows(lines, lambda windows, code=code: embed(windows, code), largest)
        for lines, code in zip(sides, SIDES, strict=True)
    )
    pairs = [
        (tuple(each.source), tuple(each.target)) for each in align_sides(first, second, largest)
    ]
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
    """Return how many pairs are in `others`, how many overlap with one of them, and their number.

    To overlap is to share a source sentence and a target sentence.
    """
    targets: dict[int, set[int]] = defaultdict(set)
    for source, target in others:
        for sentence in source:
            targets[sentence].update(target)
    strict = len({*pairs} & {*others})
    lax = sum(any(not targets[n].isdisjoint(target) for n in source) for source, target in pairs)
    return np.array([strict, lax, len(pairs)])
