"""XNLI: does the premise entail the hypothesis? Fifteen languages, dev 2,490 and test 5,010 pairs.

`XNLI-1.0/xnli.{dev,test}.tsv` hold all languages below one header (or `.jsonl`, an object a line,
with the same names); `XNLI-MT-1.0/multinli/multinli.train.en.tsv` is the English training part:
premise, hypo, label. Source: Conneau et al., "XNLI" (EMNLP 2018),
https://github.com/facebookresearch/XNLI. The monolingual paper's section 4.2 (Table 1).

Notable choices:
- of the training archive only English is read, as the papers' probe trains on English alone;
- it says "contradictory" where dev and test say "contradiction": one label here;
- training pairs are streamed, and decontamination leaves them out: a classifier learns from them,
  no score is computed on them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ems.errors import EmsError
from ems.evalsets.lines import Columns, named_rows, numbered_lines, some
from ems.files import parse_json
from ems.settings import Settings

SPLITS = ("dev", "test")
LABELS = ("entailment", "neutral", "contradiction")
COLUMNS = ("language", "gold_label", "sentence1", "sentence2")
TRAIN = "XNLI-MT-1.0/multinli/multinli.train.en.tsv"


@dataclass(frozen=True)
class Inference:
    """A premise, a hypothesis, and which of LABELS holds between them."""

    premise: str
    hypothesis: str
    label: str


def file_names(code: str) -> tuple[str, ...]:
    """The files of one language, which are those of all of them."""
    return tuple(f"XNLI-1.0/xnli.{split}.tsv" for split in SPLITS)


def other_names(code: str) -> tuple[str, ...]:
    """The same files in their other format."""
    return tuple(f"XNLI-1.0/xnli.{split}.jsonl" for split in SPLITS)


def units(code: str) -> tuple[str, ...]:
    """The archives that hold dev and test."""
    return ("xnli",)


def training_units(code: str) -> tuple[str, ...]:
    """The archive that holds the training part."""
    return ("xnli-mt",)


def training_files(code: str, settings: Settings | None) -> tuple[str, ...]:
    """The training part, which is English for all languages."""
    return (TRAIN,)


def split_path(folder: Path, split: str) -> Path:
    """The file of a split: the tab-separated one, or the .jsonl where only that is there."""
    path = folder / f"XNLI-1.0/xnli.{split}.tsv"
    other = path.with_suffix(".jsonl")
    return other if other.is_file() and not path.is_file() else path


def read_all(folder: Path, split: str) -> Iterator[tuple[str, Inference]]:
    """(language, pair) of each line of dev or test. Raises `EmsError` that names file and line."""
    path = split_path(folder, split)
    for number, (language, label, premise, hypothesis) in _rows(path):
        yield language, _inference(path, number, premise, hypothesis, label)


def read_split(folder: Path, code: str, split: str) -> list[Inference]:
    """The pairs of one language (its iso1 code) of dev or test."""
    found = [pair for language, pair in read_all(folder, split) if language == code]
    some(len(found), split_path(folder, split), f"pairs of the language {code}")
    return found


def read_train(folder: Path) -> Iterator[Inference]:
    """The English training pairs, one by one (392,702 of them)."""
    path = folder / TRAIN
    for number, (premise, hypothesis, label) in named_rows(path, ("premise", "hypo", "label")):
        label = "contradiction" if label == "contradictory" else label
        yield _inference(path, number, premise, hypothesis, label)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """Premises and hypotheses of one language of dev and test."""

    def side(split: str) -> Iterator[str]:
        for pair in read_split(folder, code, split):
            yield from (pair.premise, pair.hypothesis)

    return [side(split) for split in SPLITS]


def _inference(path: Path, number: int, premise: str, hypothesis: str, label: str) -> Inference:
    if label not in LABELS:
        raise EmsError(
            f"{path}: line {number}: found the label {label!r}; expected {', '.join(LABELS)}"
        )
    return Inference(premise, hypothesis, label)


def _rows(path: Path) -> Columns:
    return _json_rows(path) if path.suffix == ".jsonl" else named_rows(path, COLUMNS)


def _json_rows(path: Path) -> Columns:
    for number, line in numbered_lines(path):
        try:
            entry = parse_json(line)
            yield number, [str(entry[name]) for name in COLUMNS]
        except (ValueError, KeyError, TypeError):
            raise EmsError(
                f"{path}: line {number}: expected a JSON object with {', '.join(COLUMNS)}, found "
                f"{line[:40]!r}"
            ) from None


def read_unit(folder: Path, unit: str) -> int:
    """The number of pairs of an archive that was fetched."""
    if unit == "xnli-mt":
        return sum(1 for _ in read_train(folder))
    return sum(1 for split in SPLITS for _ in read_all(folder, split))
