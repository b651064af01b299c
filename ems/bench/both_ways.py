"""P@1 to and from English: what a benchmark of one language and English at a time scores."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ems.bench.task import Task
from ems.progress import Progress
from ems.scores import ENGLISH, Result, Score

Hits = tuple[np.ndarray, np.ndarray]  # bool[N] each: queries in the language, queries in English


def score_both_ways(task: Task, hits_of: Callable[[str, str], Hits], **others: Any) -> Result:
    """Return P@1 of each language that the system has, searching in English and from it.

    `hits_of` takes the benchmark's code of the language and the language; `others` are those of the
    result.
    """
    progress = Progress(f"{task.benchmark} {task.system}", len(task.spoken), "languages")
    rows: list[Score] = []
    for code, language in task.spoken.items():
        there, back = hits_of(code, language)
        rows += [Score.of_hits(code, ENGLISH, there), Score.of_hits(ENGLISH, code, back)]
        progress.add(1, f"{code} {rows[-2].value:.1f}")
    result = Result("P@1", rows, task.spoken, **others)
    texts = [f"{mean:.1f}" + (f" of {group}" if group else "") for group, mean in result.means()]
    progress.close(f"mean P@1 {', '.join(texts)}")
    return result
