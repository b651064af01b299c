"""The numbers of an experiment as `dvc metrics` and `dvc plots` read them.

scores.json              system -> benchmark -> mean, as in the tables; system -> validation ->
                         loss and P@1 of the last row of its loss log
training/<system>.csv    the rows of the loss log by step; so is validation/<system>.csv
"""

from pathlib import Path
from typing import Any

import pandas as pd

from ems.base.files import write_json, write_text
from ems.bench.scores import read_score_file
from ems.tables.losses import BY_CORPUS, P1, TRAIN, VALIDATION, read_numbers

FOLDERS = {TRAIN: "training", VALIDATION: VALIDATION}


def write_metrics(scores: list[Path], losses: list[Path], out: Path) -> None:
    """Write the means of score files and the rows of loss logs into the folder `out`.

    Raises `Damaged` for a malformed file.
    """
    summary: dict[str, dict[str, Any]] = {}
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
    """Write the rows of a loss log as .csv; the loss and P@1 of the last validation."""
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
