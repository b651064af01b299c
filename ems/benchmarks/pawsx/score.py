"""PAWS-X: are two sentences that share their words paraphrases? By the cosine of their embeddings.

Source of the data: Yang et al., "PAWS-X" (EMNLP 2019). The papers do not score it.

Notable choices:
- nothing is trained: a pair is a paraphrase when its cosine reaches the threshold that is best for
  English dev, so that the score is of the encoder alone; of equally good thresholds the highest;
- the average precision of the cosine needs no threshold (as in MTEB's pair classification);
- where test has no labels, as in XTREME's layout, dev is halved by rows, which are translations of
  one another: the threshold comes of the even rows of English, the score of the odd ones.
"""

from dataclasses import replace

import numpy as np
from sklearn.metrics import average_precision_score

from ems.bench.documents import accuracies, majority
from ems.bench.task import Task
from ems.benchmarks.pawsx.data import Paraphrase, read_numbered
from ems.errors import EmsError
from ems.progress import Progress
from ems.scores import ENGLISH, Result, Score

PRECISION = "average precision"
Rows = list[tuple[int, Paraphrase]]


def score(task: Task) -> Result:
    """Return accuracy and average precision of each language, "en-de"; English chooses."""
    names = task.evalset.languages
    english = [code for code in task.spoken if names[code] == ENGLISH]
    if not english:
        raise EmsError("evalsets.pawsx.languages: en is missing; the threshold is chosen by it")
    part = "test" if _labelled(task, english[0], "test") else "odd rows of dev"
    chosen = _rows(task, english[0], "dev" if part == "test" else "even rows of dev")
    threshold = best_threshold(*_cosines(task, chosen, english[0], "dev"))
    progress = Progress(f"pawsx {task.system}", len(task.spoken), "languages")
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
    finite = threshold if np.isfinite(threshold) else None  # None: never
    result = accuracies(task, rows, {"threshold": finite})
    return replace(result, protocol={"part": part})


def best_threshold(cosines: np.ndarray, truth: np.ndarray) -> float:
    """The cosine[N] from which on `truth`[N] is taken for granted with the fewest mistakes.

    Infinite when it is best never to; of equally good ones the highest.
    """
    order = np.argsort(-cosines, kind="stable")
    falling = cosines[order]
    right = np.concatenate([[0], np.cumsum(np.where(truth[order], 1, -1))])  # of so many taken
    last = np.append(falling[:-1] != falling[1:], True)  # equal cosines are taken together
    right[1:][~last] = right.min() - 1
    taken = int(np.argmax(right))
    return float(falling[taken - 1]) if taken else float("inf")


def _rows(task: Task, code: str, part: str) -> Rows:
    """The pairs of "test", of "dev", or of the even or odd rows of dev."""
    found = read_numbered(task.folder, code, "test" if part == "test" else "dev")
    if part.endswith("rows of dev"):
        found = [(row, pair) for row, pair in found if row % 2 == part.startswith("odd")]
    truth = {pair.label for _, pair in found}
    if truth != {"0", "1"}:
        raise EmsError(
            f"{task.folder}: pawsx {code}, {part}: expected pairs with the labels 0 and 1, found "
            f"{', '.join(sorted(map(repr, truth))) or 'no pairs'}; fetch the benchmark again"
        )
    return found


def _labelled(task: Task, code: str, split: str) -> bool:
    """Whether the pairs of a split have labels: XTREME's test does not."""
    return any(pair.label for _, pair in read_numbered(task.folder, code, split))


def _cosines(task: Task, rows: Rows, code: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """float32[N], bool[N]: the cosine of each pair, and whether it is a paraphrase."""
    pairs = [pair for _, pair in rows]
    where, language = f"pawsx {code} {part}", task.spoken[code]
    first = task.vectors([pair.first for pair in pairs], language, f"{where}, first sentences")
    second = task.vectors([pair.second for pair in pairs], language, f"{where}, second sentences")
    return (first * second).sum(axis=1), np.array([pair.label == "1" for pair in pairs])
