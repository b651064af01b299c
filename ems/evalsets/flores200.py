"""FLORES-200, devtest: `devtest/<code>.devtest`, 1,012 sentences, the same in every language.

Source: NLLB Team, "No Language Left Behind" (2022), https://github.com/facebookresearch/flores. EMS
v2 section V-B (Table VII).
"""

from pathlib import Path

from ems.evalsets.tatoeba import read_sentences


def file_names(code: str) -> tuple[str, ...]:
    """The files of one language (its code, like "deu_Latn")."""
    return (f"devtest/{code}.devtest",)


def read_language(folder: Path, code: str) -> list[str]:
    """The sentences of one language. Raises `EmsError` for a bad file."""
    return [line for name in file_names(code) for line in read_sentences(folder / name)]
