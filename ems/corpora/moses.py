"""Parallel text as it is published: OPUS's Moses zips and LASER's mined files, checked, streamed.

`<corpus>/<version>/moses/<a>-<b>.txt.zip`: only the members `<corpus>.<a>-<b>.<a>` and `.<b>` are
read, and nothing is unpacked to disk. A line ends at LF and nowhere else, so a stray U+2028 or CR
cannot shift one side against the other; unequal line counts are an error, never a truncation.

`WikiMatrix.<a>-<b>.tsv.gz` has lines `score<TAB>text<TAB>text` (Schwenk et al., "WikiMatrix", EACL
2021); the margin score is that of Artetxe & Schwenk (2019), and its authors recommend 1.04, the
sentence-transformers recipe 1.075. That "the entire WikiMatrix" of EMS v2 section IV-A is this file
at 1.075, less its first 1,000 pairs, which validate, is inferred from the paper's counts; OPUS has
the same corpus as Moses zips, at 1.04. Every line is read, best first or not, so a damaged end is
an error and never a shorter corpus. One file serves every threshold, so fetching knows none.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from ems.base.batches import batched
from ems.base.errors import Damaged, EmsError
from ems.corpora.archive import (
    Budget,
    Limits,
    count_lines_of,
    open_member,
    open_packed,
    open_zip,
    read_lines_of,
)

SHOWN = 10  # names of members in an error
LINES = 1000  # decoded at once
MOSES_LIMITS = Limits(1 << 42)  # nothing is unpacked to disk, and CCMatrix en-es has 100 GB of text
THRESHOLD = 1.075  # margin score of a mined pair
COLUMNS = 3  # of a mined file: score, text of the first language, text of the second


def members(corpus: str, pair: str) -> tuple[str, str]:
    """Return the names of the two text members of a pair's archive."""
    first, second = pair.split("-")
    return f"{corpus}.{pair}.{first}", f"{corpus}.{pair}.{second}"


def count_pairs(path: Path, corpus: str, pair: str) -> int:
    """Return the number of sentence pairs.

    Raises `EmsError` for a bad archive, one beyond the limits, or unequal sides.
    """
    names = members(corpus, pair)
    with _open(path, names) as sides:
        counts = [count_lines_of(side) for side in sides]
    if counts[0] != counts[1]:
        raise EmsError(
            f"{path}: the two sides must have equal line counts, but {names[0]} has {counts[0]:,} "
            f"and {names[1]} has {counts[1]:,} lines; the file is broken at its source"
        )
    if not counts[0]:
        raise EmsError(f"{path}: no sentence pairs in it ({names[0]} is empty)")
    return counts[0]


def read_pairs(
    path: Path, corpus: str, pair: str, undecodable: str = "error"
) -> Iterator[tuple[str | None, str | None]]:
    """Yield the pairs of an archive as text, line ends removed.

    Raises `EmsError` with member and line number for text that is not UTF-8; with
    `undecodable="drop"` such a side is None, and the caller counts the pair.
    """
    names = members(corpus, pair)
    with _open(path, names) as sides:
        lines = [
            read_lines_of(side, f"{path}: {name}") for side, name in zip(sides, names, strict=True)
        ]
        number = 1
        for batch in batched(zip(*lines, strict=True), _length, LINES):
            columns = zip(names, zip(*batch, strict=True), strict=True)
            texts = [decode_lines(side, undecodable, path, number, name) for name, side in columns]
            yield from zip(*texts, strict=True)
            number += len(batch)


def _length(pair: tuple[bytes, bytes]) -> int:
    return len(pair[0]) + len(pair[1])


def decode_lines(
    lines: tuple[bytes, ...], undecodable: str, path: Path, number: int, member: str = ""
) -> list[str | None]:
    """Decode lines of a file, or of a member of it; the first of them has this number.

    Raises `EmsError` for a line that is not UTF-8; with `undecodable="drop"` it becomes None.
    """
    try:
        text = b"".join(lines).decode()
        suspect = "\0" in text
    except UnicodeDecodeError:
        suspect = True
    if suspect:
        numbered = enumerate(lines, start=number)
        return [_decode(line, undecodable, path, at, member) for at, line in numbered]
    texts = text.removesuffix("\n").split("\n")
    return [line.rstrip("\r") for line in texts] if "\r" in text else texts


def _decode(line: bytes, undecodable: str, path: Path, number: int, member: str) -> str | None:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        # ASCII in UTF-16, without its byte order mark, can be read as UTF-8
        utf16 = len(text) >= 4 and (set(text[::2]) == {"\0"}) != (set(text[1::2]) == {"\0"})
        problem = "UTF-16: every other character is NUL" if utf16 else ""
    except UnicodeDecodeError as error:
        problem = error.reason
    if not problem:
        return text
    if undecodable == "drop":
        return None
    raise EmsError(
        f"{path}: line {number:,}{f' of {member}' if member else ''} is not UTF-8 ({problem}); "
        "convert the corpus to UTF-8, or set clean.undecodable: drop"
    )


@contextmanager
def _open(path: Path, names: tuple[str, str]) -> Iterator[list[BinaryIO]]:
    """Open both members of an archive as streams, within one budget."""
    with open_zip(path) as archive, ExitStack() as stack:
        missing = [name for name in names if name not in archive.namelist()]
        if missing:
            present = ", ".join(sorted(archive.namelist())[:SHOWN]) or "nothing"
            raise EmsError(f"{path}: expected the member {missing[0]}, found {present}")
        budget = Budget(path, MOSES_LIMITS)
        yield [stack.enter_context(open_member(archive, name, budget)) for name in names]


# --- mined files


def count_mined(path: Path, threshold: float = THRESHOLD) -> int:
    """Return the number of pairs with a score of `threshold` or more. Raises `EmsError` for 0."""
    count = sum(1 for _ in read_mined(path, threshold))
    if not count:
        raise EmsError(f"{path}: no pair in it has a score of {threshold:g} or more")
    return count


def read_mined(path: Path, threshold: float = THRESHOLD) -> Iterator[tuple[str, str]]:
    """Yield the pairs with a score of `threshold` or more, in the file's order, line ends removed.

    Raises `Damaged` with the number of the line for one that is not of three columns, has no
    number for its score, or is not UTF-8.
    """
    with open_packed(path) as stream:
        for number, line in enumerate(read_lines_of(stream, str(path)), start=1):
            score, first, second = _mined_columns(line, path, f"line {number:,}")
            if score >= threshold:
                yield first, second


def _mined_columns(line: bytes, path: Path, where: str) -> tuple[float, str, str]:
    try:
        columns = line.decode("utf-8").rstrip("\r\n").split("\t")
    except UnicodeDecodeError as error:
        raise Damaged(path, f"{where} is not UTF-8 ({error.reason})") from None
    if len(columns) != COLUMNS:
        raise Damaged(path, f"{where} has {len(columns)} columns, expected score, text and text")
    try:
        score = float(columns[0])
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise Damaged(path, f"{where} begins with {columns[0][:40]!r}, expected a score")
    return score, columns[1], columns[2]
