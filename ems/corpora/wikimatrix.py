"""WikiMatrix as LASER mined it: `WikiMatrix.<a>-<b>.tsv.gz`, lines `score<TAB>text<TAB>text`.

Source: Schwenk et al., "WikiMatrix" (EACL 2021); the margin score is that of Artetxe & Schwenk
(2019), and its authors recommend 1.04, the sentence-transformers recipe 1.075. That "the entire
WikiMatrix" of EMS v2 section IV-A is this file at 1.075, less its first 1,000 pairs, which
validate, is inferred from the paper's counts; OPUS has the same corpus as Moses zips, at 1.04.

Every line is read, best first or not, so a damaged end is an error and never a shorter corpus. One
file serves every threshold, so fetching knows none.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from ems.base.damaged import Damaged
from ems.base.errors import EmsError
from ems.corpora.packed import open_packed, read_lines_of

THRESHOLD = 1.075
COLUMNS = 3  # score, text of the first language, text of the second


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
            score, first, second = _columns(line, path, f"line {number:,}")
            if score >= threshold:
                yield first, second


def _columns(line: bytes, path: Path, where: str) -> tuple[float, str, str]:
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
