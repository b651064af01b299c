"""Check and stream published parallel text: OPUS's Moses zips and LASER's mined files.

`<corpus>/<version>/moses/<a>-<b>.txt.zip`: only the members `<corpus>.<a>-<b>.<a>` and `.<b>` are
read. Lines are split at LF only, so a stray U+2028 or CR cannot shift one side against the other;
unequal line counts are an error, never a truncation.

`WikiMatrix.<a>-<b>.tsv.gz` has lines `score<TAB>text<TAB>text` (Schwenk et al., EACL 2021): the
margin score of Artetxe & Schwenk (2019). Its authors recommend a threshold of 1.04, which OPUS's
Moses zips have; the sentence-transformers recipe uses 1.075. "The entire WikiMatrix" of EMS v2
section IV-A is this file at 1.075 without 1,000 pairs for validation: inferred from its counts.
"""

import math
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.texts import batched
from ems.config.experiment import Corpus
from ems.corpora import archive
from ems.corpora.monolingual import count_documents
from ems.corpora.own import Bad, count_own, read_own
from ems.corpora.probe import BAD_ROW, Probe, Sample

SHOWN = 10  # member names in an error
LINES = 1000  # decoded at once
# high, because nothing is unpacked to disk and CCMatrix en-es has 100 GB of text
MOSES_LIMITS = archive.Limits(1 << 42)
RawSide = str | Bad | None  # a text, the reason for a bad row, or None for dropped text not UTF-8
RawRow = tuple[RawSide, RawSide, int]  # source, target, line number
THRESHOLD = 1.075  # margin score of a mined pair


def members(corpus: str, pair: str) -> tuple[str, str]:
    first, second = pair.split("-")
    return f"{corpus}.{pair}.{first}", f"{corpus}.{pair}.{second}"


def count_pairs(path: Path, corpus: str, pair: str, sample: Sample | None = None) -> int:
    """Count and `sample` the pairs. Raises `EmsError` for a bad archive, unequal sides, or none."""
    names = members(corpus, pair)
    with _open(path, names) as sides:
        plain = [archive.count_stream_lines] * 2
        counters = [side.count for side in sample.sides] if sample else plain
        counts = [count(side) for count, side in zip(counters, sides, strict=True)]
    if counts[0] != counts[1]:
        sizes = [f"{name} has {count:,}" for name, count in zip(names, counts, strict=True)]
        raise mistake("unequal sides", path=path, sizes=" and ".join(sizes))
    if not counts[0]:
        raise EmsError(f"{path}: contains no sentence pairs ({names[0]} is empty)")
    return counts[0]


def read_pairs(
    path: Path, corpus: str, pair: str, undecodable: str = "error"
) -> Iterator[tuple[str | None, str | None]]:
    """Yield the pairs of a zip. A side not UTF-8 is None ("drop") or an `EmsError` ("error")."""
    names = members(corpus, pair)
    with _open(path, names) as sides:
        lines = map(archive.stream_lines, sides, [f"{path}: {name}" for name in names])
        rows, number = zip(*lines, strict=True), 1
        for batch in batched(rows, lambda row: len(row[0]) + len(row[1]), LINES):
            columns = zip(names, zip(*batch, strict=True), strict=True)
            texts = [decode_lines(side, undecodable, path, number, name) for name, side in columns]
            yield from zip(*texts, strict=True)
            number += len(batch)


def decode_lines(
    lines: tuple[bytes, ...], undecodable: str, path: Path, number: int, member: str = ""
) -> list[str | None]:
    """Decode lines, the first one numbered `number`, as `read_pairs` does."""
    with suppress(UnicodeDecodeError):
        text = b"".join(lines).decode()
        if "\0" not in text:
            texts = text.removesuffix("\n").split("\n")
            return [line.rstrip("\r") for line in texts] if "\r" in text else texts
    decoded: list[str | None] = []
    for line_number, line in enumerate(lines, start=number):
        try:
            text = line.decode("utf-8").rstrip("\r\n")
            # ASCII in UTF-16 without a byte order mark is valid UTF-8
            utf16 = len(text) >= 4 and (set(text[::2]) == {"\0"}) != (set(text[1::2]) == {"\0"})
            problem = "UTF-16: every other character is NUL" if utf16 else ""
        except UnicodeDecodeError as error:
            problem = error.reason
        if problem and undecodable != "drop":
            place = f"line {line_number:,}{f' of {member}' if member else ''}"
            raise mistake("not UTF-8", path=path, place=place, problem=problem)
        decoded.append(None if problem else text)
    return decoded


@contextmanager
def _open(path: Path, names: tuple[str, str]) -> Iterator[list[BinaryIO]]:
    with archive.open_zip(path) as packed, ExitStack() as stack:
        missing = [name for name in names if name not in packed.namelist()]
        if missing:
            present = ", ".join(sorted(packed.namelist())[:SHOWN]) or "nothing"
            raise EmsError(f"{path}: expected the member {missing[0]}, found {present}")
        budget = archive.Budget(path, MOSES_LIMITS)
        yield [stack.enter_context(archive.open_member(packed, name, budget)) for name in names]


# --- mined files


def count_mined(path: Path, threshold: float = THRESHOLD, sample: Sample | None = None) -> int:
    """Count and `sample` the pairs with a score of `threshold` or more; `EmsError` if none."""
    rows = read_mined(path, threshold)
    count = sum(1 for _ in (sample.over(rows) if sample else rows))
    if not count:
        raise EmsError(f"{path}: contains no pair with a score of {threshold:g} or more")
    return count


def read_mined(path: Path, threshold: float = THRESHOLD) -> Iterator[tuple[str, str]]:
    """Yield the pairs with a score of at least `threshold`. Raises `Damaged` for a bad line."""
    with archive.open_packed(path) as stream:
        for number, line in enumerate(archive.stream_lines(stream, str(path)), start=1):
            place = f"line {number:,}"
            try:
                columns = line.decode("utf-8").rstrip("\r\n").split("\t")
            except UnicodeDecodeError as error:
                raise Damaged(path, f"{place} is not UTF-8 ({error.reason})") from None
            if (count := len(columns)) != 3:
                raise Damaged(path, f"{place} has {count} columns, expected score, text and text")
            try:
                score = float(columns[0])
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                raise Damaged(path, f"{place} begins with {columns[0][:40]!r}, expected a score")
            if score >= threshold:
                yield columns[1], columns[2]


# --- rows of a corpus in any form: the input of cleaning


@dataclass(frozen=True)
class CorpusFile:
    """One file of a corpus (your own text may have several paths); `name` is its language pair."""

    corpus: Corpus
    paths: tuple[Path, ...]
    name: str

    @property
    def path(self) -> Path:
        return self.paths[0]

    @property
    def place(self) -> str:
        """Path below the corpora, "A/v1/moses/de-en.txt.zip"; the full paths of your own text."""
        if self.corpus.paths:
            return ", ".join(map(str, self.paths))
        folder = "mined/" if self.corpus.mined else "" if self.corpus.documents else "moses/"
        return f"{self.corpus.name}/{self.corpus.version}/{folder}{self.path.name}"


def count_rows(file: CorpusFile) -> int:
    """Count the rows, including bad ones; in a mined file only rows above the threshold."""
    if file.corpus.paths:
        return count_own(list(file.paths))
    if file.corpus.mined:
        return sum(1 for _ in read_mined(file.path, file.corpus.threshold))
    return count_pairs(file.path, file.corpus.name, file.name)


def read_rows(file: CorpusFile, undecodable: str = "error", before: int = 0) -> Iterator[RawRow]:
    """Yield the rows, sides in the order of the corpus's pair, lines numbered from `before` + 1.
    Raises `EmsError` for a damaged file, and for text not UTF-8 unless `undecodable` is "drop".
    """
    pairs: Iterator[tuple[RawSide, RawSide]]
    if file.corpus.paths:
        rows = read_own(list(file.paths), tuple(file.name.split("-")))
        pairs = ((row, row) if isinstance(row, Bad) else row for row in rows)
    elif file.corpus.mined:
        pairs = read_mined(file.path, file.corpus.threshold)
    else:
        pairs = read_pairs(file.path, file.corpus.name, file.name, undecodable)
    turned = file.name in file.corpus.turned
    for line, (first, second) in enumerate(pairs, start=before + 1):
        yield (second, first, line) if turned else (first, second, line)


def probe_files(paths: list[Path], codes: list[str]) -> Probe:
    """Probe documents of one language, or a zip or own files of two, in a pass; else `EmsError`."""
    name, sample = "-".join(codes), Sample(codes)
    if not all(codes) or len(codes) > 2:
        raise mistake("number of languages", path=paths[0], found=name or "none")
    if len(codes) == 1:
        count_documents(paths[0], sample)
    elif paths[0].suffix == ".zip":
        with archive.open_zip(paths[0]) as packed:
            corpora = [member.rpartition(f".{name}.")[0] for member in packed.namelist()]
        count_pairs(paths[0], max(corpora), name, sample)
    else:
        if len(paths) == 2:
            count_own(paths)  # raises for unequal lengths
        rows = read_own(paths, (codes[0], codes[1]))
        deque(sample.over([BAD_ROW] * 2 if isinstance(row, Bad) else row for row in rows), maxlen=0)
    return sample.probe()
