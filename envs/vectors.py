# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy", "jieba==0.42.1", "setuptools<82"]
# ///
"""Mean or sum of word vectors (CCL 2019, section 4.1): lines of a file -> a .npy.

    uv run --script envs/vectors.py mean|sum VECTORS LINES LANGUAGE OUT
    uv run --script envs/vectors.py words LANGUAGE < TEXT > WORDS

VECTORS is the table of one language in the text format of word2vec and fastText, plain or .gz: the
first line has the number of words and the width, each other line a word and its numbers. The words
of a line are its runs of letters, marks and digits in lower case; Chinese is split by jieba, and no
other language that is written without spaces is split. A word without a vector is left out, and a
line without any known word is all zeros. `words` writes the words of each line, with spaces
between: text to make a table of. Only numpy is needed, and jieba for Chinese. The memory holds the
vectors of the words of LINES, not the table.
"""

import gzip
import sys
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np

USAGE = "usage: vectors.py mean|sum VECTORS LINES LANGUAGE OUT, or vectors.py words LANGUAGE"
LEAST = 100  # distinct words of which one must have a vector
Split = Callable[[str], list[str]]


def main(arguments: list[str]) -> None:
    """Run the command line."""
    match arguments:
        case ["words", language]:
            split = splitter(language)
            for line in sys.stdin.buffer:
                sys.stdout.buffer.write(f"{' '.join(split(line.decode()))}\n".encode())
        case ["mean" | "sum" as pooling, vectors, lines, language, out]:
            embed(pooling, Path(vectors), Path(lines), splitter(language), Path(out))
        case _:
            sys.exit(USAGE)


def embed(pooling: str, vectors: Path, lines: Path, split: Split, out: Path) -> None:
    """Write the mean or the sum of the vectors of each line's words, float32[n, d], to `out`."""
    rows: dict[str, int] = {}
    count = 0
    for line in lines_of(lines):
        count += 1
        for word in split(line):
            rows.setdefault(word, len(rows))
    table, known = read_vectors(vectors, rows)
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, table.shape[1])}
    with open(out, "wb") as writer:
        np.lib.format.write_array_header_1_0(writer, header)
        for line in lines_of(lines):
            own = [row for word in split(line) if known[row := rows[word]]]
            vector = table[own].sum(axis=0, dtype=np.float64)  # zeros if there is none
            if pooling == "mean":
                vector /= max(len(own), 1)
            writer.write(vector.astype("<f4").tobytes())


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file (UTF-8; only LF ends a line)."""
    with open(path, encoding="utf-8", newline="\n") as reader:
        yield from reader


def read_vectors(path: Path, rows: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of the words of `rows`, float32[words, d], and which are there, bool.

    Ends the program for a file that cannot be read or has another format, and for one that knows
    none of LEAST words or more.
    """
    if not path.is_file():
        sys.exit(f"{path}: no such file; expected the word vectors of this language")
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as reader:
            table, known = _chosen(path, reader, rows)
    except (OSError, EOFError, zlib.error) as error:
        sys.exit(f"{path}: cannot be read: {error}")
    if len(rows) >= LEAST and not known.any():
        sys.exit(
            f"{path}: expected vectors of words in lower case, found none of {len(rows):,} words; "
            "check that the table is of this language"
        )
    return table, known


def _chosen(path: Path, table: BinaryIO, rows: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Read the vectors of some words. The first of a word counts; an entry of several is none."""
    width = _width(path, table.readline())
    vectors, known = np.zeros((len(rows), width), np.float32), np.zeros(len(rows), bool)
    for at, line in enumerate(table, 2):
        word = line.partition(b" ")[0]
        row = rows.get(word.decode(errors="replace"))
        if row is None or known[row]:
            continue
        first, *numbers = line.rstrip().rsplit(b" ", width)
        if first == word:
            vectors[row], known[row] = _vector(f"{path}, line {at:,}", numbers, width), True
    return vectors, known


def _width(path: Path, header: bytes) -> int:
    """Return the width that the first line of a table says."""
    numbers = header.split()
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        found = header[:50].decode(errors="replace").strip()
        sys.exit(
            f"{path}: expected the number of words and the width in the first line, found "
            f"{found!r}; write the table in the text format of word2vec"
        )
    return int(numbers[1])


def _vector(where: str, numbers: list[bytes], width: int) -> np.ndarray:
    """Return the numbers of a word, float32[width]."""
    try:
        vector = np.array([float(number) for number in numbers], np.float32)
    except ValueError:
        sys.exit(f"{where}: expected a word and {width} numbers; the file is damaged")
    if len(vector) != width or not np.isfinite(vector).all():
        sys.exit(f"{where}: expected {width} finite numbers, found {len(vector)}; make it again")
    return vector


def splitter(language: str) -> Split:
    """Return the function from a line to its words, in lower case."""
    if language != "zh":
        return _runs
    try:
        import jieba
    except ImportError:
        sys.exit("zh: jieba is not installed; run this by `uv run --script`, or pip install jieba")
    jieba.setLogLevel("ERROR")
    return lambda line: [word for run in _runs(line) for word in jieba.cut(run)]


def _runs(line: str) -> list[str]:
    return "".join(map(_kept, line.lower())).split()


@cache
def _kept(character: str) -> str:
    """Return a letter, mark or digit as it is, anything else as a space."""
    return character if unicodedata.category(character)[0] in "LMN" else " "


if __name__ == "__main__":
    main(sys.argv[1:])
