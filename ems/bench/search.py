"""Cross-lingual similarity search by cosine, both directions: P@1 on Tatoeba (EMS v2 section V-A,
Tables IV to VI) and on the test part of NTREX.
"""

from typing import Any

import numpy as np

from ems.bench.hits import summary
from ems.bench.task import Task
from ems.evalsets.sets import read_bitext
from ems.progress import Progress
from ems.retrieval import nearest_is_own


def score(task: Task) -> dict[str, Any]:
    """P@1 of each language that the system has.

    `to_english`: queries in the language, candidates in English; `from_english`: the other way.
    """
    progress = Progress(f"{task.benchmark} {task.system}", len(task.spoken), "languages")
    directions = {}
    for code, language in task.spoken.items():
        directions[code] = _of_language(task, code, language)
        progress.add(1, f"{code} {directions[code]['to_english']:.1f}")
    mean = np.mean([(d["to_english"] + d["from_english"]) / 2 for d in directions.values()])
    progress.close(f"mean P@1 {mean:.1f}")
    return {"metric": "P@1", "directions": directions}


def _of_language(task: Task, code: str, language: str) -> dict[str, Any]:
    where = f"{task.benchmark} {code}"
    foreign, english = read_bitext(task.experiment, task.benchmark, task.folder, code)
    first = task.vectors(foreign, language, where)
    second = task.vectors(english, "en", f"{where}, English")
    ways = {
        "to_english": summary(nearest_is_own(first, second)),
        "from_english": summary(nearest_is_own(second, first)),
    }
    return {
        "language": language,
        "sentences": len(foreign),
        **{way: found["percent"] for way, found in ways.items()},
        "intervals": {way: found["interval"] for way, found in ways.items()},
        "hits": {way: found["hits"] for way, found in ways.items()},
    }
