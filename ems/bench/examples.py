"""Examples of retrieval for the report: right and wrong answers of the best trained system, from
the weakest to the strongest language of each benchmark. The query is in the language, the
candidates in English, so that a reader can judge the answer.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ems.base.files import write_json
from ems.bench.scores import Example, Examples, ScoreFile, read_score_file
from ems.bench.task import LineEncoder, Task
from ems.config.experiment import Experiment
from ems.config.plugins import module
from ems.corpora.evalsets.sets import read_bitext

LANGUAGES = 5  # with two examples each


def write_examples(
    experiment: Experiment,
    scores: Sequence[Path],
    encoder_of: Callable[[str], LineEncoder],
    folders: Mapping[str, Path],
    out: Path,
) -> Examples:
    """Write examples of each benchmark that searches for translations among all its sentences, of
    the system with the best mean in the files `scores`. Without such a benchmark there are none.
    """
    every = [read_score_file(path) for path in scores]  # of 200,000 candidates there are none
    files = [each for each in every if each.metric == "P@1" and "candidates" not in each.protocol]
    means: dict[str, list[float]] = {}
    for file in files:
        means.setdefault(file.system, []).append(file.means()[0].value)
    best = max(means, key=lambda name: np.mean(means[name]), default="")
    encoder = encoder_of(best) if best else None
    of_benchmarks = {}
    for file in (each for each in files if each.system == best):
        task = Task(encoder, experiment, best, file.benchmark, folders)
        languages = _from_weak_to_strong(file, task.trained)
        of_benchmarks[file.benchmark] = [
            example for code in languages for example in _examples(task, file, code)
        ]
    examples = Examples(system=best, benchmarks=of_benchmarks)
    write_json(out, asdict(examples))
    return examples


def _from_weak_to_strong(file: ScoreFile, codes: Container[str]) -> list[str]:
    """Return LANGUAGES of the codes at equal distances by their score into English."""
    rows = [row for row in file.rows if row.target in file.english and not row.measure]
    values = {row.source: row.value for row in rows if row.source in codes}
    order = sorted(values, key=lambda code: (values[code], code))
    places = np.linspace(0, len(order) - 1, min(LANGUAGES, len(order)))
    return [order[round(place)] for place in places]


def _examples(task: Task, file: ScoreFile, code: str) -> list[Example]:
    """Return a right and a wrong answer in a language, each with a query of about median length."""
    language, where = task.languages[code], f"{task.benchmark} {code}"
    foreign, english = _sentences(task, file, code)
    queries = task.vectors(foreign, language, where)
    candidates = task.vectors(english, "en", f"{where}, English")
    nearest = (queries @ candidates.T).argmax(axis=1)  # (N,)
    lengths = np.array([len(line) for line in foreign])
    typical = np.argsort(np.abs(lengths - np.median(lengths)), kind="stable")
    right = np.array([english[answer] == english[at] for at, answer in enumerate(nearest)])
    chosen = [next((at for at in typical if right[at] == wanted), None) for wanted in (True, False)]
    return [
        Example(
            language=language,
            query=foreign[at],
            answer=english[nearest[at]],
            cosine=float(queries[at] @ candidates[nearest[at]]),
            translation=english[at],
            expected=float(queries[at] @ candidates[at]),
        )
        for at in chosen
        if at is not None
    ]


def _sentences(task: Task, file: ScoreFile, code: str) -> list[list[str]]:
    if file.label != "source":  # "direction": own pairs
        return read_bitext(task.experiment, task.benchmark, task.folder, code)
    read = module(task.sets[0], "data").read_language
    (own,) = (name for name, known in file.languages.items() if known == "en")
    return [read(task.folder, each) for each in (code, own)]
