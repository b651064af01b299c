"""P@1 to and from English: what a benchmark of one language and English at a time scores."""

from collections.abc import Callable

import numpy as np

from ems.bench.task import Task
from ems.progress import Progress
from ems.scores import ENGLISH, Score

Hits = tuple[np.ndarray, np.ndarray]  # bool[N] each: queries in the language, queries in English


def score_both_ways(task: Task, hits_of: Callable[[str, str], Hits]) -> list[Score]:
    """Return two rows for each language that the system has: searching in English, and from it.

    `hits_of` takes the benchmark's code of the language and the language.
    """
    progress = Progress(f"{task.benchmark} {task.system}", len(task.spoken), "languages")
    rows: list[Score] = []
    for code, language in task.spoken.items():
        there, back = hits_of(code, language)
        rows += [Score.of_hits(code, ENGLISH, there), Score.of_hits(ENGLISH, code, back)]
        progress.add(1, f"{code} {rows[-2].value:.1f}")
    progress.close(f"mean P@1 {np.mean([row.value for row in rows]):.1f}")
    return rows
