"""Cross-lingual similarity search by cosine, both directions: P@1 (EMS v2 section V-A)."""

from functools import partial

from ems.bench.both_ways import Hits, score_both_ways
from ems.bench.task import Task
from ems.evalsets.sets import read_bitext
from ems.retrieval import nearest_is_own
from ems.scores import Result


def score(task: Task) -> Result:
    """Return P@1 of each language that the system has."""
    return score_both_ways(task, partial(_hits, task), parallel=task.record.parallel)


def _hits(task: Task, code: str, language: str) -> Hits:
    where = f"{task.benchmark} {code}"
    foreign, english = read_bitext(task.experiment, task.benchmark, task.folder, code)
    first = task.vectors(foreign, language, where)
    second = task.vectors(english, "en", f"{where}, English")
    return nearest_is_own(first, second), nearest_is_own(second, first)
