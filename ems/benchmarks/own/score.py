"""P@1 of each language pair in both directions, by cosine."""

from ems.base.progress import Progress
from ems.bench.retrieval import nearest_is_own
from ems.bench.scores import Result, Score
from ems.bench.task import Task
from ems.benchmarks.own.data import read_pairs


def score(task: Task) -> Result:
    pairs = read_pairs(task.folder, task.languages)
    progress = Progress(f"{task.benchmark} {task.system}", len(pairs), "language pairs")
    rows: list[Score] = []
    for (one, other), sides in progress.over(pairs.items()):
        where = f"{task.benchmark} {one}-{other}, "
        first = task.vectors(sides[0], task.languages[one], where + one)
        second = task.vectors(sides[1], task.languages[other], where + other)
        rows.append(Score.from_hits(one, other, nearest_is_own(first, second)))
        rows.append(Score.from_hits(other, one, nearest_is_own(second, first)))
    return Result("P@1", rows, task.languages, label="direction")
