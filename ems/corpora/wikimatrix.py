"""WikiMatrix as LASER mined it: `WikiMatrix.<a>-<b>.tsv.gz`, lines `score<TAB>text<TAB>text`.

Source: Schwenk et al., "WikiMatrix" (EACL 2021); the margin score is that of Artetxe & Schwenk
(2019), and its authors recommend 1.04, the sentence-transformers recipe 1.075. That "the entire
WikiMatrix" of EMS v2 section IV-A is this file at 1.075, less its first 1,000 pairs, which
validate, is inferred from the paper's counts; OPUS has the same corpus as Moses zips, at 1.04.

Notable choices:
- the file stands best first, but nothing here relies on it: every line is read, so that a spoilt
  end is an error and never a shorter corpus;
- one file serves every threshold, so the threshold is no part of what is fetched (fetch.py; reading
  must not depend on how files are fetched, or an edit there would clean every corpus again).
"""

import math
from collections.abc import Iterator
from pathlib import Path

from ems.corpora.packed import open_packed, read_lines_of
from ems.damaged import Damaged
from ems.errors import EmsError

THRESHOLD = 1.075
COLUMNS = 3  # score, text of the first language, text of the second


def count_mined(path: Path, threshold: float = THRESHOLD) -> int:
    """Number of pairs with a score of `threshold` or more. Raises `EmsError` when there is none."""
    count = sum(1 for _ in read_mined(path, threshold))
    if not count:
        raise EmsError(f"{path}: no pair in it has a score of {threshold:g} or more")
    return count


def read_mined(path: Path, threshold: float = THRESHOLD) -> Iterator[tuple[str, str]]:
    """Stream the pairs with a score of `threshold` or more, in the file's order, line ends removed.

    Raises `EmsError` with the number of the line for one that is not of three columns, has no
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
    return _score(columns[0], path, where), columns[1], columns[2]


def _score(text: str, path: Path, where: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise Damaged(path, f"{where} begins with {text[:40]!r}, expected a score")
    return score
