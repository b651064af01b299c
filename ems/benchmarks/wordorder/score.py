"""The case study of EMS v2 section V-H: the cosine of two sentences that differ in word order.

The sentences are the paper's, in the "uncased form" in which it encodes them. Their meanings
differ, so lower is better.
"""

from ems.base.provenance import digest
from ems.bench.scores import ENGLISH, Result, Score
from ems.bench.task import Task

SENTENCES = (
    "can you believe that what he actually did was steal the money she saved for the children?",
    "what can you actually believe she did was save the money for the children that he stole?",
)
DATA = {"version": "EMS v2 section V-H", "data_sha256": digest(SENTENCES)}


def score(task: Task) -> Result:
    first, second = task.vectors(list(SENTENCES), ENGLISH, task.benchmark)
    row = Score(ENGLISH, ENGLISH, float(first @ second), len(SENTENCES))
    return Result("cosine", [row], {ENGLISH: ENGLISH}, higher_is_better=False, data=DATA)
