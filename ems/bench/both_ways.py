"""P@1 to and from English: what a benchmark of one language and English at a time scores."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ems.bench.hits import summary
from ems.bench.measured import means_of
from ems.bench.task import Task
from ems.progress import Progress

Hits = tuple[np.ndarray, np.ndarray]  # bool[N] each: queries in the language, queries in English


def score_both_ways(task: Task, hits_of: Callable[[str, str], Hits]) -> dict[str, dict[str, Any]]:
    """The entry of each language that the system has, by the benchmark's code.

    `hits_of` takes the code and the language. `to_english`: queries in the language, candidates in
    English; `from_english`: the other way round.
    """
    progress = Progress(f"{task.benchmark} {task.system}", len(task.spoken), "languages")
    directions = {}
    for code, language in task.spoken.items():
        directions[code] = _entry(language, *hits_of(code, language))
        progress.add(1, f"{code} {directions[code]['to_english']:.1f}")
    means = means_of({"directions": directions})
    texts = [f"{mean:.1f}" + (f" of {group}" if group else "") for group, mean in means]
    progress.close(f"mean P@1 {', '.join(texts)}")
    return directions


def _entry(language: str, there: np.ndarray, back: np.ndarray) -> dict[str, Any]:
    ways = {"to_english": summary(there), "from_english": summary(back)}
    return {
        "language": language,
        "sentences": len(there),
        **{way: found["percent"] for way, found in ways.items()},
        "intervals": {way: found["interval"] for way, found in ways.items()},
        "hits": {way: found["hits"] for way, found in ways.items()},
    }
