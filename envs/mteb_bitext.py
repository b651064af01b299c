"""Run the 13 bitext-mining tasks of MTEB(Multilingual, v2) on a model, by MTEB's own code.

    python envs/mteb_bitext.py --model models/ems-62 --experiment release62 --out bitext.json
        [--tasks Tatoeba,...] [--evalset NAME=FOLDER ...] [--results FOLDER] [--download]

A task runs on the data in the cache of `datasets` (HF_HOME), on the hub's with `--download`, or on
our own set of the same sentences. Any other task is listed as not run, with the reason. A task's
score is the mean F1 of its subsets, and MTEB's mean is over the 13 tasks. It is given only if every
task ran whole: all its subsets, each with the numbers that MTEB publishes for its text. Otherwise
the mean of the tasks that ran whole stands next to the peers' mean of the same tasks. The peers'
printed scores are in envs/mteb_peers.tsv.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

from mteb_common import (
    COLUMNS,
    TASKS,
    Numbers,
    ended,
    load_model,
    load_task,
    numbers_of,
    published_numbers,
    read_subsets,
    save_result,
)

from ems.base.errors import EmsError
from ems.base.files import EXPORTED, read_json, read_table, write_json
from ems.base.records import Json
from ems.commands.common import experiment_of, site_settings
from ems.commands.flags import Assignment
from ems.config.experiment import Experiment
from ems.corpora.evalsets.sets import default_folder

BENCHMARK, KIND = "MTEB(Multilingual, v2)", "BitextMining"
PEERS = Path(__file__).with_name("mteb_peers.tsv")
ALL = "all 13"  # the peers' printed mean
CORPORA = {  # corpora with sentences of a task: a model that learns from them has seen its answers
    "BibleNLPBitextMining": ("bible-uedin", "Bible-PD"),
    "NTREXBitextMining": ("NTREX",),
    "NusaXBitextMining": ("NusaX",),
}


@dataclass
class Outcome:
    """How one task of the benchmark went; `subsets` is their number in the benchmark."""

    task: str
    subsets: int
    data: str = ""  # "cache", our set, or "" if the task did not run
    ran: int = 0  # subsets that ran
    published: int = 0  # and those whose text has the numbers that MTEB publishes
    f1: float | None = None  # percent, the mean of the subsets that ran
    trained_on: list[str] = field(default_factory=list)
    reason: str = ""  # why the task did not run

    @property
    def is_whole(self) -> bool:
        """True if the score is the benchmark's: every subset ran, on the published text."""
        return self.ran == self.published == self.subsets

    def note(self) -> str:
        """Return what keeps the score out of the mean, or makes it better than it should be."""
        lacks = ["not all subsets"] if self.ran < self.subsets else []
        if self.published < self.ran:
            lacks.append(f"MTEB's text in {self.published:,} of {self.ran:,}")
        notes = [f"not in the mean: {', '.join(lacks)}"] if self.data and lacks else []
        if self.trained_on:
            notes.append(f"trained on {' and '.join(self.trained_on)}")
        return "; ".join(notes)


# --- the data of a task


def bitext_tasks() -> list[Any]:
    """Return MTEB's bitext-mining tasks of the benchmark, without their data."""
    import mteb

    tasks = mteb.get_benchmark(BENCHMARK).tasks
    return [task for task in tasks if task.metadata.type == KIND]


def load_hub(task: Any) -> str:
    """Load MTEB's own data of a task, from the cache or the hub; return why it is not there."""
    from datasets.exceptions import DatasetsError
    from huggingface_hub import is_offline_mode

    try:
        task.load_data()
    except (OSError, ValueError, DatasetsError) as error:
        absent = is_offline_mode() and isinstance(error, OSError)
        return "no data in the cache" if absent else str(error).partition("\n")[0]
    return ""


def load_ours(task: Any, name: str, experiment: Experiment, folder: Path) -> Any:
    """Return the task with the subsets that our set has whole, or with all if our set is a part.
    Raises `EmsError` if there are none.
    """
    part = TASKS[name].part
    published = published_numbers(task, part)
    subsets = read_subsets(experiment, name, folder, published)
    counts = [
        (len(each.parts[part]["sentence1"]), published[each.name]["sentence1"].texts)
        for each in subsets
    ]
    same = [each for each, (ours, mtebs) in zip(subsets, counts, strict=True) if ours == mtebs]
    if experiment.evalsets[name].part:
        same = subsets
    if not same:
        ours, mtebs = counts[0]
        raise EmsError(f"our {name} has {ours:,} sentences of {subsets[0].name}, MTEB {mtebs:,}")
    return load_task(name, same)


def _columns(task: Any, part: str, subset: str) -> Iterator[tuple[Any, str, str]]:
    """Yield (rows, their column, its name in MTEB's numbers) of both sides of a subset."""
    if task.parallel_subsets:
        rows, names = task.dataset[part], subset.split("-")
    else:
        rows = task.dataset[subset][part] if subset in task.dataset else task.dataset[part]
        names = list(COLUMNS[:2])
    for column, side in zip(names, COLUMNS, strict=False):
        yield rows, column, side


def count_published(task: Any) -> int:
    """Return how many subsets of a loaded task have the numbers that MTEB publishes."""
    same = set(task.hf_subsets)
    for part in task.eval_splits:
        published = published_numbers(task, part)
        known: dict[tuple[int, str], Numbers] = {}  # many directions share a language's column
        for subset in task.hf_subsets:
            for rows, column, side in _columns(task, part, subset):
                key = id(rows), column
                if key not in known:
                    known[key] = numbers_of(list(rows[column]))
                if published.get(subset, {}).get(side) != known[key]:
                    same.discard(subset)
    return len(same)


def find_data(task: Any, experiment: Experiment, folders: dict[str, Path]) -> tuple[Any, str]:
    """Return (task with its data, "cache" or our set). Raises `EmsError` that says why there is
    none.
    """
    reason = load_hub(task)
    if not reason:
        return task, "cache"
    ours = [name for name, each in TASKS.items() if each.task == task.metadata.name]
    for name in ours:
        if name not in experiment.evalsets:
            continue
        default = default_folder(experiment, name, Path(site_settings().data))
        try:
            found = load_ours(task, name, experiment, folders.get(name, default))
        except EmsError as error:
            reason = f"{reason}; {error}"
        else:
            part = experiment.evalsets[name].part
            return found, f"{name}, part {part}" if part else name
    raise EmsError(reason)


# --- scores


def run_task(task: Any, model: Any, experiment: Experiment, options: argparse.Namespace) -> Outcome:
    """Return how a task went."""
    import mteb

    outcome = Outcome(task.metadata.name, len(task.hf_subsets))
    try:
        task, outcome.data = find_data(task, experiment, dict(options.evalset))
    except EmsError as error:
        outcome.reason = str(error)
        return outcome
    if ", part " not in outcome.data:  # a part that is evaluated is not learnt from
        outcome.trained_on = trained_on(outcome.task, experiment, Path(options.model))
    outcome.ran, outcome.published = len(task.hf_subsets), count_published(task)
    done = mteb.evaluate(model, task, cache=None, encode_kwargs={"batch_size": 64})
    (result,) = done.task_results
    outcome.f1 = 100 * float(result.get_score())
    if options.results and outcome.is_whole:
        save_result(result, options.results, options.model)
    return outcome


def trained_on(task: str, experiment: Experiment, folder: Path) -> list[str]:
    """Return the corpora with sentences of the task that the experiment's export learnt from."""
    if not (folder / EXPORTED).is_file():
        return []
    of_experiment = read_json(folder / EXPORTED, Json).get("experiment") == experiment.name
    learnt = {corpus.name for corpus in experiment.corpora} if of_experiment else set()
    return [name for name in CORPORA.get(task, ()) if name in learnt]


def mean_of(scores: Mapping[str, Any], tasks: list[str]) -> float | None:
    """Return the mean score of the tasks; None unless all of them have one."""
    if not tasks or not {*tasks} <= {*scores}:
        return None
    return mean(float(scores[name]) for name in tasks)


def peer_rows(path: Path = PEERS) -> dict[str, dict[str, str]]:
    """Return the scores of the peers as printed: "model (parameters)" -> task -> F1."""
    peers: dict[str, dict[str, str]] = {}
    for row in read_table(path):
        system = f"{row['model']} ({row['parameters']})"
        peers.setdefault(system, {})[row["task"]] = row["f1"]
    return peers


# --- tables


def _markdown(rows: list[list[Any]]) -> str:
    """Return rows as a Markdown table: numbers with two digits, None as a dash."""
    shown = [
        ["-" if v is None else f"{v:.2f}" if isinstance(v, float) else str(v) for v in row]
        for row in rows
    ]
    shown.insert(1, ["---"] * len(rows[0]))
    return "".join(f"| {' | '.join(row)} |\n" for row in shown)


def as_table(outcomes: list[Outcome]) -> str:
    """Return a row for each task of the benchmark: its data, subsets and score, or the reason."""
    rows: list[list[Any]] = [["task", "data", "subsets", "F1", "note"]]
    for each in outcomes:
        data = each.data or f"not run: {each.reason}"
        subsets = f"{each.ran:,} of {each.subsets:,}"
        rows.append([each.task, data, subsets, each.f1, each.note()])
    return _markdown(rows)


def compare(name: str, outcomes: list[Outcome]) -> str:
    """Return the model and its peers: MTEB's mean, and the tasks that ran whole with their mean."""
    ours = {each.task: each.f1 for each in outcomes if each.is_whole}
    whole = [*ours]
    means = [f"mean of these {len(whole)}"] if len(whole) > 1 else []
    rows: list[list[Any]] = [["system", f"mean of {ALL}", *means, *whole]]
    if len(whole) == len(outcomes):
        ours[ALL] = mean_of(ours, whole)
    for system, scores in {name: ours, **peer_rows()}.items():
        same = [mean_of(scores, whole) for _ in means]
        rows.append([system, scores.get(ALL), *same, *(scores.get(task) for task in whole)])
    return _markdown(rows)


# --- the command


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--model", required=True, help="any folder of an encoder")
    add("--experiment", help="experiment with our sets (default: that of config.yaml)")
    add("--tasks", help="some of MTEB's names, with commas (default: all 13)")
    folder = Assignment("NAME=FOLDER", Path)
    add("--evalset", nargs="*", default=[], type=folder, help="NAME=FOLDER of evaluation data")
    add("--results", type=Path, help="folder for MTEB's result files, for `ems publish --mteb`")
    add("--download", action="store_true", help="fetch missing data from the Hugging Face hub")
    add("--out", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> None:
    """Run the tasks, print the tables and write the JSON."""
    if not options.download:  # before anything imports huggingface_hub
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    experiment, model = experiment_of(options.experiment), load_model(options.model)
    tasks = bitext_tasks()
    known = [task.metadata.name for task in tasks]
    names = options.tasks.split(",") if options.tasks else known
    if wrong := [name for name in names if name not in known]:
        raise EmsError(f"--tasks: found {wrong[0]!r}; allowed: {', '.join(known)}")
    outcomes = []
    for task in tasks:
        skipped = Outcome(task.metadata.name, len(task.hf_subsets), reason="not in --tasks")
        wanted = skipped.task in names
        outcomes.append(run_task(task, model, experiment, options) if wanted else skipped)
    whole = {each.task: each.f1 for each in outcomes if each.is_whole and each.f1 is not None}
    print(as_table(outcomes))
    print(compare(Path(options.model).resolve().name, outcomes))
    report = {"mteb": version("mteb"), "benchmark": BENCHMARK, "model": options.model}
    report |= {"mean": mean_of(whole, known), "mean_of_whole": mean_of(whole, [*whole])}
    report["tasks"] = [asdict(each) | {"whole": each.is_whole} for each in outcomes]
    write_json(options.out, report)


def main(arguments: list[str]) -> int:
    """Run the command line."""
    return ended(lambda: run(parse(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
