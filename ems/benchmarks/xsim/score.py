"""xsim and xsim++: how often the English translation is not found, on FLORES-200 devtest.

As LASER's tasks/xsim and tasks/xsimplusplus do by default: the ratio margin with k = 4 (Artetxe and
Schwenk, ACL 2019, section 3) ranks the k nearest by cosine; a sentence is found when the best
candidate has its translation's text, whatever its line. xsim++ has made sentences among the
candidates (Chen et al., ACL 2023, https://arxiv.org/abs/2306.12907); an error has the kind of one
only if that was made of the right translation, and is "misaligned" otherwise.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from ems.base.progress import Progress
from ems.base.schema import plain
from ems.bench.margin import best_by_margin
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.task import Task
from ems.benchmarks.flores200.score import read_translations
from ems.benchmarks.xsimpp.data import Negative, read_negatives

MISALIGNED = "misaligned"
UNTOLD = "untold"  # the kind of a made sentence whose kind is unknown


def score(task: Task) -> Result:
    """Return the error rate in percent of each language, searching in English."""
    negatives = read_negatives(task.folders["xsimpp"]) if "xsimpp" in task.sets else []
    codes = {language: code for code, language in task.trained.items()}
    lines = read_translations(task.folder, list(codes.values()))
    target = codes.pop(ENGLISH)
    english = lines.pop(target)
    made = [negative.sentence for negative in negatives]
    candidates = task.vectors([*english, *made], ENGLISH, f"{task.benchmark} English")
    progress = Progress(f"{task.benchmark} {task.system}", len(codes), "languages")
    kinds = sorted({negative.kind or UNTOLD for negative in negatives} | {MISALIGNED})
    rows: list[Score] = []
    for language, code in codes.items():
        queries = task.vectors(lines[code], language, f"{task.benchmark} {code}")
        best = best_by_margin(queries, candidates, **plain(task.protocol))
        errors = errors_of(best, english, negatives)
        rate = Score.of_hits(code, target, np.array([bool(error) for error in errors]))
        counts = Counter(errors)
        progress.add(1, f"{code} {rate.value:.1f}")
        rows.append(rate)
        for kind in kinds if negatives else ():  # their shares add up to the rate
            share = 100 * counts[kind] / rate.count
            rows.append(replace(rate, measure=kind, value=share, hits="", interval=None))
    mean = np.mean([row.value for row in rows if not row.measure])
    progress.close(f"mean error rate {mean:.1f}")
    settings = {"parallel": True, "protocol": task.protocol}
    return Result("error rate", rows, task.trained, higher_is_better=False, **settings)


def errors_of(best: np.ndarray, english: list[str], negatives: list[Negative]) -> list[str]:
    """Return the kind of error of each sentence n with the candidate best[n]; '' for none.

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
