"""The case study of EMS v2 section V-H: the cosine of two sentences that differ in word order.

Benchmark `wordorder`. The lower the better: the sentences say different things. They are the
paper's, in the "uncased form" in which it encodes them; its claim that both have the same bag of
words holds but for "steal", "saved" and "save", "stole".
"""

from typing import Any

from ems.bench.task import Task
from ems.config.provenance import digest

SENTENCES = (
    "can you believe that what he actually did was steal the money she saved for the children?",
    "what can you actually believe she did was save the money for the children that he stole?",
)
VERSION = "EMS v2 section V-H"


def score(task: Task) -> dict[str, Any]:
    """The `cosine` of the two sentences; the data are in this module, and so are what they are."""
    first, second = task.vectors(list(SENTENCES), "en", task.benchmark)
    return {
        "metric": "cosine",
        "version": VERSION,
        "data_sha256": digest(SENTENCES),
        "cosine": float(first @ second),
    }
