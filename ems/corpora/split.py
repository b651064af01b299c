"""A corpus divided by document: each line's part, the same in all languages; or by position.

Notable choices:
- whole documents go to a part, since sentences of one document give each other away;
- the order of documents is that of the SHA-256 of their names: it depends on nothing else, so every
  language, experiment and seed has the same test part;
- the file of documents has one name a line, for each line of the corpus: line counts must agree.
"""

import hashlib
from pathlib import Path

from ems.config import Split
from ems.corpora.content import check_lock
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import read_lines


def read_documents(path: Path) -> list[str]:
    """The document of each line of a corpus. Raises `EmsError` when there is no such file."""
    lines = read_lines(path)
    names = [line.strip(" \t\r") for line in lines]
    if not (names and all(names)):
        raise Damaged(path, "expected the name of a document on every line, found an empty one")
    return names


def part_of_line(documents: list[str], parts: dict[str, float]) -> list[str]:
    """The part of each line, whose share of the lines is close to that in `parts`.

    Documents stand in the order of their hashes; one whose middle line falls into the share of a
    part belongs to it.
    """
    sizes: dict[str, int] = {}
    for name in documents:
        sizes[name] = sizes.get(name, 0) + 1
    part, before = {}, 0
    for name in sorted(sizes, key=lambda text: hashlib.sha256(text.encode()).digest()):
        part[name] = _at((before + sizes[name] / 2) / len(documents), parts)
        before += sizes[name]
    return [part[name] for name in documents]


def _at(place: float, parts: dict[str, float]) -> str:
    """The part whose share holds `place` (0 to 1); parts stand in the order of their names."""
    end = 0.0
    for name, share in sorted(parts.items()):
        end += share
        if place < end:
            return name
    return name


def lines_of_part(documents: Path, split: Split, part: str, lines: int, corpus: Path) -> list[bool]:
    """Which of the `lines` of `corpus` belong to `part`. Raises `EmsError` when counts differ."""
    check_lock(documents)
    names = read_documents(documents)
    if len(names) != lines:
        raise EmsError(
            f"{documents}: names the documents of {len(names):,} lines, but {corpus} has "
            f"{lines:,}; the two must be of the same release: fetch both again"
        )
    return [name == part for name in part_of_line(names, split.parts)]


def span_of_part(split: Split, part: str, lines: int) -> tuple[int, int]:
    """Where a part of a corpus divided by position starts and ends: lines from 0, end excluded.

    A file that is no longer than its first parts has nothing left for the rest: an empty span.
    """
    start = 0
    for name, count in split.first.items():
        if name == part:
            return min(start, lines), min(start + count, lines)
        start += count
    return min(start, lines), lines
