"""Cross-lingual similarity search between all languages of FLORES-200: EMS v2 section V-B, Table
VII.

P@1 by cosine on devtest, 1,012 sentences that are the same in every language, in each direction
between two languages that the system is trained on, English included.

Notable choices:
- each language is encoded once, and one matrix product serves both directions of a pair;
- the score file keeps every bit of every direction, so that any group of directions can be compared
  between two systems sentence by sentence: 0.96 MB for 62 languages. A direction's interval is not
  in it, since it follows from its percentage (`ems.hits.interval`) and would make it a fifth
  larger.
"""

from pathlib import Path

import numpy as np

from ems.bench.task import Task
from ems.benchmarks.flores200.data import file_names, read_language
from ems.errors import EmsError
from ems.hits import packed
from ems.progress import Progress
from ems.retrieval import all_directions
from ems.scores import Result, Score


def score(task: Task) -> Result:
    """Return P@1 of each direction, queries' code to candidates' code.

    Raises `EmsError` for languages of unequal numbers of sentences.
    """
    lines = read_translations(task.folder, list(task.trained))
    vectors = _encoded(task, lines)
    count = len(lines)
    what = f"{task.benchmark} {task.system}"
    progress = Progress(what, count * (count - 1) // 2, "pairs of languages")
    hits = all_directions(vectors, progress)
    progress.close(f"mean P@1 {100 * hits.sum() / (count * (count - 1) * hits.shape[2]):.1f}")
    rows = [
        _row(query, candidates, found)
        for query, of_query in zip(lines, hits, strict=True)
        for candidates, found in zip(lines, of_query, strict=True)
        if candidates != query
    ]
    return Result("P@1", rows, task.trained, label="source", parallel=True)


def _row(query: str, candidates: str, hits: np.ndarray) -> Score:
    """Return a direction's row, without the interval, which would make the file a half larger."""
    percent = 100 * int(hits.sum()) / len(hits)
    return Score(query, candidates, percent, len(hits), hits=packed(hits))


def read_translations(folder: Path, codes: list[str]) -> dict[str, list[str]]:
    """Code -> the devtest sentences of FLORES-200, the same number of each language.

    Raises `EmsError` for a bad file, or when one has another number of lines than the first.
    """
    lines = {code: read_language(folder, code) for code in codes}
    first, *others = lines
    for code in others:
        if len(lines[code]) != len(lines[first]):
            names = [folder / file_names(name)[0] for name in (code, first)]
            raise EmsError(
                f"{names[0]}: expected the {len(lines[first]):,} lines of {names[1]}, found "
                f"{len(lines[code]):,}; every language has the same sentences: fetch both again"
            )
    return lines


def _encoded(task: Task, lines: dict[str, list[str]]) -> np.ndarray:
    """float32[languages, sentences, d], of length 1. Filled in place: they may be gigabytes."""
    vectors = np.empty(0, np.float32)
    for place, (code, language) in enumerate(task.trained.items()):
        found = task.vectors(lines[code], language, f"{task.benchmark} {code}")
        if not place:
            vectors = np.empty((len(lines), *found.shape), np.float32)
        vectors[place] = found
    return vectors
