"""What jobs write about themselves: the loss log of a training, its times, and what each job cost.

A malformed line is an error that names the file and the line: a curve with a hole would not show
that something is missing.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ems.base.errors import Damaged, EmsError
from ems.base.files import parse_json, read_json, read_lines, write_json, write_text
from ems.base.schema import Amount, Json, Record, Text, shown
from ems.bench.scores import read_score_file
from ems.tables.table import Table, Value, write_table

TRAIN, VALIDATION = "train", "validation"
P1, BY_LANGUAGE, BY_CORPUS = "p1", "p1_by_language", "p1_by_corpus"
ACCURACY = "_accuracy"  # the end of the name of what objectives of documents log
KEPT = "kept"  # the validation of which the model has the weights, where that is not the last
NOT_PARTS = {"part", "step", "pairs", "total", P1, BY_LANGUAGE, BY_CORPUS, KEPT}
NOT_PARTS |= {"lr", "scale", "skipped"}
MOST = 1e300  # beyond it there is no number to draw
PARTS = {  # as the log names them -> as people read them; others stand as they are
    "xtr": "XTR",
    "ugt": "UGT",
    "mlm": "MLM",
    "smlm": "SMLM",
    "contrastive": "contrastive",
    "context": "context",
}


@dataclass(frozen=True)
class Entry:
    """One row of losses.jsonl: where it was measured, steps and pairs seen until then, the total
    loss, and by name its parts ("xtr", "contrastive") and, in validation, P@1 in percent ("p1").

    The `values` are all that is not in NOT_PARTS. `kept`: the model has the weights of this step.
    A system that learns from documents has no P@1 of documents, and no losses of pairs: if it is
    validated on pairs alone, `total` is not a number. `languages`: P@1 in percent by language, the
    mean of both directions; empty in training, and in the logs of models that were trained before
    it was written down. `corpora`: P@1 by corpus, where there are several.
    """

    part: str
    step: int
    pairs: int
    total: float
    values: dict[str, float]
    languages: dict[str, float]
    corpora: dict[str, float]
    kept: bool = False


@dataclass(frozen=True)
class _Row:
    """A JSON object of a file, and the words that say where in it."""

    path: Path
    place: str
    values: Json

    def take(self, key: str, expected: str, fits: Callable[[Any], bool]) -> Any:
        """Return a value that fits. Raises `Damaged` for any other."""
        value = self.values.get(key)
        if not fits(value):
            problem = f"{self.place}: expected {expected} under `{key}`, found {shown(value)}"
            raise Damaged(self.path, problem, "*.jsonl")
        return value

    def count(self, key: str) -> int:
        return self.take(key, "a whole number of at least 0", lambda v: type(v) is int and v >= 0)

    def number(self, key: str, least: float = 0) -> float:
        expected = "a number of at least 0" if least == 0 else "a number"
        return float(
            self.take(
                key, expected, lambda v: type(v) in (int, float) and max(least, -MOST) <= v <= MOST
            )
        )


def read_losses(path: Path) -> list[Entry]:
    """Return the rows of losses.jsonl in their order. Raises `EmsError` that names a malformed
    line.
    """
    return [_entry(row) for row in _rows(path)]


def read_numbers(path: Path) -> Iterator[tuple[Entry, dict[str, float]]]:
    """Yield each row of losses.jsonl with all its numbers by name, the learning rate among them;
    P@1 by language and by corpus is in the entry alone. Raises `EmsError` as `read_losses` does.
    """
    for row in _rows(path):
        numbers = {name: value for name, value in row.values.items() if type(value) in (int, float)}
        yield _entry(row), {k: v for k, v in numbers.items() if k not in ("step", "pairs")}


def read_times(path: Path) -> dict[int, float]:
    """Return step -> seconds of training until then; the last time of a step that is there twice,
    at which its validation was done too. Raises `EmsError` that names a malformed line.
    """
    return {row.count("step"): row.number("seconds") for row in _rows(path)}


def last_time(path: Path) -> tuple[int, float]:
    """Return the steps of a training and its seconds, validation included."""
    return max(read_times(path).items())


def _rows(path: Path) -> Iterator[_Row]:
    lines = read_lines(path)
    if not lines:
        raise Damaged(path, "expected a line for each row, found an empty file", "*.jsonl")
    for number, line in enumerate(lines, 1):
        problem = f"line {number}: expected"
        try:
            row = parse_json(line)
        except ValueError as error:
            problem = f"{problem} JSON, found {shown(line)} ({error})"
            raise Damaged(path, problem, "*.jsonl") from None
        if not isinstance(row, dict):
            raise Damaged(path, f"{problem} a JSON object, found {shown(row)}", "*.jsonl")
        yield _Row(path, f"line {number}", row)


def _entry(row: _Row) -> Entry:
    part = row.take("part", f"{TRAIN} or {VALIDATION}", lambda v: v in (TRAIN, VALIDATION))
    least = -math.inf if part == TRAIN else 0  # a sampled loss may be below 0 by chance
    names = [name for name in row.values if name not in NOT_PARTS]
    only_pairs = part == VALIDATION and not names and "total" not in row.values
    of_documents = any(name.endswith(ACCURACY) for name in names)
    if part == VALIDATION and (P1 in row.values or not of_documents):
        names.append(P1)
    return Entry(
        part,
        row.count("step"),
        row.count("pairs"),
        math.nan if only_pairs else row.number("total", least),
        {name: row.number(name, least) for name in names},
        _scores(row, BY_LANGUAGE, "language"),
        _scores(row, BY_CORPUS, "corpus"),
        row.values.get(KEPT) is True,
    )


def _scores(row: _Row, key: str, of: str) -> dict[str, float]:
    """Return P@1 by language or by corpus; nothing where the row has none."""
    if key not in row.values:
        return {}
    scores = row.take(key, f"P@1 of each {of}", lambda v: isinstance(v, dict))
    by_name = _Row(row.path, f"{row.place}, `{key}`", scores)
    return {name: by_name.number(name) for name in scores}


# --- costs

STAGES = (
    *("demo-mirror", "fetch", "fetch-documents", "fetch-evalset", "wikipedia", "evalkeys"),
    *("clean", "report", "segment", "multiway", "sample", "vocabulary", "shards", "mine"),
    *("train", "fit", "bench"),
)  # in the order of the pipeline
BY_SYSTEM = ("mine", "train", "fit", "bench")  # their paths are costs/<stage>/<system>...


class Cost(Record):
    """What a job cost, as its command wrote it: wall and CPU seconds, its largest memory in MB.

    `job` is its path under results/<experiment>/costs: ("train", "ems").
    """

    stage: Text
    seconds: Amount
    cpu_seconds: Amount
    max_rss_mb: Amount
    gpu: Text = ""
    job: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """Return the system, "" for a stage that all systems share."""
        return self.job[1] if self.stage in BY_SYSTEM else ""

    @property
    def place(self) -> tuple[int, str, str]:
        """Return the pipeline's stages in its order, unknown ones after them by the alphabet."""
        place = STAGES.index(self.stage) if self.stage in STAGES else len(STAGES)
        return place, self.stage, self.system


def write_costs_table(
    folder: Path, out: Path, planned: Callable[[tuple[str, ...]], bool] = lambda job: True
) -> None:
    """Write the costs of the jobs under `folder` (results/<experiment>/costs) as .tex, .md and
    .csv beside `out`: a row per stage, or per system of a stage where systems are compared.

    Costs stay on disk when a corpus or a system leaves the experiment; a note sums them up.
    `planned` says whether the experiment still has a job, by its path ("train", "ems") in the
    folder. Raises `EmsError` when no job is left or one is malformed.
    """
    every = costs_of(folder).values()
    if not every:
        raise EmsError(f"{folder}: no costs (*.json) there; run the experiment's stages first")
    costs = sorted((cost for cost in every if planned(cost.job)), key=lambda cost: cost.place)
    if not costs:
        raise EmsError(f"{folder}: all costs in it are of jobs that the experiment no longer has")
    stages = groupby(costs, key=lambda cost: f"{cost.stage} {cost.system}".strip())
    rows = [[name, *_summary(jobs)] for name, jobs in stages]
    total = ["Total", *_summary(costs)]
    total[3] = None  # the longest job of all says nothing
    others = [cost.seconds for cost in every if not planned(cost.job)]
    notes = [
        "Seconds are wall time, added up over the jobs of a stage; jobs may run side by side. CPU "
        "seconds count all cores. Peak MB: the resident memory of the largest job. Of a job that "
        "was killed and run again, only the last run counts."
    ]
    if others:
        notes.append(
            f"Not counted: {len(others):,} jobs ({sum(others):,.1f} seconds) that the experiment "
            "had once and has no longer."
        )
    columns = ["Stage", "Jobs", "Seconds", "Longest job", "CPU seconds", "Peak MB"]
    write_table(Table(columns, [*rows, total], rules={len(rows)}, notes=notes), out)


def costs_of(folder: Path) -> dict[tuple[str, ...], Cost]:
    """Return the costs of the jobs under results/<experiment>/costs, by their paths in it.

    For a job that was killed Snakemake leaves an empty file.
    """
    costs = {}
    for path in sorted(folder.rglob("*.json")):
        job = path.relative_to(folder).with_suffix("").parts
        if not path.stat().st_size:
            continue
        cost = read_json(path, Cost).model_copy(update={"job": job})
        if cost.stage in BY_SYSTEM and len(job) < 2:
            expected = f"expected the costs of {cost.stage} in a file {cost.stage}/<system>"
            raise Damaged(path, f"{expected}, found {path.name}")
        costs[job] = cost
    return costs


def _summary(jobs: Iterable[Cost]) -> list[Value]:
    """Return jobs, their seconds, the longest, CPU seconds, and the largest memory in MB."""
    jobs = list(jobs)
    seconds = [float(job.seconds) for job in jobs]
    cpu = sum(float(job.cpu_seconds) for job in jobs)
    return [len(jobs), sum(seconds), max(seconds), cpu, round(max(job.max_rss_mb for job in jobs))]


# --- dvc metrics

FOLDERS = {TRAIN: "training", VALIDATION: VALIDATION}  # of what `dvc plots` reads


def write_metrics(scores: list[Path], losses: list[Path], out: Path) -> None:
    """Write the numbers of an experiment as `dvc metrics` and `dvc plots` read them into a folder.

        scores.json              system -> benchmark -> mean, as in the tables; system -> validation
                                 -> loss and P@1 of the last row of its loss log
        training/<system>.csv    the rows of the loss log by step; so is validation/<system>.csv

    Raises `Damaged` for a malformed file.
    """
    summary: dict[str, Json] = {}
    for file in map(read_score_file, scores):
        means = {words: round(mean, 3) for words, mean in file.means()}
        summary.setdefault(file.system, {})[file.benchmark] = means.get("", means)
    for folder in FOLDERS.values():
        (out / folder).mkdir(parents=True, exist_ok=True)
    for path in losses:
        last = _write_rows(path, out)
        summary.setdefault(path.parent.name, {})[VALIDATION] = last
    write_json(out / "scores.json", summary)


def _write_rows(path: Path, out: Path) -> dict[str, float]:
    """Write the rows of a loss log as .csv; return the loss and P@1 of the last validation."""
    import pandas as pd  # whoever reads logs need not wait for it

    parts: dict[str, list[dict[str, float]]] = {part: [] for part in FOLDERS}
    for entry, numbers in read_numbers(path):
        corpora = {f"{BY_CORPUS}/{name}": score for name, score in entry.corpora.items()}
        parts[entry.part].append({"step": entry.step, **numbers, **corpora})
    for part, rows in parts.items():
        if rows:
            table = pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")
            write_text(out / FOLDERS[part] / f"{path.parent.name}.csv", table)
    last = parts[VALIDATION][-1] if parts[VALIDATION] else {}
    return {name: last[name] for name in last if name in ("total", P1) or BY_CORPUS in name}
