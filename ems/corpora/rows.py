"""The rows of one file of a corpus, whatever its form: where cleaning begins.

The form follows from the corpus: a Moses zip of OPUS or a mined file of LASER (`moses`), which are
read through `archive`, or the user's own text (`own`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ems.config.experiment import Corpus
from ems.corpora.moses import count_pairs, read_mined, read_pairs
from ems.corpora.own import Bad, count_own, read_own

Side = str | Bad | None  # a text, why the row is no pair, or None: not UTF-8, and it need not be
Row = tuple[Side, Side, int]  # source, target, line


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus (of the user's own maybe several paths), and the language pair that it is
    named after.
    """

    corpus: Corpus
    paths: tuple[Path, ...]
    name: str

    @property
    def path(self) -> Path:
        """The file, or the first of several."""
        return self.paths[0]

    @property
    def place(self) -> str:
        """Where it lies among the corpora, "A/v1/moses/de-en.txt.zip"; of the user's, its path."""
        if self.corpus.paths:
            return ", ".join(map(str, self.paths))
        folder = "mined/" if self.corpus.mined else "" if self.corpus.documents else "moses/"
        return f"{self.corpus.name}/{self.corpus.version}/{folder}{self.path.name}"


def count_rows(file: CorpusFile) -> int:
    """Return the number of rows, bad ones too; of a mined file, those above the threshold."""
    if file.corpus.paths:
        return count_own(list(file.paths))
    if file.corpus.mined:
        return sum(1 for _ in read_mined(file.path, file.corpus.threshold))
    return count_pairs(file.path, file.corpus.name, file.name)


def read_rows(file: CorpusFile, undecodable: str = "error", before: int = 0) -> Iterator[Row]:
    """Yield the rows in the order of the file, sides in the order of the corpus's pair.

    Lines are counted from `before` + 1. Raises `EmsError` for a damaged file, and for text that is
    not UTF-8; with `undecodable="drop"` such a side is None.
    """
    turned = file.name in file.corpus.turned
    for line, (first, second) in enumerate(_pairs(file, undecodable), start=before + 1):
        yield (second, first, line) if turned else (first, second, line)


def _pairs(file: CorpusFile, undecodable: str) -> Iterator[tuple[Side, Side]]:
    if file.corpus.paths:
        first, second = file.name.split("-")
        rows = read_own(list(file.paths), (first, second))
        return ((row, row) if isinstance(row, Bad) else row for row in rows)
    if file.corpus.mined:
        return read_mined(file.path, file.corpus.threshold)
    return read_pairs(file.path, file.corpus.name, file.name, undecodable)
