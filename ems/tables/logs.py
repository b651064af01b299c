"""Logs of jobs: losses and times of a training, and the costs of each job. A malformed line is an
error that names it, since a gap in a curve would be overlooked.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from ems.base.errors import Damaged, EmsError
from ems.base.files import parse_json, read_json, write_json, write_text
from ems.base.records import Amount, Count, Json, NonBlank, Record, fitting, number, shown
from ems.base.texts import read_lines
from ems.bench.scores import read_score_file
from ems.tables.table import Table, Value, note, write_table

Times = Mapping[str, Path]  # system -> its costs/train/<system>.times.jsonl
TRAIN, VALIDATION = "train", "validation"
P1, BY_LANGUAGE, BY_CORPUS = "p1", "p1_by_language", "p1_by_corpus"
ACCURACY = "_accuracy"  # suffix of the values that objectives of documents log
KEPT = "kept"  # marks the validation whose weights the model has, if it is not the last
NOT_PARTS = {"part", "step", "pairs", "total", P1, BY_LANGUAGE, BY_CORPUS, KEPT}
NOT_PARTS |= {"lr", "scale", "skipped"}
# name in the log -> heading; other names are their own heading
PARTS = {"xtr": "XTR", "ugt": "UGT", "mlm": "MLM", "smlm": "SMLM"}
PARTS |= {"contrastive": "contrastive", "context": "context"}
# Larger numbers cannot be drawn. A sampled loss may be below 0 by chance in training.
Sampled = Annotated[number(ge=-1e300, le=1e300), "a number"]
Drawn = Annotated[number(ge=0, le=1e300), "a number of at least 0"]
OfNames = dict[str, Drawn]


class LossEntry(Record):
    """One row of losses.jsonl. P@1 is in percent; training and old logs have none by name."""

    part: Literal["train", "validation"]
    step: Count
    pairs: Count  # seen so far
    total: float = math.nan  # after training on documents with validation on pairs alone
    kept: bool = False  # the model has the weights of this step
    p1_by_language: Annotated[OfNames, "P@1 of each language"] = field(default_factory=dict)
    p1_by_corpus: Annotated[OfNames, "P@1 of each corpus"] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)  # losses ("xtr"), and P@1 ("p1")
    numbers: dict[str, float] = field(default_factory=dict)  # such as the learning rate


def read_losses(path: Path) -> list[LossEntry]:
    """Return the rows of losses.jsonl. Raises `Damaged` for a malformed line."""
    return [_entry(path, place, row) for place, row in _rows(path)]


def read_times(path: Path) -> dict[int, float]:
    """Return step -> seconds of training so far, with the validation of the step."""
    forms, times = {"step": Count, "seconds": Drawn}, {}
    for place, row in _rows(path):
        step, seconds = (_fitting(path, place, form, row.get(k), k) for k, form in forms.items())
        times[step] = float(seconds)
    return times


def last_time(path: Path) -> tuple[int, float]:
    return max(read_times(path).items())


def _rows(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield ("line 1", row) of a .jsonl file."""
    lines = read_lines(path)
    if not lines:
        raise Damaged(path, "expected a line for each row, found an empty file", "*.jsonl")
    for place, line in ((f"line {at}", line) for at, line in enumerate(lines, 1)):
        try:
            row = parse_json(line)
        except ValueError as error:
            problem = f"{place}: expected JSON, found {shown(line)} ({error})"
            raise Damaged(path, problem, "*.jsonl") from None
        yield place, _fitting(path, place, Json, row)


def _fitting(path: Path, place: str, form: Any, value: Any, *keys: str) -> Any:
    try:
        return fitting(form, value, *keys)
    except ValueError as error:
        raise Damaged(path, f"{place}: {error}", "*.jsonl") from None


def _entry(path: Path, place: str, row: Json) -> LossEntry:
    keys = {key: row.get(key) for key in ("part", "step", "pairs")}
    entry = _fitting(path, place, LossEntry, row | keys)
    validation = entry.part == VALIDATION
    names = [name for name in row if name not in NOT_PARTS]
    only_pairs = validation and not names and "total" not in row
    of_documents = any(name.endswith(ACCURACY) for name in names)
    if validation and (P1 in row or not of_documents):
        names.append(P1)
    measured = {name: row.get(name) for name in [*names, *([] if only_pairs else ["total"])]}
    values = _fitting(path, place, dict[str, Drawn if validation else Sampled], measured)
    numbers = {k: v for k, v in row.items() if type(v) in (int, float) and k not in keys}
    values = {name: float(value) for name, value in values.items()}
    total = values.pop("total", math.nan)
    return replace(entry, total=total, values=values, numbers=numbers)


# --- costs

STAGES = (
    *("demo-mirror", "fetch", "fetch-evalset", "wikipedia", "evalkeys"),
    *("prepare", "multiway", "sample", "vocabulary", "shards", "mine", "train", "fit", "bench"),
)  # in the order of the pipeline
BY_SYSTEM = ("mine", "train", "fit", "bench")  # their paths are costs/<stage>/<system>...


class JobCost(Record):
    """The costs of a job; `job` is its path in the folder of costs: ("train", "ems")."""

    stage: NonBlank
    seconds: Amount
    cpu_seconds: Amount
    max_rss_mb: Amount
    gpu: NonBlank = ""
    job: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[int, str, str]:
        """The sort key: the stage's index in the pipeline, the stage, and its system or ""."""
        place = STAGES.index(self.stage) if self.stage in STAGES else len(STAGES)
        return place, self.stage, self.job[1] if self.stage in BY_SYSTEM else ""


def write_costs_table(
    folder: Path, out: Path, planned: Callable[[tuple[str, ...]], bool] = lambda job: True
) -> None:
    """Write a table of the costs in `folder` (results/<experiment>/costs): a row per stage, or per
    system for the stages in BY_SYSTEM. A note sums up the jobs that are not `planned` any more.
    Raises `EmsError` if no job is left or a file is malformed.
    """
    every = costs_of(folder).values()
    if not every:
        raise EmsError(f"{folder}: no costs (*.json) there; run the experiment's stages first")
    costs = sorted((cost for cost in every if planned(cost.job)), key=lambda cost: cost.place)
    if not costs:
        raise EmsError(f"{folder}: all costs in it are of jobs that the experiment no longer has")
    stages = groupby(costs, key=lambda cost: " ".join(cost.place[1:]).strip())
    rows = [[name, *_summary(jobs)] for name, jobs in stages]
    total = ["Total", *_summary(costs)]
    total[3] = None  # the longest job is no total
    others = [cost.seconds for cost in every if not planned(cost.job)]
    notes = [note("costs")]
    notes += [note("costs_other", jobs=len(others), seconds=sum(others))] if others else []
    columns = ["Stage", "Jobs", "Seconds", "Longest job", "CPU seconds", "Peak MB"]
    write_table(Table(columns, [*rows, total], rules={len(rows)}, notes=notes), out)


def costs_of(folder: Path) -> dict[tuple[str, ...], JobCost]:
    """Return path in the folder -> costs of a job."""
    costs = {}
    for path in sorted(folder.rglob("*.json")):
        job = path.relative_to(folder).with_suffix("").parts
        if not path.stat().st_size:
            continue
        cost = replace(read_json(path, JobCost), job=job)
        if cost.stage in BY_SYSTEM and len(job) < 2:
            expected = f"expected the costs of {cost.stage} in a file {cost.stage}/<system>"
            raise Damaged(path, f"{expected}, found {path.name}")
        costs[job] = cost
    return costs


def _summary(jobs: Iterable[JobCost]) -> list[Value]:
    """Return the number of jobs, seconds, the longest job, CPU seconds and peak MB."""
    jobs = list(jobs)
    seconds = [float(job.seconds) for job in jobs]
    cpu = sum(float(job.cpu_seconds) for job in jobs)
    return [len(jobs), sum(seconds), max(seconds), cpu, round(max(job.max_rss_mb for job in jobs))]


# --- dvc metrics


def write_metrics(scores: list[Path], losses: list[Path], out: Path) -> None:
    """Write the numbers of an experiment into a folder, for `dvc metrics` and `dvc plots`.

        scores.json              system -> benchmark -> mean, as in the tables; system -> validation
                                 -> loss and P@1 of the last row of its loss log
        training/<system>.csv    training rows of the loss log by step
        validation/<system>.csv  validation rows

    Raises `Damaged` for a malformed file.
    """
    import pandas as pd  # imported late: it takes a second

    summary: dict[str, Json] = {}
    for file in map(read_score_file, scores):
        values = {mean.over: round(mean.value, 3) for mean in file.means()}
        value = values if len(values) > 1 else next(iter(values.values()))
        summary.setdefault(file.system, {})[file.benchmark] = value
    folders = {TRAIN: out / "training", VALIDATION: out / "validation"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    for path in losses:
        system, rows = path.parent.name, {part: [] for part in folders}
        for entry in read_losses(path):
            of_corpora = {f"{BY_CORPUS}/{name}": p1 for name, p1 in entry.p1_by_corpus.items()}
            rows[entry.part].append({"step": entry.step, **entry.numbers, **of_corpora})
        for part, own in rows.items():
            if own:
                table = pd.DataFrame(own).to_csv(index=False, lineterminator="\n")
                write_text(folders[part] / f"{system}.csv", table)
        last = rows[VALIDATION][-1] if rows[VALIDATION] else {}
        kept = {name: last[name] for name in last if name in ("total", P1) or BY_CORPUS in name}
        summary.setdefault(system, {})[VALIDATION] = kept
    write_json(out / "scores.json", summary)
