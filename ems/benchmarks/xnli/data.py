"""XNLI: does the premise entail the hypothesis? Fifteen languages, dev 2,490 and test 5,010 pairs.

`XNLI-1.0/xnli.{dev,test}.tsv` (or `.jsonl`) hold all languages. Only the English training part is
read, as the paper's classifier trains on English alone. The training part has the label
"contradictory" where dev and test have "contradiction". Source: Conneau et al. (EMNLP 2018), https://github.com/facebookresearch/XNLI.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ems.base.errors import mistake
from ems.corpora.evalsets.formats import check_count, json_rows, named_rows

SPLITS = ("dev", "test")
LABELS = ("entailment", "neutral", "contradiction")
COLUMNS = ("language", "gold_label", "sentence1", "sentence2")
TRAIN = "XNLI-MT-1.0/multinli/multinli.train.en.tsv"
file_names = tuple(f"XNLI-1.0/xnli.{split}.tsv" for split in SPLITS)
other_names = tuple(f"XNLI-1.0/xnli.{split}.jsonl" for split in SPLITS)
units = ("xnli",)
training_units = ("xnli-mt",)
training_files = (TRAIN,)


@dataclass(frozen=True)
class Inference:
    premise: str
    hypothesis: str
    label: str


def split_path(folder: Path, split: str) -> Path:
    path = folder / f"XNLI-1.0/xnli.{split}.tsv"
    other = path.with_suffix(".jsonl")
    return other if other.is_file() and not path.is_file() else path


def read_all(folder: Path, split: str) -> Iterator[tuple[str, Inference]]:
    """Yield (language, pair) of each line; raise `EmsError` with file and line for bad input."""
    path = split_path(folder, split)
    rows = named_rows(path, COLUMNS)
    if path.suffix == ".jsonl":
        rows = json_rows(path, lambda row: [str(row[name]) for name in COLUMNS], ", ".join(COLUMNS))
    for number, (language, label, premise, hypothesis) in rows:
        yield language, _inference(path, number, premise, hypothesis, label)


def read_split(folder: Path, code: str, split: str) -> list[Inference]:
    pairs = [pair for language, pair in read_all(folder, split) if language == code]
    check_count(len(pairs), split_path(folder, split), f"pairs of the language {code}")
    return pairs


def read_train(folder: Path) -> Iterator[Inference]:
    """Yield the 392,702 English training pairs."""
    path = folder / TRAIN
    for number, (premise, hypothesis, label) in named_rows(path, ("premise", "hypo", "label")):
        label = "contradiction" if label == "contradictory" else label
        yield _inference(path, number, premise, hypothesis, label)


def _inference(path: Path, number: int, premise: str, hypothesis: str, label: str) -> Inference:
    if label not in LABELS:
        raise mistake("unknown label", path=path, number=number, label=label, labels=LABELS)
    return Inference(premise, hypothesis, label)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    splits = (read_split(folder, code, split) for split in SPLITS)
    return [(text for one in pairs for text in (one.premise, one.hypothesis)) for pairs in splits]


def read_unit(folder: Path, unit: str) -> int:
    if unit == "xnli-mt":
        return sum(1 for _ in read_train(folder))
    return sum(1 for split in SPLITS for _ in read_all(folder, split))
