"""BOUQuET is scored as FLORES-200, its sentences and, as another measure, its paragraphs."""

from dataclasses import replace

from ems.bench.scores import Result
from ems.bench.task import Task
from ems.benchmarks.flores200 import score as flores200

PARAGRAPHS = "paragraphs"


def score(task: Task) -> Result:
    result = flores200.score(task)
    rows = flores200.directions(task, result.languages, PARAGRAPHS, level="paragraph")
    return replace(result, rows=[*result.rows, *rows])
