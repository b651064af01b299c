"""Mining: F1 of translation pairs mined from two comparable corpora (EMS v2 V-C, Table IX).

The paper scores with a script of sentence-transformers (its footnote 24): ratio margin, k = 4, each
sentence in one pair at most, and the threshold with the best F1 on the scored pairs (`oracle`).
`sample` chooses it on the sample part, as XTREME and LASER do. Our search is exact, unlike theirs.
"""

from typing import Any

import numpy as np

from ems.base.progress import Progress
from ems.base.records import Json
from ems.base.schema import plain
from ems.bench.margin import pairs_of
from ems.bench.nearest import Distinct, nearest
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.significance import f1_interval
from ems.bench.task import Task
from ems.config.plugins import module

SCORED, CHOSEN_ON = "training", "sample"  # the gold pairs of `test` were never published


def score(task: Task) -> Result:
    """Return F1, precision and recall in percent of each language of the system. `details` maps a
    language to its threshold, counts, and the best extracted pairs outside the gold standard.
    """
    progress = Progress(f"{task.benchmark} {task.system}", len(task.languages), "languages")
    rows: list[Score] = []
    details = {}
    for code, language in task.languages.items():
        own = details[code] = _extract(task, code, language)
        ends = f1_interval(own["correct"], own["extracted"], own["gold"])
        rows.append(Score(code, ENGLISH, own.pop("f1"), own["gold"], interval=ends))
        for name in ("precision", "recall"):
            rows.append(Score(code, ENGLISH, own.pop(name), own["gold"], measure=name))
        progress.add(1, f"{code} {rows[-3].value:.1f}")
    progress.close(f"mean F1 {np.mean([row.value for row in rows if not row.measure]):.1f}")
    protocol = {**plain(task.evalset.protocol), "part": SCORED}
    return Result("F1", rows, task.languages, protocol=protocol, details=details)


def _extract(task: Task, code: str, language: str) -> Json:
    protocol = task.evalset.protocol
    scored = _mine(task, code, language, SCORED)
    (sentences, english, gold), ids, scores, correct = scored
    on_sample = protocol.threshold == "sample"
    chosen_on, _, *pairs = _mine(task, code, language, CHOSEN_ON) if on_sample else scored
    threshold = best_threshold(*pairs, len(chosen_on[-1]))
    extracted = scores >= threshold
    count, right = int(extracted.sum()), int((extracted & correct).sum())
    missed = []
    for index in np.flatnonzero(extracted & ~correct)[: protocol.missed]:
        own, other = ids[index]
        texts = {"sentence": sentences[own], "english": english[other]}
        missed += [{"score": float(scores[index]), "id": own, "english_id": other, **texts}]
    return {
        "sentences": len(sentences),
        "english": len(english),
        "gold": len(gold),
        "extracted": count,
        "correct": right,
        "precision": 100 * right / max(count, 1),
        "recall": 100 * right / len(gold),
        "f1": 200 * right / (count + len(gold)),
        "threshold": threshold,
        "missed": missed,
    }


def _mine(
    task: Task, code: str, language: str, name: str
) -> tuple[Any, list[tuple[str, str]], np.ndarray, np.ndarray]:
    """Return texts, and ids, scores float64[P] and bool[P], whether correct, of the mined pairs."""
    texts = module(task.benchmark, "data").read_part(task.folder, code, name)
    sentences, english, gold = texts
    where = f"{task.benchmark} {code} {name}"
    lines, english_lines = list(sentences.values()), list(english.values())
    first = Distinct(task.embedded(lines, language, where), lines)
    second = task.embedded(english_lines, "en", f"{where}, English")
    sides, protocol = (first, Distinct(second, english_lines)), task.evalset.protocol
    pairs = pairs_of(nearest(*sides, protocol.k, what=where), sides, protocol.margin)
    own, others, right = list(sentences), list(english), set(gold)
    ids = [(own[one], others[two]) for one, two in zip(pairs.first, pairs.second, strict=True)]
    return texts, ids, pairs.score, np.array([pair in right for pair in ids], bool)


def best_threshold(scores: np.ndarray, correct: np.ndarray, gold: int) -> float:
    """Return the score threshold with the best F1, the highest on ties: halfway to the next lower
    score, or the last score. `scores` float64[P] fall; `gold` is the number of gold pairs.
    """
    last_of_its_score = np.append(scores[:-1] != scores[1:], True)
    f1 = 2 * np.cumsum(correct) / (np.arange(1, len(scores) + 1) + gold)
    best = int(np.argmax(np.where(last_of_its_score, f1, -1)))
    after = scores[min(best + 1, len(scores) - 1)]
    halfway = (scores[best] + after) / 2
    return float(halfway if halfway > after else scores[best])
