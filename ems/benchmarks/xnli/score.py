"""XNLI: does the premise entail the hypothesis? Trained on English, tested in every language.

The monolingual paper's section 4.2 (Table 1): a network with hidden layers of 512 and 384 on
[u, v, u * v, |u - v|] of frozen embeddings, without regularisation, stopped early on the English
development set. The paper gives neither optimiser, batch nor activation: here Adam with 1e-3, 256,
ReLU, and a patience of 3 epochs. The network is trained on a GPU if there is one.
"""

from collections.abc import Iterable
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from ems.base.errors import EmsError
from ems.base.progress import Progress
from ems.bench.probe import Classifier, Pool
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.task import Task
from ems.benchmarks.families import classification as family
from ems.benchmarks.xnli.data import LABELS, TRAIN, Inference, read_split, read_train, split_path
from ems.model.devices import choose_device


def pairs_pool(vectors: Tensor, first: Tensor, second: Tensor) -> Pool:
    """Return a pool of pairs of `vectors` float32[S, d], with row numbers int64[N] of both sides.
    Features [u, v, u * v, |u - v|] are computed per batch: for all 392,702 pairs at once they would
    take four times the memory of the sentences.
    """

    def take(rows: Tensor) -> Tensor:
        one, other = vectors[first[rows]], vectors[second[rows]]
        return torch.cat([one, other, one * other, (one - other).abs()], dim=-1)

    return Pool(take, 4 * vectors.shape[1], vectors.device)


def score(task: Task) -> Result:
    """Return the accuracy of each language, "en-de", including English itself, "en-en"."""
    names = task.evalset.languages
    english = [code for code in task.languages if names[code] == ENGLISH]
    if not english:
        raise EmsError("evalsets.xnli.languages: en is missing; the classifier is trained on it")
    classifiers = _classifiers(task, english[0])
    progress = Progress(f"xnli {task.system}", len(task.languages), "languages")
    rows: list[Score] = []
    for code in task.languages:
        pool, labels = _pool(task, read_split(task.folder, code, "test"), code, "test")
        rows += family.tested(classifiers, pool, np.array(labels), (ENGLISH, names[code], ""))
        way = rows[-1].direction
        progress.add(1, f"{way} {family.mean_accuracy(rows, way):.1f}")
    progress.close()
    return family.accuracies(task, rows, {"classifiers": family.chosen(classifiers)})


def _classifiers(task: Task, english: str) -> list[Classifier]:
    """Train a classifier per seed on the training part; English dev chooses the epoch."""
    dev = read_split(task.folder, english, "dev")
    pool, labels = _pool(task, chain(read_train(task.folder), dev), english, "train and dev")
    cut = len(labels) - len(dev)
    path = task.folder / TRAIN
    if not cut:
        raise EmsError(f"{path}: expected pairs to train on, found none; fetch the benchmark again")
    family.check_classes(labels[:cut], LABELS, str(path), "pairs is")
    family.check_classes(labels[cut:], LABELS, str(split_path(task.folder, "dev")), "pairs is")
    parts = {english: (range(cut), range(cut, len(labels)))}
    return family.trained(task, pool, labels, parts, len(LABELS))[english]


def _pool(task: Task, pairs: Iterable[Inference], code: str, part: str) -> tuple[Pool, list[int]]:
    """Embed each distinct sentence once; return the pool of pairs and their classes."""
    numbers: dict[str, int] = {}
    first, second, labels = [], [], []
    for pair in pairs:
        first.append(numbers.setdefault(pair.premise, len(numbers)))
        second.append(numbers.setdefault(pair.hypothesis, len(numbers)))
        labels.append(LABELS.index(pair.label))
    device = choose_device("auto")
    where = f"xnli {code} {part}"
    vectors = torch.from_numpy(task.embedded(list(numbers), task.languages[code], where, False))
    indices = (torch.tensor(column, device=device) for column in (first, second))
    return pairs_pool(vectors.to(device), *indices), labels
