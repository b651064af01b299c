"""JSON lines: an object with the codes of both languages, or with these in `translation`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ems.corpora.own.rows import Bad, Row, bad, decoded, lines_of, pair
from ems.corpora.own.tsv import count
from ems.corpora.packed import OWN, open_packed

__all__ = ["count", "of_object", "rows"]


def rows(paths: list[Path], codes: tuple[str, str]) -> Iterator[Row]:
    """Yield the rows; one without both texts is bad."""
    with open_packed(paths[0], OWN) as stream:
        for line in lines_of(stream):
            yield line if isinstance(line, Bad) else _row(line, codes)


def _row(line: bytes, codes: tuple[str, str]) -> Row:
    text = decoded(line)
    if isinstance(text, Bad):
        return text
    try:
        return of_object(json.loads(text), codes, text)
    except (ValueError, RecursionError):
        return bad("malformed", text)


def of_object(value: Any, codes: tuple[str, str], shown: str) -> Row:
    """Return the row of an object with the texts; null is no text. `shown` is how it is written."""
    if isinstance(value, dict) and isinstance(value.get("translation"), dict):
        value = value["translation"]
    if not isinstance(value, dict) or any(code not in value for code in codes):
        return bad("malformed", shown)
    texts = ["" if value[code] is None else value[code] for code in codes]
    if not all(isinstance(text, str) for text in texts):
        return bad("malformed", shown)
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:  # "\ud800" is half of a character
        return bad("undecodable", shown)
    return pair(*texts)
