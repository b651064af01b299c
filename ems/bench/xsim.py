"""xsim and xsim++: how often the English translation is not found, on FLORES-200 devtest.

Each sentence of a language looks among the English ones by a margin over its own and the
candidate's nearest neighbours (Artetxe and Schwenk, "Margin-based Parallel Corpus Mining with
Multilingual Sentence Embeddings", ACL 2019, section 3). xsim++ has made sentences among the
candidates that are wrong by a little, and tells which kind of change misled (Chen et al., ACL 2023,
https://arxiv.org/abs/2306.12907). Benchmarks `xsim` and `xsimpp`, settings
`evalsets.flores200.protocol`.

Notable choices, all as LASER's tasks/xsim and tasks/xsimplusplus do by default:
- the ratio margin with k = 4: the cosine divided by the mean of the averages of both sides; the k
  nearest by cosine are the ones that it ranks;
- a sentence is found when the best candidate has its translation's text, whatever its line;
- an error is of a made sentence's kind only when that was made of the right translation; anything
  else is "misaligned".
"""

from collections import Counter
from typing import Any

import numpy as np

from ems.bench.flores import read_translations
from ems.bench.hits import interval, packed
from ems.bench.margin import best_by_margin
from ems.bench.task import Task
from ems.evalsets.xsimpp import Negative, read_negatives
from ems.progress import Progress

ENGLISH = "en"
MISALIGNED = "misaligned"
UNTOLD = "untold"  # of a made sentence whose kind the set does not tell


def score(task: Task) -> dict[str, Any]:
    """The error rate in percent of each language that the system has, searching in English."""
    negatives = read_negatives(task.folders["xsimpp"]) if "xsimpp" in task.sets else []
    codes = {language: code for code, language in task.trained.items()}
    lines = read_translations(task.folder, list(codes.values()))
    english = lines.pop(codes.pop(ENGLISH))
    made = [negative.sentence for negative in negatives]
    candidates = task.vectors([*english, *made], ENGLISH, f"{task.benchmark} English")
    progress = Progress(f"{task.benchmark} {task.system}", len(codes), "languages")
    directions = {}
    for language, code in codes.items():
        queries = task.vectors(lines[code], language, f"{task.benchmark} {code}")
        best = best_by_margin(queries, candidates, **task.protocol)
        errors = errors_of(best, english, negatives)
        directions[code] = _summary(language, errors, bool(negatives))
        progress.add(1, f"{code} {directions[code]['error']:.1f}")
    mean = np.mean([each["error"] for each in directions.values()])
    progress.close(f"mean error rate {mean:.1f}")
    return {"metric": "error rate", "protocol": task.protocol, "directions": directions}


def _summary(language: str, errors: list[str], kinds: bool) -> dict[str, Any]:
    right = np.array([not error for error in errors])
    wrong, count = int((~right).sum()), len(right)
    found = {
        "language": language,
        "sentences": count,
        "error": 100 * wrong / count,
        "interval": interval(wrong, count),
        "hits": packed(right),
    }
    return {**found, "kinds": dict(Counter(filter(None, errors)))} if kinds else found


def errors_of(best: np.ndarray, english: list[str], negatives: list[Negative]) -> list[str]:
    """What is wrong with the candidate best[n] of each sentence n: '' for nothing, or its kind.

    Candidates are `english` and then `negatives`; sentence n is a translation of english[n].
    """
    candidates = [*english, *(negative.sentence for negative in negatives)]
    errors = []
    for place, own in zip(best, english, strict=True):
        made = negatives[place - len(english)] if place >= len(english) else None
        if candidates[place].strip() == own.strip():
            errors.append("")
        elif made and made.source.strip() == own.strip():
            errors.append(made.kind or UNTOLD)
        else:
            errors.append(MISALIGNED)
    return errors
