"""BUCC 2018: translations mined from two comparable corpora; F1 (EMS v2 section V-C, Table IX).

The paper scores with sentence-transformers' bucc2018.py (its footnote 24): ratio margin, k = 4,
candidates of both sides, each sentence in one pair, and the threshold that gives the best F1.
Source: https://github.com/UKPLab/sentence-transformers, examples/applications/
parallel-sentence-mining/bucc2018.py.

Notable choices:
- `threshold: oracle` is that script's, chosen on the gold pairs that it is scored on; `sample`
  chooses on the sample part, as XTREME and LASER do, and knows nothing of the part that is scored;
- the part that is scored is `training`: the gold of `test` was never published;
- the search is exact, where the script's default is approximate;
- a threshold lies between two scores, so that what is extracted with it is what was counted;
- pairs that are extracted and not gold are kept, the best of them: the paper's Table VIII shows
  that some are translations.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ems.bench.embedded import embedded
from ems.bench.margin import Mined, mine
from ems.bench.task import Task
from ems.benchmarks.bucc2018.data import Mining, read_part
from ems.progress import Progress
from ems.scores import ENGLISH, Result, Score
from ems.settings import plain

SCORED, CHOSEN_ON = "training", "sample"


@dataclass(frozen=True)
class Part:
    """One part of one language with the pairs mined from it; `correct` bool[P]: are they gold?"""

    texts: Mining
    pairs: Mined
    correct: np.ndarray

    @property
    def threshold(self) -> float:
        """The one that gives the best F1 on this part."""
        return best_threshold(self.pairs.score, self.correct, len(self.texts.gold))


def score(task: Task) -> Result:
    """Return F1, precision and recall in percent of each language that the system has.

    `details`: language -> the threshold, what was extracted with it, and the best pairs that gold
    lacks ("missed").
    """
    progress = Progress(f"{task.benchmark} {task.system}", len(task.spoken), "languages")
    rows: list[Score] = []
    details = {}
    for code, language in task.spoken.items():
        found = _of_language(task, code, language)
        for measure in ("f1", "precision", "recall"):
            name = "" if measure == "f1" else measure
            value = found.pop(measure)
            rows.append(Score(code, ENGLISH, value, found["gold"], measure=name))
        details[code] = found
        progress.add(1, f"{code} {rows[-3].value:.1f}")
    progress.close(f"mean F1 {np.mean([row.value for row in rows if not row.measure]):.1f}")
    protocol = {**plain(task.evalset.protocol), "part": SCORED}
    return Result("F1", rows, task.spoken, protocol=protocol, details=details)


def _of_language(task: Task, code: str, language: str) -> dict[str, Any]:
    """Return what was extracted of a language, how good it is, and what is not gold of it."""
    part = _mined(task, code, language, SCORED)
    chosen_on = part
    if task.evalset.protocol.threshold == "sample":
        chosen_on = _mined(task, code, language, CHOSEN_ON)
    threshold = chosen_on.threshold
    extracted = part.pairs.score >= threshold
    return {
        "sentences": len(part.texts.sentences),
        "english": len(part.texts.english),
        **extraction(extracted, part.correct, len(part.texts.gold)),
        "threshold": threshold,
        "missed": _missed(part, extracted & ~part.correct, task.evalset.protocol.missed),
    }


def _mined(task: Task, code: str, language: str, name: str) -> Part:
    texts = read_part(task.folder, code, name)
    where = f"{task.benchmark} {code} {name}"
    first = embedded(task, list(texts.sentences.values()), language, where)
    second = embedded(task, list(texts.english.values()), "en", f"{where}, English")
    how = task.evalset.protocol
    pairs = mine(first, second, how.k, how.margin, what=where)
    names, english = list(texts.sentences), list(texts.english)
    gold = set(texts.gold)
    found = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    correct = np.array([(names[one], english[other]) in gold for one, other in found], bool)
    return Part(texts, pairs, correct)


def best_threshold(scores: np.ndarray, correct: np.ndarray, gold: int) -> float:
    """The score from which on pairs are extracted for the best F1, the highest such score.

    scores float64[P], the best first; correct bool[P]; `gold` pairs are to be found. The threshold
    is halfway to the next lower score, or the last score itself.
    """
    last_of_its_score = np.append(scores[:-1] != scores[1:], True)
    f1 = 2 * np.cumsum(correct) / (np.arange(1, len(scores) + 1) + gold)
    best = int(np.argmax(np.where(last_of_its_score, f1, -1)))
    after = scores[min(best + 1, len(scores) - 1)]
    halfway = (scores[best] + after) / 2
    return float(halfway if halfway > after else scores[best])


def extraction(extracted: np.ndarray, correct: np.ndarray, gold: int) -> dict[str, Any]:
    """How good the extracted pairs are, of bool[P] and bool[P]: counts, and percentages.

    Precision is 0 where nothing is extracted.
    """
    count, right = int(extracted.sum()), int((extracted & correct).sum())
    return {
        "gold": gold,
        "extracted": count,
        "correct": right,
        "precision": 100 * right / max(count, 1),
        "recall": 100 * right / gold,
        "f1": 200 * right / (count + gold),
    }


def _missed(part: Part, wrong: np.ndarray, most: int) -> list[dict[str, Any]]:
    """The best pairs of bool[P] `wrong`, those that gold lacks, with their ids and sentences."""
    names, english = list(part.texts.sentences), list(part.texts.english)
    missed = []
    for at in np.flatnonzero(wrong)[:most]:
        one, other = names[part.pairs.first[at]], english[part.pairs.second[at]]
        missed.append(
            {
                "score": float(part.pairs.score[at]),
                "id": one,
                "english_id": other,
                "sentence": part.texts.sentences[one],
                "english": part.texts.english[other],
            }
        )
    return missed
