"""A corpus divided into parts, by document, by sentence or by position; the same in all languages.

Whole documents go to a part, since sentences of one document give each other away. Documents are
ordered by the SHA-256 of their names and by nothing else, so every language, experiment and seed
has the same test part. The file of documents has one name a line, for each line of the corpus.

A sentence, or a document of one language, goes to the part that its own hash falls into: which
others there are changes nothing.
"""

import hashlib
from collections import Counter
from pathlib import Path

from ems.base.errors import Damaged, EmsError
from ems.base.files import read_lines
from ems.config.corpus_entries import Split
from ems.corpora.content import check_lock


def read_document_names(path: Path) -> list[str]:
    """Return the document of each line of a corpus. Raises `Damaged` for a bad or absent file."""
    lines = read_lines(path)
    names = [line.strip(" \t\r") for line in lines]
    if not (names and all(names)):
        raise Damaged(path, "expected the name of a document on every line, found an empty one")
    return names


def part_of_line(documents: list[str], parts: dict[str, float]) -> list[str]:
    """Return the part of each line: the one whose share holds the middle of its document."""
    sizes = Counter(documents)
    part, before = {}, 0
    for name in sorted(sizes, key=lambda text: hashlib.sha256(text.encode()).digest()):
        part[name] = part_at((before + sizes[name] / 2) / len(documents), parts)
        before += sizes[name]
    return [part[name] for name in documents]


def part_at(place: float, parts: dict[str, float]) -> str:
    """Return the part whose share holds `place` (0 to 1)."""
    end = 0.0
    for name, share in sorted(parts.items()):
        end += share
        if place < end:
            return name
    return name


def part_of_text(text: bytes, parts: dict[str, float]) -> str:
    digest = hashlib.sha256(text).digest()
    return part_at(int.from_bytes(digest[:7], "big") / 2**56, parts)


def lines_of_part(documents: Path, split: Split, part: str, lines: int, corpus: Path) -> list[bool]:
    """Return for each line of `corpus` if it belongs to `part`. Raises `EmsError`."""
    check_lock(documents)
    names = read_document_names(documents)
    if len(names) != lines:
        raise EmsError(
            f"{documents}: names the documents of {len(names):,} lines, but {corpus} has "
            f"{lines:,}; the two must be of the same release: fetch both again"
        )
    return [name == part for name in part_of_line(names, split.parts)]


def span_of_part(split: Split, part: str, lines: int) -> tuple[int, int]:
    """Return start and end (excluded) of a part of a corpus divided by position, maybe empty."""
    start = 0
    for name, count in split.first.items():
        if name == part:
            return min(start, lines), min(start + count, lines)
        start += count
    return min(start, lines), lines
