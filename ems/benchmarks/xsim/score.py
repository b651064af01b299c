"""xsim and xsim++: error rate of searching for the English translation, on FLORES-200 devtest.

Follows the defaults of LASER's tasks/xsim and tasks/xsimplusplus: the ratio margin with k = 4
(Artetxe and Schwenk, ACL 2019, section 3) ranks the k nearest by cosine. A candidate is right if it
has the text of the translation, on any line. xsim++ adds altered sentences to the candidates (Chen
et al., ACL 2023, https://arxiv.org/abs/2306.12907). An error has the kind of the alteration if the
right translation was altered; otherwise it is "misaligned".
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
UNTOLD = "untold"  # an alteration of unknown kind


def score(task: Task) -> Result:
    """Return the error rate in percent of each language when searching in English."""
    negatives = read_negatives(task.folders["xsimpp"]) if "xsimpp" in task.sets else []
    codes = {language: code for code, language in task.trained.items()}
    lines = read_translations(task.folder, list(codes.values()), task.sets[0])
    target = codes.pop(ENGLISH)
    english = lines.pop(target)
    altered = [negative.sentence for negative in negatives]
    candidates = task.vectors([*english, *altered], ENGLISH, f"{task.benchmark} English")
    progress = Progress(f"{task.benchmark} {task.system}", len(codes), "languages")
    kinds = sorted({negative.kind or UNTOLD for negative in negatives} | {MISALIGNED})
    rows: list[Score] = []
    for language, code in codes.items():
        queries = task.vectors(lines[code], language, f"{task.benchmark} {code}")
        best = best_by_margin(queries, candidates, **plain(task.protocol))
        errors = errors_of(best, english, negatives)
        rate = Score.from_hits(code, target, np.array([bool(error) for error in errors]))
        counts = Counter(errors)
        progress.add(1, f"{code} {rate.value:.1f}")
        rows.append(rate)
        for kind in kinds if negatives else ():  # the shares add up to the rate
            share = 100 * counts[kind] / rate.count
            rows.append(replace(rate, measure=kind, value=share, hits="", interval=None))
    mean = np.mean([row.value for row in rows if not row.measure])
    progress.close(f"mean error rate {mean:.1f}")
    settings = {"parallel": True, "protocol": task.protocol}
    return Result("error rate", rows, task.trained, higher_is_better=False, **settings)


def errors_of(best: np.ndarray, english: list[str], negatives: list[Negative]) -> list[str]:
    """Return the kind of error of each sentence, '' for none. Sentence n is a translation of
    english[n]; best[n] indexes `english` followed by `negatives`.
    """
    candidates = [*english, *(negative.sentence for negative in negatives)]
    errors = []
    for place, own in zip(best, english, strict=True):
        altered = negatives[place - len(english)] if place >= len(english) else None
        if candidates[place].strip() == own.strip():
            errors.append("")
        elif altered and altered.source.strip() == own.strip():
            errors.append(altered.kind or UNTOLD)
        else:
            errors.append(MISALIGNED)
    return errors
