"""The pair files between the text stages: `first<TAB>second<TAB>line`, one pair a line, UTF-8, LF.

`line` is the line of the corpus that the pair comes from, counted from 1.
"""

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ems.batches import batched
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import read_json, unreadable
from ems.shapes import COUNT, mapping, record

CLEAN, SEGMENTED = "clean", "segmented"  # folders of pair files
COUNTED = record({"read": COUNT, "removed": mapping(COUNT), "kept": COUNT})  # of the report beside
Pair = tuple[str, str, int]
Columns = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]  # first, second, line: one batch


def codes_of(path: Path) -> tuple[str, str]:
    """Return the languages of a pair file. Raises `EmsError` when its name does not say them."""
    first, _, second = path.stem.partition("-")
    if not (first and second) or "-" in second:
        raise EmsError(f"{path}: expected the name of a pair file like de-en.tsv; rename it")
    return first, second


def read_tsv(path: Path) -> Iterator[Pair]:
    """Stream the pairs of a file. Raises `Damaged` with the line number of a malformed line."""
    for firsts, seconds, lines in read_columns(path):
        yield from zip(firsts, seconds, map(int, lines), strict=True)


def read_columns(
    path: Path, start: int = 0, count: int | None = None, number: int = 1
) -> Iterator[Columns]:
    """Stream the pairs of a file in batches, column by column; lines of origin stay text.

    Reads `count` lines (default: all) from the byte `start`, where line `number` begins. Raises
    `Damaged` with the number of a malformed line.
    """
    try:
        with open(path, "rb") as raw:
            raw.seek(start)
            reader = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
            for lines in batched(islice(reader, count), len):
                yield _columns(path, lines, number)
                number += len(lines)
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise Damaged(path, f"not UTF-8 ({error.reason}) after line {number - 1:,}") from None


def _columns(path: Path, lines: list[str], number: int) -> Columns:
    rows = [line.removesuffix("\n").split("\t") for line in lines]
    for at, row in enumerate(rows, start=number):
        if len(row) != 3 or not row[2].isdecimal():
            raise Damaged(
                path,
                f"line {at:,} has {len(row)} columns, expected 3 and a line number in the last",
            )
    if not lines[-1].endswith("\n"):
        raise Damaged(path, f"cut short: line {number + len(lines) - 1:,} has no end")
    firsts, seconds, origins = zip(*rows, strict=True)
    return firsts, seconds, origins


def count_lines(path: Path) -> int:
    """Return the number of lines, read in blocks."""
    try:
        with open(path, "rb") as reader:
            return sum(block.count(b"\n") for block in iter(lambda: reader.read(1 << 20), b""))
    except OSError as error:
        raise unreadable(path, error) from None


def check_count(path: Path, lines: int) -> None:
    """Raise `Damaged` for a pair file of a workflow that has lost lines, or has more than it had.

    Both `text/clean/<corpus>/<version>/<pair>.tsv` and the same in `text/segmented` have the lines
    that the report beside the first one counts.
    """
    place = path.absolute()
    text, stage, *names = place.parts[-5:]
    if text != "text" or stage not in (CLEAN, SEGMENTED):
        return
    report = place.parents[3] / CLEAN / Path(*names).with_suffix(".json")
    if not report.is_file():
        return
    counted = read_json(report, COUNTED)
    if counted["read"] - sum(counted["removed"].values()) != counted["kept"]:
        raise Damaged(report, "what it read less what it removed is not what it kept")
    if lines != counted["kept"]:
        raise Damaged(path, f"expected {counted['kept']:,} lines, found {lines:,}")
