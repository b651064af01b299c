"""BOUQuET: data/<level>_level/<split>/<code>.parquet, of sentences and paragraphs, gated.

Texts with one `uniq_id` are translations; each was written in one of 8 pivot languages, and
`src_text` has it in the language of the file (`tgt_text` in English). Test, which is scored, has
854 sentences in 198 paragraphs, dev 504 in 120; training has neither. At a fixed commit. Arabic is
Egyptian. Files .jsonl of the same columns are read too, which needs no pyarrow. Source: Andrews et
al. (2025), https://arxiv.org/abs/2502.04314, https://huggingface.co/datasets/facebook/bouquet.
"""

from functools import partial
from itertools import product
from pathlib import Path

from ems.corpora.evalsets.formats import texts_by_id

LEVELS, SPLITS = ("sentence", "paragraph"), ("test", "dev")
read_texts = partial(texts_by_id, key="uniq_id", text="src_text")


def file_names(code: str, suffix: str = ".parquet") -> tuple[str, ...]:
    places = product(LEVELS, SPLITS)
    return tuple(f"data/{level}_level/{split}/{code}{suffix}" for level, split in places)


other_names = partial(file_names, suffix=".jsonl")


def read_language(folder: Path, code: str, level: str = "sentence") -> list[str]:
    return read_texts(folder / f"data/{level}_level/test/{code}.parquet")


def read_sides(folder: Path, code: str) -> list[list[str]]:
    return [read_texts(folder / name) for name in file_names(code)]


def read_unit(folder: Path, unit: str) -> int:
    return sum(map(len, read_sides(folder, unit)))
