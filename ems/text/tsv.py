"""The pair files between the text stages: lines `first<TAB>second<TAB>line`, UTF-8, LF.

`line` is the line number in the corpus, from 1. A file of documents of one language has lines
`text<TAB>line`, one per sentence, and an empty line after each document.
"""

import io
from collections.abc import Iterator
from itertools import compress, islice
from pathlib import Path

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import read_json, reading_bytes, sha256_file, write_json
from ems.base.records import Count, NonBlank, Record
from ems.base.texts import batched, other_than_text

LIST = "files.json"  # list of a folder of pair files or reports: name -> SHA-256
CLEAN, SEGMENTED = "clean", "segmented"  # folders of pair files
BOUNDARY = b"\n"  # the line after a document
MIN_SENTENCES = 2  # of a document: a single sentence has no context
Pair = tuple[str, str, int]  # or (text, line) of a document
BatchColumns = tuple[tuple[str, ...], ...]  # (first, second, line), or (text, line) of documents


class CleanCounts(Record):
    read: Count
    removed: dict[str, Count]
    kept: Count


class Counted(CleanCounts):
    documents: CleanCounts | None = None


def codes_of(path: Path) -> tuple[str, ...]:
    """Return the two languages of a pair file, or the one of documents, from the file name."""
    codes = tuple(path.stem.split("-"))
    if len(codes) > 2 or not all(codes):
        raise mistake("no name of a pair file", path=path)
    return codes


def is_pairs(folder: Path) -> bool:
    """Return whether a folder holds only the files that its list names."""
    try:
        listed = read_json(folder / LIST, dict[str, NonBlank])
    except EmsError:
        return False
    return {path.name for path in folder.iterdir()} <= {LIST, *listed}


def write_list(folder: Path) -> None:
    write_json(folder / LIST, {path.name: sha256_file(path) for path in sorted(folder.iterdir())})


def read_tsv(path: Path, sides: int = 2) -> Iterator[Pair]:
    """Stream pairs, or sentences (`sides=1`). Raises `Damaged` with the number of a bad line."""
    for columns in read_columns(path, sides=sides):
        if sides == 1:  # without the boundaries
            columns = tuple(tuple(compress(column, columns[-1])) for column in columns)
        *texts, lines = columns
        yield from zip(*texts, map(int, lines), strict=True)


def read_columns(
    path: Path, start: int = 0, count: int | None = None, number: int = 1, sides: int = 2
) -> Iterator[BatchColumns]:
    """Stream `count` lines (default: all) from the byte `start`, where line `number` begins, in
    batches, column by column; line numbers stay strings. With one side, the file has documents, and
    text and line are "" after each. Errors: see `read_tsv`.
    """
    try:
        with reading_bytes(path) as raw:
            raw.seek(start)
            reader = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
            for lines in batched(islice(reader, count), len):
                yield _columns(path, lines, number, sides)
                number += len(lines)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 ({error.reason}) after line {number - 1:,}"
        raise Damaged(path, other_than_text(path) or problem) from None


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
    with reading_bytes(path) as reader:
        return sum(block.count(b"\n") for block in iter(lambda: reader.read(1 << 20), b""))


def count_texts(path: Path) -> int:
    """Count the pairs of a file, or the sentences of documents; see `check_count`."""
    lines = count_lines(path)
    check_count(path, lines)
    if len(codes_of(path)) > 1:
        return lines
    with open(path, "rb") as reader:
        return lines - sum(line == BOUNDARY for line in reader)


def check_count(path: Path, lines: int) -> None:
    """Raise `Damaged` for a file of a workflow whose number of lines has changed: the report
    text/clean/<corpus>/<version>/<pair>.json counts the lines in text/clean and text/segmented.
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
        raise Damaged(report, "`read` minus `removed` is not `kept`")
    expected = counted.kept + (counted.documents.kept if counted.documents else 0)
    if lines != expected:
        raise Damaged(path, f"expected {expected:,} lines, found {lines:,}")
