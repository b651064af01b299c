"""The LASER Tatoeba v1 benchmark: `tatoeba.<iso3>-eng.<iso3>` and `tatoeba.<iso3>-eng.eng`.

Source: facebookresearch/LASER data/tatoeba/v1 (112 languages, at most 1,000 pairs each); the
English sides differ from language to language. EMS v2 section V-A.
"""

from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.evalsets.formats import read_sentences


def file_names(code: str) -> tuple[str, str]:
    """Return the two file names of one language (its code in the benchmark, like "deu")."""
    return f"tatoeba.{code}-eng.{code}", f"tatoeba.{code}-eng.eng"


def read_language(folder: Path, code: str) -> tuple[list[str], list[str]]:
    """(sentences, English sentences) of one language, aligned line by line."""
    first, second = (read_sentences(folder / name) for name in file_names(code))
    if len(first) != len(second):
        raise EmsError(unequal(folder, code, [len(first), len(second)]))
    return first, second


def unequal(folder: Path, code: str, counts: list[int]) -> str:
    """Return the error message for sides of different lengths."""
    names = file_names(code)
    return (
        f"{folder}: {names[0]} has {counts[0]:,} lines and {names[1]} has {counts[1]:,}; "
        "both sides of the benchmark must be equal"
    )


def read_sides(folder: Path, code: str) -> tuple[list[str], list[str]]:
    return read_language(folder, code)


def read_unit(folder: Path, unit: str) -> int:
    return len(read_language(folder, unit)[0])
