"""A file of two columns, divided by one tab; plain or packed."""

from collections.abc import Iterator
from pathlib import Path

from ems.corpora.own.rows import Bad, Row, bad, decoded, lines_of, pair
from ems.corpora.packed import OWN, count_lines_of, open_packed


def count(paths: list[Path]) -> int:
    """Return the number of lines."""
    with open_packed(paths[0], OWN) as stream:
        return count_lines_of(stream)


def rows(paths: list[Path], codes: tuple[str, str]) -> Iterator[Row]:
    """Yield the rows; one that has not exactly two columns is bad."""
    with open_packed(paths[0], OWN) as stream:
        for line in lines_of(stream):
            yield line if isinstance(line, Bad) else _row(line)


def _row(line: bytes) -> Row:
    text = decoded(line)
    if isinstance(text, Bad):
        return text
    columns = text.split("\t")
    return pair(*columns) if len(columns) == 2 else bad("malformed", text)
