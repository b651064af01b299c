"""Run MTEB's own tasks on a model, with an experiment's evaluation sets in the place of the hub's.

    python envs/mteb_offline.py --model exports/ems --experiment demo --out mteb.json
        [--bench tatoeba,ntrex,bucc2018,sib200] [--evalset NAME=FOLDER ...] [--scores FOLDER]
        [--results FOLDER]

Each task gets our sentences in the layout of its data set on the Hugging Face hub. Encoding,
search, classifier and metrics are MTEB's. The same figures are computed once more, from the vectors
of `ems.Encoder` by the definitions of docs/benchmarks.md. `hub: true` in the JSON marks a subset
with as many sentences and characters as MTEB publishes for its own data. `--results` writes the
results of tasks with such subsets only, as MTEB does: <model>/<revision>/<task>.json.
"""

import argparse
import csv
import os
import sys
import warnings
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import EXPORTED, read_json, write_json
from ems.base.processes import look_rarely
from ems.base.records import Json
from ems.bench.retrieval import QUERIES
from ems.bench.scores import ENGLISH, read_score_file
from ems.commands.common import experiment_of, site_settings
from ems.commands.flags import Assignment
from ems.config.experiment import Experiment
from ems.config.languages import load_languages
from ems.config.plugins import module
from ems.corpora.evalsets.sets import default_folder, read_bitext
from ems.use.encoder import Encoder

TASKS = {
    "tatoeba": "Tatoeba",
    "ntrex": "NTREXBitextMining",
    "bucc2018": "BUCC.v2",
    "sib200": "SIB200Classification",
}
NTREX_CODES = {  # where MTEB's NTREX does not have FLORES-200's code
    "fa": "fas_Arab",
    "lv": "lav_Latn",
    "mn": "mon_Mong",
    "ms": "msa_Latn",
    "sq": "sqi_Latn",
    "sw": "swa_Latn",
    "tl": "fil_Latn",
}
PARTS = {"train": "train", "validation": "dev", "test": "test"}  # of SIB-200: MTEB's name, ours
ENGLISH_NTREX = "eng_Latn"
Figures = dict[str, float]  # name of a metric -> percent
Texts = dict[str, list[str]]


@dataclass
class Subset:
    """What MTEB scores apart: a direction, or a language.

    `parts` has the columns of each part: {"test": {"sentence1": [...], "sentence2": [...]}}, or
    "text" and "category" of each of `PARTS`. `source` and `target` are those of our score file.
    """

    name: str
    source: str
    target: str
    parts: dict[str, Texts]
    hub: bool = False
    mteb: Figures = field(default_factory=dict)
    ours: Figures = field(default_factory=dict)
    score_file: float | None = None

    def figures(self) -> dict[str, Any]:
        """Return all but the texts."""
        return {key: value for key, value in vars(self).items() if key not in ("name", "parts")}


# --- our data in MTEB's layout


def read_subsets(
    experiment: Experiment, name: str, folder: Path, known: Container[str]
) -> list[Subset]:
    """Return the subsets of a benchmark that MTEB knows too. Raises `EmsError` if there is none."""
    read = {"tatoeba": _tatoeba, "ntrex": _ntrex, "bucc2018": _bucc, "sib200": _sib200}[name]
    subsets = [subset for subset in read(experiment, folder) if subset.name in known]
    if not subsets:
        codes = ", ".join(experiment.evalsets[name].languages)
        raise EmsError(f"evalsets.{name}: MTEB's {TASKS[name]} has none of {codes}")
    return subsets


def _pair(name: str, source: str, target: str, first: list[str], second: list[str]) -> Subset:
    return Subset(name, source, target, {"test": {"sentence1": first, "sentence2": second}})


def _tatoeba(experiment: Experiment, folder: Path) -> Iterator[Subset]:
    """Yield "deu-eng", ...; the sentences on the hub have kept their line ends."""
    for code in experiment.evalsets["tatoeba"].languages:
        sides = read_bitext(experiment, "tatoeba", folder, code)
        first, second = ([f"{line}\n" for line in side] for side in sides)
        yield _pair(f"{code}-eng", code, ENGLISH, first, second)


def _ntrex(experiment: Experiment, folder: Path) -> Iterator[Subset]:
    """Yield "deu_Latn-eng_Latn" and every other direction between two languages."""
    flores = {each.iso1: each.flores200 for each in load_languages().values()}
    columns: dict[str, tuple[str, list[str]]] = {}
    for code in experiment.evalsets["ntrex"].languages:
        foreign, english = read_bitext(experiment, "ntrex", folder, code)
        if columns.setdefault(ENGLISH_NTREX, (ENGLISH, english))[1] != english:
            raise EmsError(f"{folder}: {code}: its English sentences are not those of the others")
        columns[NTREX_CODES.get(code, flores.get(code, code))] = code, foreign
    for one, (source, first) in columns.items():
        for other, (target, second) in columns.items():
            yield _pair(f"{one}-{other}", source, target, first, second)


def _bucc(experiment: Experiment, folder: Path) -> Iterator[Subset]:
    """Yield "de-en", ...: the gold pairs of the part training alone, as BUCC.v2 has them."""
    for code in experiment.evalsets["bucc2018"].languages:
        texts = module("bucc2018", "data").read_part(folder, code, "training")
        first = [texts.sentences[one] for one, _ in texts.gold]
        second = [texts.english[other] for _, other in texts.gold]
        yield _pair(f"{code}-en", code, ENGLISH, first, second)


def _sib200(experiment: Experiment, folder: Path) -> Iterator[Subset]:
    """Yield "deu_Latn", ...; on the hub the published files were read as CSV, with its quotes."""
    for code, language in experiment.evalsets["sib200"].languages.items():
        module("sib200", "data").read_unit(folder, code)  # raises for a bad file
        parts = {}
        for part, own in PARTS.items():
            with open(folder / code / f"{own}.tsv", encoding="utf-8", newline="") as reader:
                header, *rows = csv.reader(reader, delimiter="\t")
            parts[part] = {key: [row[at] for row in rows] for at, key in enumerate(header)}
        yield Subset(code, ENGLISH, language, parts)


# --- MTEB's figures


def load_task(name: str, subsets: list[Subset]) -> Any:
    """Return MTEB's task of a benchmark, filled with our sentences."""
    import mteb

    names = [subset.name for subset in subsets]
    task = mteb.get_task(TASKS[name], hf_subsets=names, eval_splits=["test"])
    task.dataset = _dataset(name, subsets)
    task.dataset_transform()
    task.data_loaded = True
    statistics = task.metadata.descriptive_stats["test"]["hf_subset_descriptive_stats"]
    for subset in subsets:
        subset.hub = _is_of_hub(subset.parts["test"], statistics[subset.name])
    return task


def _dataset(name: str, subsets: list[Subset]) -> Any:
    """Return the data as `datasets` loads them: by subset and part; NTREX a column per language."""
    from datasets import Dataset, DatasetDict

    if name == "ntrex":
        columns: Texts = {}
        for subset in subsets:
            columns |= zip(subset.name.split("-"), subset.parts["test"].values(), strict=True)
        return DatasetDict(test=Dataset.from_dict(columns))
    return {
        subset.name: DatasetDict(
            {part: Dataset.from_dict(texts) for part, texts in subset.parts.items()}
        )
        for subset in subsets
    }


def _is_of_hub(texts: Texts, statistics: dict[str, Any]) -> bool:
    """True if texts have the numbers of sentences and characters that MTEB publishes."""
    return all(
        len(texts[column]) == statistics["num_samples"]
        and sum(map(len, texts[column])) == statistics[f"{column}_statistics"]["total_text_length"]
        for column in ("sentence1", "sentence2", "text")
        if column in texts
    )


def run_task(task: Any, model: Any, subsets: list[Subset]) -> Any:
    """Let MTEB score the model; fill in its accuracy and F1 of each subset; return its result."""
    import mteb

    result = mteb.evaluate(model, task, cache=None, encode_kwargs={"batch_size": 64})
    scores = {row["hf_subset"]: row for row in result.task_results[0].scores["test"]}
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
    for subset in subsets:
        test = subset.parts["test"]
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
    lines = [[TASKS[name], *heads, "score file"], ["---"] * (len(heads) + 2)]
    for first, values in rows.items():
        lines.append([first, *("-" if value is None else f"{value:.2f}" for value in values)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--model", required=True, help="folder that `ems export` wrote")
    add("--experiment", help="experiment (default: that of config.yaml)")
    add("--bench", help=f"some of {','.join(TASKS)} (default: those of the experiment)")
    folder = Assignment("NAME=FOLDER", Path)
    add("--evalset", nargs="*", default=[], type=folder, help="NAME=FOLDER of evaluation data")
    add("--scores", type=Path, help="folder with our score files of this model")
    add("--results", type=Path, help="folder for MTEB's result files, for `ems publish --mteb`")
    add("--out", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def load_model(place: str) -> Any:
    """Return the sentence-transformers model of a folder, whose code is run if it has any.

    Raises `EmsError` if it is none.
    """
    if find_spec("mteb") is None:
        raise EmsError("mteb is not installed; in this project's folder: pip install '.[mteb]'")
    if not (Path(place) / "modules.json").is_file():
        raise EmsError(f"{place}: expected a folder that `ems export` wrote, with modules.json")
    from sentence_transformers import SentenceTransformer

    code = sorted(path.name for path in Path(place).glob("*.py"))
    if code:
        print(f"{place}: sentence-transformers runs {', '.join(code)} of it", file=sys.stderr)
    return SentenceTransformer(place, local_files_only=True, trust_remote_code=bool(code))


def score(name: str, experiment: Experiment, model: Any, options: argparse.Namespace) -> Any:
    """Return the subsets of a benchmark with all figures."""
    import mteb

    default = default_folder(experiment, name, Path(site_settings().data))
    folder = dict(options.evalset).get(name, default)
    known = mteb.get_task(TASKS[name]).metadata.eval_langs
    subsets = read_subsets(experiment, name, folder, known)
    if options.scores:
        read_scores(options.scores, name, subsets)
    task = load_task(name, subsets)
    result = run_task(task, model, subsets)
    if options.results and all(subset.hub for subset in subsets):
        about = read_json(Path(options.model) / EXPORTED, Json)
        place = options.results / Path(options.model).resolve().name / about["identity"]
        place.mkdir(parents=True, exist_ok=True)
        result.to_disk(place / f"{TASKS[name]}.json")
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
    """Run the command line; print an error as one line."""
    look_rarely()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before anything imports huggingface_hub
    warnings.filterwarnings("ignore", module="mteb")
    try:
        run(parse(arguments))
    except EmsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
