"""What the two MTEB scripts share: our sentences in MTEB's layout, and the model that MTEB scores.

`TASKS` has the benchmarks of EMS whose sentences MTEB scores too. A subset is what MTEB scores
apart: a direction, or a language.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ems.base.errors import EmsError
from ems.base.processes import look_rarely
from ems.bench.scores import ENGLISH
from ems.config.experiment import Experiment
from ems.config.languages import load_languages
from ems.config.plugins import module
from ems.corpora.evalsets.sets import read_bitext
from ems.use.encoder import Encoder

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
COLUMNS = ("sentence1", "sentence2", "text")  # of MTEB's data sets
Figures = dict[str, float]  # name of a metric -> percent
Texts = dict[str, list[str]]


@dataclass
class Subset:
    """What MTEB scores apart: a direction, or a language.

    `parts` has the columns of each part: {"test": {"sentence1": [...], "sentence2": [...]}}, or
    "text" and "category" of each of `PARTS`. `source` and `target` are as in our score file.
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
    subsets = [each for each in TASKS[name].read(experiment, folder) if each.name in known]
    if not subsets:
        codes = ", ".join(experiment.evalsets[name].languages)
        raise EmsError(f"evalsets.{name}: MTEB's {TASKS[name].task} has none of {codes}")
    return subsets


def _pair(name: str, source: str, target: str, *sides: list[str], part: str = "test") -> Subset:
    return Subset(name, source, target, {part: dict(zip(COLUMNS, sides, strict=False))})


def _tatoeba(experiment: Experiment, folder: Path) -> Iterator[Subset]:
    """Yield "deu-eng", ...; the sentences on the hub have kept their line ends."""
    for code in experiment.evalsets["tatoeba"].languages:
        sides = read_bitext(experiment, "tatoeba", folder, code)
        first, second = ([f"{line}\n" for line in side] for side in sides)
        yield _pair(f"{code}-eng", code, ENGLISH, first, second)


def _all_directions(columns: dict[str, tuple[str, list[str]]], part: str) -> Iterator[Subset]:
    """Yield every direction between two columns: MTEB's code -> (our language, sentences)."""
    for one, (source, first) in columns.items():
        for other, (target, second) in columns.items():
            yield _pair(f"{one}-{other}", source, target, first, second, part=part)


def _ntrex(experiment: Experiment, folder: Path) -> Iterator[Subset]:
    """Yield "deu_Latn-eng_Latn" and every other direction between two languages."""
    flores = {each.iso1: each.flores200 for each in load_languages().values()}
    columns: dict[str, tuple[str, list[str]]] = {}
    for code in experiment.evalsets["ntrex"].languages:
        foreign, english = read_bitext(experiment, "ntrex", folder, code)
        if columns.setdefault(ENGLISH_NTREX, (ENGLISH, english))[1] != english:
            raise EmsError(f"{folder}: {code}: its English sentences differ from the others")
        columns[NTREX_CODES.get(code, flores.get(code, code))] = code, foreign
    yield from _all_directions(columns, "test")


def _flores(experiment: Experiment, folder: Path) -> Iterator[Subset]:
    """Yield "deu_Latn-eng_Latn", ...; the sentences on the hub have no spaces at their ends."""
    read = module("flores200", "data").read_language
    columns = {
        code: (code, [line.strip() for line in read(folder, code)])
        for code in experiment.evalsets["flores200"].languages
    }
    yield from _all_directions(columns, "devtest")


def _bucc(experiment: Experiment, folder: Path) -> Iterator[Subset]:
    """Yield "de-en", ...: the gold pairs of the part training alone, as BUCC.v2 has them."""
    for code in experiment.evalsets["bucc2018"].languages:
        foreign, english, gold = module("bucc2018", "data").read_part(folder, code, "training")
        first, second = [foreign[one] for one, _ in gold], [english[other] for _, other in gold]
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


class Task(NamedTuple):
    """MTEB's name of a benchmark of ours, its reader, and the part that MTEB scores here."""

    task: str
    read: Callable[[Experiment, Path], Iterator[Subset]]
    part: str = "test"


TASKS = {
    "tatoeba": Task("Tatoeba", _tatoeba),
    "ntrex": Task("NTREXBitextMining", _ntrex),
    "flores200": Task("FloresBitextMining", _flores, "devtest"),
    "bucc2018": Task("BUCC.v2", _bucc),
    "sib200": Task("SIB200Classification", _sib200),
}


def load_task(name: str, subsets: list[Subset]) -> Any:
    """Return MTEB's task of a benchmark, filled with our sentences."""
    import mteb

    names, part = [subset.name for subset in subsets], TASKS[name].part
    task = mteb.get_task(TASKS[name].task, hf_subsets=names, eval_splits=[part])
    task.dataset = _dataset(name, subsets)
    task.dataset_transform()
    task.data_loaded = True
    published = published_numbers(task, part)
    for subset in subsets:
        subset.hub = all(
            numbers_of(texts) == published[subset.name].get(column)
            for column, texts in subset.parts[part].items()
            if column in COLUMNS
        )
    return task


def _dataset(name: str, subsets: list[Subset]) -> Any:
    """Return the data as `datasets` loads them: by subset and part, or a column per language."""
    from datasets import Dataset, DatasetDict

    if name in ("ntrex", "flores200"):
        part = TASKS[name].part
        columns: Texts = {}
        for subset in subsets:
            columns |= zip(subset.name.split("-"), subset.parts[part].values(), strict=True)
        return DatasetDict({part: Dataset.from_dict(columns)})
    return {
        subset.name: DatasetDict(
            {part: Dataset.from_dict(texts) for part, texts in subset.parts.items()}
        )
        for subset in subsets
    }


class Numbers(NamedTuple):
    """What MTEB publishes of a column of texts. It has no checksums."""

    texts: int
    characters: int
    shortest: int
    longest: int
    different: int


def numbers_of(texts: list[str]) -> Numbers:
    """Return the numbers of texts that are compared with MTEB's."""
    lengths = [len(text) for text in texts]
    return Numbers(len(texts), sum(lengths), min(lengths), max(lengths), len(set(texts)))


def published_numbers(task: Any, part: str) -> dict[str, dict[str, Numbers]]:
    """Return the numbers that MTEB publishes about its data: subset -> column -> numbers."""
    whole = task.metadata.descriptive_stats[part]
    keys = ("total_text_length", "min_text_length", "max_text_length", "unique_texts")
    return {
        name: {
            column: Numbers(each["num_samples"], *(each[f"{column}_statistics"][k] for k in keys))
            for column in COLUMNS
            if f"{column}_statistics" in each
        }
        for name, each in whole.get("hf_subset_descriptive_stats", {"default": whole}).items()
    }


# --- the model


class EmsModel:
    """A model that `ems.Encoder` loads, as MTEB calls it. Its vectors have length 1."""

    def __init__(self, place: str) -> None:
        self.encoder = Encoder(place)
        from mteb.models import ModelMeta

        named = {"name": f"ems/{Path(place).resolve().name}", "revision": self.encoder.identity}
        self.mteb_model_meta = ModelMeta.create_empty(named)

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        """Return the vectors of the texts of all batches, float32[N, d]."""
        return self.encoder.encode([text for each in inputs for text in each["text"]], None, True)

    def similarity(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return first @ second.T

    def similarity_pairwise(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return (first * second).sum(axis=1)


def load_model(place: str) -> Any:
    """Return the model for MTEB: sentence-transformers' if the folder is one of these (its code is
    run if it has any), otherwise any model that `ems.Encoder` loads. Raises `EmsError`.
    """
    if find_spec("mteb") is None:
        raise EmsError("mteb is not installed; in this project's folder: pip install '.[mteb]'")
    if not (Path(place) / "modules.json").is_file():
        return EmsModel(place)
    from sentence_transformers import SentenceTransformer

    code = sorted(path.name for path in Path(place).glob("*.py"))
    if code:
        print(f"{place}: sentence-transformers runs {', '.join(code)} of it", file=sys.stderr)
    return SentenceTransformer(place, local_files_only=True, trust_remote_code=bool(code))


def save_result(result: Any, results: Path, place: str) -> None:
    """Write MTEB's result of a task: <results>/<model>/<revision>/<task>.json."""
    folder = results / Path(place).resolve().name / Encoder(place).identity
    folder.mkdir(parents=True, exist_ok=True)
    result.to_disk(folder / f"{result.task_name}.json")


def ended(run: Callable[[], None]) -> int:
    """Run a script to its end; return its exit status. An `EmsError` is printed as one line."""
    look_rarely()
    warnings.filterwarnings("ignore", module="mteb")
    try:
        run()
    except EmsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
