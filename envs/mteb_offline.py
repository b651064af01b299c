"""Run MTEB's own tasks on a model, with an experiment's evaluation sets in the place of the hub's.

    python envs/mteb_offline.py --model exports/ems --experiment demo --out mteb.json
        [--bench tatoeba,ntrex,flores200,bucc2018,sib200] [--evalset NAME=FOLDER ...]
        [--scores FOLDER] [--results FOLDER]

Each task gets our sentences in the layout of its data set on the Hugging Face hub. Encoding,
search, classifier and metrics are MTEB's. The same figures are computed once more, from the vectors
of `ems.Encoder` by the definitions of docs/benchmarks.md. `hub: true` in the JSON marks a subset
whose sentences have the numbers that MTEB publishes for its own data (how many, how long, how many
different). `--results` writes the results of tasks with such subsets only, as MTEB does:
<model>/<revision>/<task>.json. envs/mteb_bitext.py runs MTEB's 13 bitext-mining tasks.
"""

import argparse
import os
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from mteb_common import (
    TASKS,
    Figures,
    Subset,
    ended,
    load_model,
    load_task,
    read_subsets,
    save_result,
)

from ems.base.errors import EmsError
from ems.base.files import write_json
from ems.bench.retrieval import QUERIES
from ems.bench.scores import read_score_file
from ems.commands.common import experiment_of, site_settings
from ems.commands.flags import Assignment
from ems.config.experiment import Experiment
from ems.corpora.evalsets.sets import default_folder
from ems.use.encoder import Encoder

# --- MTEB's figures


def run_task(task: Any, model: Any, subsets: list[Subset]) -> Any:
    """Let MTEB score the model; fill in its accuracy and F1 of each subset; return its result."""
    import mteb

    (part,) = task.eval_splits
    result = mteb.evaluate(model, task, cache=None, encode_kwargs={"batch_size": 64})
    scores = {row["hf_subset"]: row for row in result.task_results[0].scores[part]}
    for subset in subsets:
        row = scores[subset.name]
        subset.mteb = {metric: 100 * row[metric] for metric in ("accuracy", "f1")}
    return result.task_results[0]


# --- the same figures from our vectors


class Vectors:
    """The vectors of `ems.Encoder`, of length 1; each list of texts is encoded once."""

    def __init__(self, model: str) -> None:
        self.encoder = Encoder(model)
        self.kept: dict[int, tuple[list[str], np.ndarray]] = {}

    def of(self, texts: list[str]) -> np.ndarray:
        """Return float32[len(texts), d]; zeros for a text without a known piece."""
        if id(texts) not in self.kept:
            self.kept[id(texts)] = texts, self.encoder.encode(texts, normalise=True)
        return self.kept[id(texts)][1]


def mined_figures(queries: np.ndarray, candidates: np.ndarray) -> Figures:
    """Return accuracy and F1 of float32[N, d], row n of both a pair, as MTEB's bitext mining.

    Every candidate is a class of which one query is. With n[c], the number of queries whose nearest
    candidate is c, its F1 is 2 / (1 + n[c]) if its own query is among them, else 0.
    """
    starts = range(0, len(queries), QUERIES)
    nearest = np.concatenate(
        [(queries[at : at + QUERIES] @ candidates.T).argmax(axis=1) for at in starts]
    )
    own = nearest == np.arange(len(queries))
    times = np.bincount(nearest, minlength=len(candidates))
    f1 = np.where(own, 2 / (1 + times), 0)
    return {"accuracy": 100 * float(own.mean()), "f1": 100 * float(f1.mean())}


def learnt_figures(task: Any, learnt: np.ndarray, tested: np.ndarray, subset: Subset) -> Figures:
    """Return accuracy and macro F1 of a language as MTEB's classification.

    A logistic regression on `samples_per_label` examples of each class, drawn `n_experiments`
    times: each time the order of the last time is shuffled with the same seed.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score

    labels, truth = (subset.parts[part]["category"] for part in ("train", "test"))
    order, figures = list(range(len(labels))), []
    for _ in range(task.n_experiments):
        np.random.RandomState(task.seed).shuffle(order)
        seen: Counter[str] = Counter()
        chosen = []
        for at in order:
            seen[labels[at]] += 1
            chosen += [at] if seen[labels[at]] <= task.samples_per_label else []
        classifier = LogisticRegression(max_iter=100, random_state=task.seed)
        classifier.fit(learnt[chosen], [labels[at] for at in chosen])
        answers = classifier.predict(tested)
        macro = f1_score(truth, answers, average="macro")
        figures.append((accuracy_score(truth, answers), macro))
    accuracy, f1 = np.mean(figures, axis=0)
    return {"accuracy": 100 * float(accuracy), "f1": 100 * float(f1)}


def compute_ours(task: Any, vectors: Vectors, subsets: list[Subset]) -> None:
    """Fill in our accuracy and F1 of each subset, by MTEB's definition."""
    (part,) = task.eval_splits
    for subset in subsets:
        test = subset.parts[part]
        if "text" in test:
            parts = (subset.parts[part]["text"] for part in ("train", "test"))
            both = [vectors.of(texts) for texts in parts]
            subset.ours = learnt_figures(task, *both, subset)
        else:
            subset.ours = mined_figures(*(vectors.of(side) for side in test.values()))


def read_scores(folder: Path, name: str, subsets: list[Subset]) -> None:
    """Fill in the value of our score file of the same source and target, the mean of its seeds."""
    rows = [row for row in read_score_file(folder / f"{name}.json", name).rows if not row.measure]
    for subset in subsets:
        place = (subset.source, subset.target)
        values = [row.value for row in rows if (row.source, row.target) == place]
        subset.score_file = mean(values) if values else None


# --- the command


def as_table(name: str, subsets: list[Subset]) -> str:
    """Return a benchmark's figures as Markdown, a row a subset, the mean first."""
    pairs = [(who, metric) for metric in ("f1", "accuracy") for who in ("mteb", "ours")]
    rows = {
        subset.name: [getattr(subset, who)[metric] for who, metric in pairs] + [subset.score_file]
        for subset in subsets
    }
    known = [[v for v in each if v is not None] for each in zip(*rows.values(), strict=True)]
    means = [mean(values) if values else None for values in known]
    rows = {f"mean of {len(subsets)}": means, **rows}
    heads = [f"{who} {metric}" for who, metric in pairs]
    lines = [[TASKS[name].task, *heads, "score file"], ["---"] * (len(heads) + 2)]
    for first, values in rows.items():
        lines.append([first, *("-" if value is None else f"{value:.2f}" for value in values)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--model", required=True, help="any folder of an encoder")
    add("--experiment", help="experiment (default: that of config.yaml)")
    add("--bench", help=f"some of {','.join(TASKS)} (default: those of the experiment)")
    folder = Assignment("NAME=FOLDER", Path)
    add("--evalset", nargs="*", default=[], type=folder, help="NAME=FOLDER of evaluation data")
    add("--scores", type=Path, help="folder with our score files of this model")
    add("--results", type=Path, help="folder for MTEB's result files, for `ems publish --mteb`")
    add("--out", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def score(name: str, experiment: Experiment, model: Any, options: argparse.Namespace) -> Any:
    """Return the subsets of a benchmark with all figures."""
    import mteb

    default = default_folder(experiment, name, Path(site_settings().data))
    folder = dict(options.evalset).get(name, default)
    known = mteb.get_task(TASKS[name].task).metadata.eval_langs
    subsets = read_subsets(experiment, name, folder, known)
    if options.scores:
        read_scores(options.scores, name, subsets)
    task = load_task(name, subsets)
    result = run_task(task, model, subsets)
    if options.results and all(subset.hub for subset in subsets):
        save_result(result, options.results, options.model)
    compute_ours(task, Vectors(options.model), subsets)
    return subsets


def run(options: argparse.Namespace) -> None:
    """Score the model on each benchmark, print the tables and write the JSON."""
    experiment = experiment_of(options.experiment)
    known = [name for name in TASKS if name in experiment.evalsets]
    names = options.bench.split(",") if options.bench else known
    for name in names or [""]:
        if name not in known:
            raise EmsError(
                f"--bench: expected benchmarks of configs/{experiment.name}.yaml that MTEB has, "
                f"found {name!r}; allowed: {', '.join(known) or 'none'}"
            )
    model = load_model(options.model)
    report: dict[str, Any] = {"mteb": version("mteb"), "model": options.model}
    for name in names:
        subsets = score(name, experiment, model, options)
        report[name] = {subset.name: subset.figures() for subset in subsets}
        print(as_table(name, subsets), flush=True)
    write_json(options.out, report)


def main(arguments: list[str]) -> int:
    """Run the command line."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before anything imports huggingface_hub
    return ended(lambda: run(parse(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
