"""FLORES-200: the same sentences in every language, 1,012 in devtest and 997 in dev.

Source: NLLB Team, "No Language Left Behind" (2022), https://github.com/facebookresearch/flores. The
official archive has `devtest/<code>.devtest` and `dev/<code>.dev`; copies have devtest only.
"""

from pathlib import Path

from ems.corpora.evalsets.formats import read_sentences

ARCHIVE = ".tar.gz"  # suffix of the official archive
UNIT = "flores200_dataset"  # the official archive
units = (UNIT,)


def file_names(code: str, dev: bool = False) -> tuple[str, ...]:
    return (f"devtest/{code}.devtest", *([f"dev/{code}.dev"] if dev else []))


def read_language(folder: Path, code: str, dev: bool = False) -> list[str]:
    return [line for name in file_names(code, dev) for line in read_sentences(folder / name)]


def read_sides(folder: Path, code: str, dev: bool = False) -> list[list[str]]:
    return [read_language(folder, code, dev)]


def read_unit(folder: Path, unit: str) -> int:
    if unit != UNIT:
        return len(read_language(folder, unit))
    files = sorted(path for path in folder.glob("dev*/*") if path.is_file())
    return sum(len(read_sentences(path)) for path in files)
