"""Errors whose messages stand in a table: mistakes.tsv in the folder of a room.

Such a message is no part of a stage's source (`ems.base.provenance`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError

TABLES = Path(__file__).parent.parent  # */mistakes.tsv: mistake, message


def mistake(name: str, /, **words: Any) -> EmsError:
    """Return the error of this name, filled in; lists with commas, an empty one as "none"."""
    from ems.base.files import read_table  # imported late: files have mistakes, too

    rows = [row for path in TABLES.glob("*/mistakes.tsv") for row in read_table(path)]
    message = next(row["message"] for row in rows if row["mistake"] == name)
    for key, word in words.items():
        words[key] = (", ".join(word) or "none") if isinstance(word, list | tuple | dict) else word
    return EmsError(message.format(**words))


def check(mistakes: Mapping[str, Any], /, **words: Any) -> None:
    """Raise the first of the `mistakes` (name -> whether it was made)."""
    for name, made in mistakes.items():
        if made:
            raise mistake(name, **words)
