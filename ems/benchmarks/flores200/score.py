"""P@1 between every two languages of FLORES-200, by cosine (EMS v2 V-B, Table VII).

The row of a direction keeps a bit per sentence, so that any group of directions can be compared
sentence by sentence. It has no interval, which follows from the percentage.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ems.base.errors import mistake
from ems.base.progress import Progress
from ems.bench.retrieval import all_directions
from ems.bench.scores import Result, Score, packed
from ems.bench.task import Task
from ems.config.plugins import module


def score(task: Task) -> Result:
    """Return P@1 of each direction, from the code of the queries to the code of the candidates."""
    languages = task.languages if task.record.unseen else task.trained
    lines = read_translations(task.folder, list(languages), task.sets[0])
    vectors = _encoded(task, lines, languages)
    count = len(lines)
    what = f"{task.benchmark} {task.system}"
    progress = Progress(what, count * (count - 1) // 2, "language pairs")
    hits = all_directions(vectors, progress)
    progress.close(f"mean P@1 {100 * hits.sum() / (count * (count - 1) * hits.shape[2]):.1f}")
    rows = []
    for query, of_query in zip(lines, hits, strict=True):
        for candidates, own in zip(lines, of_query, strict=True):
            if candidates != query:
                percent = 100 * int(own.sum()) / len(own)
                rows.append(Score(query, candidates, percent, len(own), hits=packed(own)))
    return Result("P@1", rows, languages, label="source", parallel=True)


def read_translations(folder: Path, codes: list[str], name: str) -> dict[str, list[str]]:
    """Map each code of the set `name` to its sentences. Raises `EmsError` for unequal numbers."""
    data = module(name, "data")
    lines = {code: data.read_language(folder, code) for code in codes}
    first, *others = lines
    for code in others:
        if len(lines[code]) != len(lines[first]):
            names = [folder / data.file_names(each)[0] for each in (code, first)]
            counts = {"expected": len(lines[first]), "found": len(lines[code])}
            raise mistake("unequal languages", path=names[0], other=names[1], **counts)
    return lines


def _encoded(task: Task, lines: dict[str, list[str]], languages: Mapping[str, str]) -> np.ndarray:
    """Return vectors of length 1, float32[languages, sentences, d], filled in place (gigabytes)."""
    vectors = np.empty(0, np.float32)
    for place, (code, language) in enumerate(languages.items()):
        part = task.vectors(lines[code], language, f"{task.benchmark} {code}")
        if not place:
            vectors = np.empty((len(lines), *part.shape), np.float32)
        vectors[place] = part
    return vectors
