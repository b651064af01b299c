"""Errors of settings, and of a run that they do not fit; mistakes.tsv has their messages."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.base.files import read_table


def mistake(name: str, /, **words: Any) -> EmsError:
    """Return the error of this name, filled in; lists with commas, an empty one as "none"."""
    rows = read_table(Path(__file__).with_suffix(".tsv"))
    message = next(row["message"] for row in rows if row["mistake"] == name)
    for key, word in words.items():
        words[key] = (", ".join(word) or "none") if isinstance(word, list | tuple | dict) else word
    return EmsError(message.format(**words))


def check(mistakes: Mapping[str, Any], /, **words: Any) -> None:
    """Raise the first of the `mistakes` (name -> whether it was made)."""
    for name, made in mistakes.items():
        if made:
            raise mistake(name, **words)
