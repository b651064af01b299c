"""Pair classification: are two sentences paraphrases, by the cosine of their embeddings?

Nothing is trained. A pair is a paraphrase if its cosine reaches the best threshold for English dev;
average precision needs no threshold (as in MTEB's pair classification). If test has no labels, as
in XTREME's layout, dev is split by row number, which is the same in every language: even rows of
English give the threshold, odd rows are scored. The papers do not score such a set.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from ems.base.errors import mistake
from ems.base.progress import Progress
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.task import Task
from ems.benchmarks.families.classification import accuracies, majority
from ems.config.plugins import module

PRECISION = "average precision"
Rows = Sequence[tuple[int, Any]]  # row number, labelled pair


def score(task: Task) -> Result:
    """Return accuracy and average precision of each language, with the threshold of English dev."""
    names = task.evalset.languages
    english = [code for code in task.languages if names[code] == ENGLISH]
    if not english:
        raise mistake("English is missing", task=task)
    test = module(task.benchmark, "data").read_numbered(task.folder, english[0], "test")
    part = "test" if any(pair.label for _, pair in test) else "odd rows of dev"
    chosen = _rows(task, english[0], "dev" if part == "test" else "even rows of dev")
    threshold = best_threshold(*_cosines(task, chosen, english[0], "dev"))
    progress = Progress(f"{task.benchmark} {task.system}", len(task.languages), "languages")
    rows: list[Score] = []
    for code in task.languages:
        cosines, truth = _cosines(task, _rows(task, code, part), code, part)
        place = (ENGLISH, names[code])
        rows.append(Score.from_hits(*place, (cosines >= threshold) == truth))
        progress.add(1, f"{rows[-1].direction} {rows[-1].value:.1f}")
        precision = 100 * min(1.0, float(average_precision_score(truth, cosines)))  # may round up
        rows.append(Score(*place, precision, len(truth), measure=PRECISION))
        rows.append(majority(truth, (*place, "")))
    progress.close()
    finite = threshold if np.isfinite(threshold) else None  # JSON has no infinity
    return replace(accuracies(task, rows, {"threshold": finite}), protocol={"part": part})


def best_threshold(cosines: np.ndarray, truth: np.ndarray) -> float:
    """Return the cosine threshold with the best accuracy on cosines[N] and truth[N], the highest on
    ties; infinity if it is best to predict no paraphrase.
    """
    order = np.argsort(-cosines, kind="stable")
    falling = cosines[order]
    right = np.concatenate([[0], np.cumsum(np.where(truth[order], 1, -1))])  # by number predicted
    last = np.append(falling[:-1] != falling[1:], True)  # equal cosines stay together
    right[1:][~last] = right.min() - 1
    count = int(np.argmax(right))
    return float(falling[count - 1]) if count else float("inf")


def _rows(task: Task, code: str, part: str) -> Rows:
    """Return the pairs of `part`: "test", "dev", "even rows of dev" or "odd rows of dev"."""
    read = module(task.benchmark, "data").read_numbered
    rows = read(task.folder, code, "test" if part == "test" else "dev")
    if part.endswith("rows of dev"):
        rows = [(row, pair) for row, pair in rows if row % 2 == part.startswith("odd")]
    labels = {pair.label for _, pair in rows}
    if labels != {"0", "1"}:
        found = ", ".join(sorted(map(repr, labels))) or "no pairs"
        raise mistake("labels of pairs", task=task, code=code, part=part, found=found)
    return rows


def _cosines(task: Task, rows: Rows, code: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosine of each pair, float64[N], and bool[N], True for paraphrases. Six decimals:
    the last bits must not order pairs of the same words, whose vectors are equal.
    """
    pairs = [pair for _, pair in rows]
    where, language = f"{task.benchmark} {code} {part}", task.languages[code]
    first = task.vectors([pair.first for pair in pairs], language, f"{where}, first sentences")
    second = task.vectors([pair.second for pair in pairs], language, f"{where}, second sentences")
    cosines = np.round((first * second).sum(axis=1, dtype=np.float64), 6)
    return cosines, np.array([pair.label == "1" for pair in pairs])
