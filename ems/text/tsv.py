"""The pair files between the text stages: `first<TAB>second<TAB>line`, one pair a line, UTF-8, LF.

`line` is that of the corpus, from 1. Documents of one language are `text<TAB>line`, one sentence a
line, with an empty line after each document.
"""

import io
from collections.abc import Iterator
from itertools import compress, islice
from pathlib import Path

from ems.base.batches import batched
from ems.base.errors import Damaged, EmsError
from ems.base.files import read_json, sha256_file, unreadable, write_json
from ems.base.schema import Count, NonBlank, Record

LIST = "files.json"  # of a folder of pair files, or of their reports: name -> SHA-256
CLEAN, SEGMENTED = "clean", "segmented"  # folders of pair files
BOUNDARY = b"\n"  # the line after a document
LEAST = 2  # sentences of a document that is kept: one alone has no context
Pair = tuple[str, str, int]  # or a sentence of a document: (text, line)
BatchColumns = tuple[tuple[str, ...], ...]  # first, second, line; of documents text, line


class CleanCounts(Record):
    """How many pairs, or documents, cleaning read, removed for each reason, and kept."""

    read: Count
    removed: dict[str, Count]
    kept: Count


class Counted(CleanCounts):
    """The counts of the report beside clean text; `documents`: of text of single languages."""

    documents: CleanCounts | None = None


def codes_of(path: Path) -> tuple[str, ...]:
    """Return the languages of a pair file, or the one of documents, by the name of the file."""
    codes = tuple(path.stem.split("-"))
    if len(codes) > 2 or not all(codes):
        raise EmsError(
            f"{path}: expected the name of a pair file like de-en.tsv, or of documents like "
            "en.tsv; rename it"
        )
    return codes


def is_pairs(folder: Path) -> bool:
    """Return whether a folder holds the files that its list names, and nothing else."""
    try:
        listed = read_json(folder / LIST, dict[str, NonBlank])
    except EmsError:
        return False
    return {path.name for path in folder.iterdir()} <= {LIST, *listed}


def write_list(folder: Path) -> None:
    write_json(folder / LIST, {path.name: sha256_file(path) for path in sorted(folder.iterdir())})


def unit_of(codes: tuple[str, ...]) -> str:
    return "pairs" if len(codes) > 1 else "lines"


def read_tsv(path: Path, sides: int = 2) -> Iterator[Pair]:
    """Stream the pairs of a file, or the sentences of documents (one side). Raises `Damaged` with
    the number of a malformed line.
    """
    for columns in read_columns(path, sides=sides):
        if sides == 1:  # without the boundaries
            columns = tuple(tuple(compress(column, columns[-1])) for column in columns)
        *texts, lines = columns
        yield from zip(*texts, map(int, lines), strict=True)


def read_columns(
    path: Path, start: int = 0, count: int | None = None, number: int = 1, sides: int = 2
) -> Iterator[BatchColumns]:
    """Stream the pairs of a file in batches, column by column; lines of origin stay text.

    Reads `count` lines (default: all) from the byte `start`, where line `number` begins. With one
    side the file has documents: text and line are "" after each. Raises `Damaged` as `read_tsv`
    does.
    """
    try:
        with open(path, "rb") as raw:
            raw.seek(start)
            reader = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
            for lines in batched(islice(reader, count), len):
                yield _columns(path, lines, number, sides)
                number += len(lines)
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise Damaged(path, f"not UTF-8 ({error.reason}) after line {number - 1:,}") from None


def _columns(path: Path, lines: list[str], number: int, sides: int) -> BatchColumns:
    rows = [line.removesuffix("\n").split("\t") for line in lines]
    for at, row in enumerate(rows, start=number):
        if sides == 1 and row == [""]:
            row.append("")
        elif len(row) != sides + 1 or not row[sides].isdecimal():
            columns = f"{len(row)} columns, expected {sides + 1} and a line number in the last"
            raise Damaged(path, f"line {at:,} has {columns}")
    if not lines[-1].endswith("\n"):
        raise Damaged(path, f"cut short: line {number + len(lines) - 1:,} has no end")
    return tuple(zip(*rows, strict=True))


def count_lines(path: Path) -> int:
    try:
        with open(path, "rb") as reader:
            return sum(block.count(b"\n") for block in iter(lambda: reader.read(1 << 20), b""))
    except OSError as error:
        raise unreadable(path, error) from None


def count_texts(path: Path) -> int:
    """Return the pairs of a file, or the sentences of documents, checked by `check_count`."""
    lines = count_lines(path)
    check_count(path, lines)
    if len(codes_of(path)) > 1:
        return lines
    with open(path, "rb") as reader:
        return lines - sum(line == BOUNDARY for line in reader)


def check_count(path: Path, lines: int) -> None:
    """Raise `Damaged` for a pair file of a workflow that has lost lines, or has more than it had:
    text/clean/<corpus>/<version>/<pair>.json counts those of the file there and in text/segmented.
    """
    place = path.absolute()
    text, stage, *names = place.parts[-5:]
    if text != "text" or stage not in (CLEAN, SEGMENTED):
        return
    report = place.parents[3] / CLEAN / Path(*names).with_suffix(".json")
    if not report.is_file():
        return
    counted = read_json(report, Counted)
    if counted.read - sum(counted.removed.values()) != counted.kept:
        raise Damaged(report, "what it read less what it removed is not what it kept")
    expected = counted.kept + (counted.documents.kept if counted.documents else 0)
    if lines != expected:
        raise Damaged(path, f"expected {expected:,} lines, found {lines:,}")
