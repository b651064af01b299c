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
        first, second = (
            task.vectors(lines, task.languages[code], f"{task.benchmark} {one}-{other}, {code}")
            for code, lines in zip((one, other), sides, strict=True)
        )
        rows.append(Score.from_hits(one, other, nearest_is_own(first, second)))
        rows.append(Score.from_hits(other, one, nearest_is_own(second, first)))
    return Result("P@1", rows, task.languages, label="direction")
