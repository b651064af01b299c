"""The LASER Tatoeba v1 benchmark: `tatoeba.<iso3>-eng.<iso3>` and `tatoeba.<iso3>-eng.eng`.

Source: facebookresearch/LASER data/tatoeba/v1 (112 languages, at most 1,000 pairs each); the
English sides differ from language to language. EMS v2 section V-A.
"""

from pathlib import Path

from ems.base.errors import mistake
from ems.corpora.evalsets.formats import read_sentences


def file_names(code: str) -> tuple[str, str]:
    return f"tatoeba.{code}-eng.{code}", f"tatoeba.{code}-eng.eng"


def read_language(folder: Path, code: str) -> tuple[list[str], list[str]]:
    """Return (sentences, English sentences), aligned line by line."""
    first, second = (read_sentences(folder / name) for name in file_names(code))
    if len(first) != len(second):
        (one, other), counts = file_names(code), {"lines": len(first), "others": len(second)}
        raise mistake("sides of a benchmark", folder=folder, first=one, second=other, **counts)
    return first, second


read_sides = read_language


def read_unit(folder: Path, unit: str) -> int:
    return len(read_language(folder, unit)[0])
