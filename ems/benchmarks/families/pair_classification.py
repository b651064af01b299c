"""Pair classification: do two sentences say the same? By the cosine of their embeddings.

Nothing is trained: a pair counts as a paraphrase if its cosine reaches the threshold that is best
for English dev. The average precision of the cosine needs no threshold (as in MTEB's pair
classification). Where test has no labels, as in XTREME's layout, dev is halved by rows, which are
translations of one another: the threshold comes from the even rows of English, the score from the
odd ones. The papers do not score such a set.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from ems.base.errors import EmsError
from ems.base.progress import Progress
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.task import Task
from ems.benchmarks.families.classification import accuracies, majority
from ems.config.plugins import module

PRECISION = "average precision"
Rows = Sequence[tuple[int, Any]]  # the number of a row, and its pair with a label


def score(task: Task) -> Result:
    """Return accuracy and average precision of each language, "en-de"; English chooses."""
    names = task.evalset.languages
    english = [code for code in task.spoken if names[code] == ENGLISH]
    if not english:
        raise EmsError(
            f"evalsets.{task.benchmark}.languages: en is missing; the threshold is chosen by it"
        )
    test = module(task.benchmark, "data").read_numbered(task.folder, english[0], "test")
    part = "test" if any(pair.label for _, pair in test) else "odd rows of dev"
    chosen = _rows(task, english[0], "dev" if part == "test" else "even rows of dev")
    threshold = best_threshold(*_cosines(task, chosen, english[0], "dev"))
    progress = Progress(f"{task.benchmark} {task.system}", len(task.spoken), "languages")
    rows: list[Score] = []
    for code in task.spoken:
        cosines, truth = _cosines(task, _rows(task, code, part), code, part)
        place = (ENGLISH, names[code])
        rows.append(Score.of_hits(*place, (cosines >= threshold) == truth))
        progress.add(1, f"{rows[-1].direction} {rows[-1].value:.1f}")
        precision = 100 * float(average_precision_score(truth, cosines))
        rows.append(Score(*place, precision, len(truth), measure=PRECISION))
        rows.append(majority(truth, (*place, "")))
    progress.close()
    finite = threshold if np.isfinite(threshold) else None  # JSON has no infinity
    return replace(accuracies(task, rows, {"threshold": finite}), protocol={"part": part})


def best_threshold(cosines: np.ndarray, truth: np.ndarray) -> float:
    """Return the cosine threshold with the best accuracy on cosines[N] and truth[N].

    The highest on ties; infinity if it is best to predict no paraphrase.
    """
    order = np.argsort(-cosines, kind="stable")
    falling = cosines[order]
    right = np.concatenate([[0], np.cumsum(np.where(truth[order], 1, -1))])  # by number predicted
    last = np.append(falling[:-1] != falling[1:], True)  # equal cosines stay together
    right[1:][~last] = right.min() - 1
    count = int(np.argmax(right))
    return float(falling[count - 1]) if count else float("inf")


def _rows(task: Task, code: str, part: str) -> Rows:
    """Return the pairs of "test", of "dev", or of the even or odd rows of dev."""
    read = module(task.benchmark, "data").read_numbered
    rows = read(task.folder, code, "test" if part == "test" else "dev")
    if part.endswith("rows of dev"):
        rows = [(row, pair) for row, pair in rows if row % 2 == part.startswith("odd")]
    labels = {pair.label for _, pair in rows}
    if labels != {"0", "1"}:
        raise EmsError(
            f"{task.folder}: {task.benchmark} {code}, {part}: expected pairs with the labels 0 "
            f"and 1, found {', '.join(sorted(map(repr, labels))) or 'no pairs'}; fetch the "
            "benchmark again"
        )
    return rows


def _cosines(task: Task, rows: Rows, code: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return float32[N], the cosine of each pair, and bool[N], whether it is a paraphrase."""
    pairs = [pair for _, pair in rows]
    where, language = f"{task.benchmark} {code} {part}", task.spoken[code]
    first = task.vectors([pair.first for pair in pairs], language, f"{where}, first sentences")
    second = task.vectors([pair.second for pair in pairs], language, f"{where}, second sentences")
    return (first * second).sum(axis=1), np.array([pair.label == "1" for pair in pairs])
