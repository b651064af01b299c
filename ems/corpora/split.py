"""Divide a corpus into parts by document, by sentence or by position, alike in all languages.

Documents are not split, since sentences of one document give each other away. They are ordered by
the SHA-256 of their names only, so every language, experiment and seed has the same test part. A
sentence, or a document of one language, goes to the part that its own hash falls into.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ems.base.errors import Damaged, mistake
from ems.base.texts import read_lines
from ems.config.corpus_entries import Split
from ems.corpora.content import check_lock


def read_document_names(path: Path) -> list[str]:
    """Return the document name of each corpus line. Raises `Damaged` for a missing or bad file."""
    names = [line.strip(" \t\r") for line in read_lines(path)]
    if not (names and all(names)):
        raise Damaged(path, "expected a document name on every line, found an empty line")
    return names


def part_of_line(documents: list[str], parts: dict[str, float]) -> list[str]:
    """Return the part of each line: the share that contains the middle of its document."""
    sizes = Counter(documents)
    part, before = {}, 0
    for name in sorted(sizes, key=lambda text: hashlib.sha256(text.encode()).digest()):
        part[name] = part_at((before + sizes[name] / 2) / len(documents), parts)
        before += sizes[name]
    return [part[name] for name in documents]


def part_at(position: float, parts: dict[str, float]) -> str:
    """Return the part whose share contains `position` (0 to 1); shares are in order of names."""
    end = 0.0
    for name, share in sorted(parts.items()):
        end += share
        if position < end:
            return name
    return name


def part_of_text(text: bytes, parts: dict[str, float]) -> str:
    digest = hashlib.sha256(text).digest()
    return part_at(int.from_bytes(digest[:7], "big") / 2**56, parts)


def lines_of_part(documents: Path, split: Split, part: str, lines: int, corpus: Path) -> list[bool]:
    """Return for each line whether it belongs to `part`. Raises `EmsError` for unequal lengths."""
    check_lock(documents)
    names = read_document_names(documents)
    if (named := len(names)) != lines:
        raise mistake("another release", path=documents, named=named, corpus=corpus, lines=lines)
    return [name == part for name in part_of_line(names, split.parts)]


def span_of_part(split: Split, part: str, lines: int) -> tuple[int, int]:
    """Return (start, end) of a part of a corpus divided by position; may be empty."""
    start = 0
    for name, count in split.first.items():
        if name == part:
            return min(start, lines), min(start + count, lines)
        start += count
    return min(start, lines), lines


def shares(available: Sequence[int], budget: int) -> list[int]:
    """Split a budget evenly; an entry with less available passes the rest on to the others."""
    parts, left = [0] * len(available), budget
    for done, index in enumerate(sorted(range(len(available)), key=available.__getitem__)):
        parts[index] = min(available[index], left // (len(available) - done))
        left -= parts[index]
    return parts
