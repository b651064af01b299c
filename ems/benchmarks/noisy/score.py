"""P@1 of damaged FLORES-200 lines: their nearest English line by cosine, which is never damaged.

A row's twin with the measure `clean` has P@1 of the same language's undamaged lines, so that the
mean over the languages of a damage has one to compare with.
"""

from dataclasses import replace
from itertools import chain

import numpy as np

from ems.base.progress import Progress
from ems.bench.encoders import uncached
from ems.bench.retrieval import nearest_is_own
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.task import Task
from ems.benchmarks.flores200.score import read_translations
from ems.benchmarks.noisy.damages import CLEAN, DAMAGES
from ems.text.normalise import tidy

CHANGED = 0.2  # of a language's lines; a damage that changes fewer is left out


def score(task: Task) -> Result:
    """Return P@1 into English of each language and damage, which is the split of its row."""
    codes = {language: code for code, language in task.trained.items()}
    lines = read_translations(task.folder, list(codes.values()), task.sets[0])
    target = codes.pop(ENGLISH)
    candidates = task.vectors(lines[target], ENGLISH, f"{task.benchmark} {target}")
    progress = Progress(f"{task.benchmark} {task.system}", len(codes), "languages")
    apart = replace(task, encoder=uncached(task.encoder))  # no other benchmark has damaged lines
    rows: list[Score] = []
    for language, code in codes.items():
        damaged, where = damaged_lines(lines[code], language, lines[target]), f"noisy {code}"
        own = task.vectors(lines[code], language, where)
        others = apart.vectors([*chain(*damaged.values())], language, f"{where}, damaged")
        parts = [own, *np.split(others, len(damaged))]
        hits = [nearest_is_own(part, candidates) for part in parts]
        clean = Score.from_hits(code, target, hits[0], measure=CLEAN)
        for name, of_name in zip((CLEAN, *damaged), hits, strict=True):
            rows.append(Score.from_hits(code, target, of_name, split=name))
            rows.append(replace(clean, split=name, hits="", interval=None))
        progress.add(1, f"{code} {clean.value:.1f}")
    result = Result("P@1", rows, task.trained, label="direction", parallel=True)
    progress.close(f"mean P@1 {result.means()[0].value:.1f}")
    return result


def damaged_lines(lines: list[str], language: str, english: list[str]) -> dict[str, list[str]]:
    """Apply each damage to the lines of a language, and keep it if it changes enough."""
    kept = {}
    for name, damage in DAMAGES.items():
        damaged = [damage(own, language, other) for own, other in zip(lines, english, strict=True)]
        changed = sum(tidy(a) != tidy(b) for a, b in zip(lines, damaged, strict=True))
        if changed >= CHANGED * len(lines):
            kept[name] = damaged
    return kept
