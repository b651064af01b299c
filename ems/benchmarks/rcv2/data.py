"""RCV2 titles: the topic of a news item of Reuters, by its headline alone; four classes.

The monolingual paper (section 4.3) says neither which articles it takes nor how many. Every item
with a headline and just one class counts; the benchmark draws as many as MLDoc has, and
decontamination takes them all.
"""

from collections.abc import Iterator
from pathlib import Path

from ems.base.errors import EmsError
from ems.benchmarks.mldoc.data import CLASSES, corpus_folder, read_item
from ems.corpora.evalsets.formats import Document, Subset, parts

__all__ = ["CLASSES"]
DRAWN = "parts"


def file_names(code: str) -> tuple[str, ...]:
    return (corpus_folder(code),)  # its files are too many to name


def read_titles(folder: Path, code: str) -> Iterator[Document]:
    """Yield class and headline of each item of one language, without text.

    Raises `EmsError` for a spoilt item, or when the folder has none.
    """
    corpus, count = folder / corpus_folder(code), 0
    parts_of_it = sorted(corpus.iterdir()) if corpus.is_dir() else []
    for path in (path for part in parts_of_it for path in sorted(part.glob("*.xml"))):
        labels, headline, _ = read_item(path)
        if len(labels) == 1 and headline:
            count += 1
            yield Document(labels[0], headline, "")
    if not count:
        raise EmsError(
            f"{corpus}: expected news items (PART/NUMBER.xml) with a headline and one class, found "
            "none"
        )


def read_part(folder: Path, place: Subset, size: int | None) -> tuple[Path, Iterator[Document]]:
    return folder / corpus_folder(place.code), read_titles(folder, place.code)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    return [parts(read_titles(folder, code))]
