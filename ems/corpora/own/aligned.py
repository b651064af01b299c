"""Two files of as many lines, a text in one language and its translation; each plain or packed."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.own.rows import Bad, Row, decoded, lines_of, pair
from ems.corpora.packed import OWN, count_lines_of, open_packed


def count(paths: list[Path]) -> int:
    """Return the number of lines of each. Raises `EmsError` if they differ."""
    counts = []
    for path in paths:
        with open_packed(path, OWN) as stream:
            counts.append(count_lines_of(stream))
    if counts[0] != counts[1]:
        raise EmsError(
            f"{paths[0]} has {counts[0]:,} lines, but {paths[1]} has {counts[1]:,}; a line of one "
            "must be the translation of the same line of the other"
        )
    return counts[0]


def rows(paths: list[Path], codes: tuple[str, str]) -> Iterator[Row]:
    """Yield the pairs of lines."""
    with ExitStack() as stack:
        streams = [stack.enter_context(open_packed(path, OWN)) for path in paths]
        for lines in zip(*map(lines_of, streams), strict=False):  # counted before
            texts = [line if isinstance(line, Bad) else decoded(line) for line in lines]
            wrong = [text for text in texts if isinstance(text, Bad)]
            yield wrong[0] if wrong else pair(*texts)
