"""RCV2 titles: the topic of a Reuters news item from its headline alone; four classes.

The monolingual paper (section 4.3) does not state which articles it takes, nor how many. We draw as
many as MLDoc has from all items with a headline and one class; decontamination takes all.
"""

from collections.abc import Iterator
from pathlib import Path

from ems.base.errors import mistake
from ems.benchmarks.mldoc.data import CLASSES, corpus_folder, read_item
from ems.corpora.evalsets.formats import Document, Subset, parts

__all__ = ["CLASSES"]
DRAWN = "parts"


def file_names(code: str) -> tuple[str, ...]:
    return (corpus_folder(code),)  # too many files to list


def read_titles(folder: Path, code: str) -> Iterator[Document]:
    """Yield class and headline of each item; raise `EmsError` for a damaged item or for none."""
    corpus, count = folder / corpus_folder(code), 0
    subfolders = sorted(corpus.iterdir()) if corpus.is_dir() else []
    for path in (path for part in subfolders for path in sorted(part.glob("*.xml"))):
        labels, headline, _ = read_item(path)
        if len(labels) == 1 and headline:
            count += 1
            yield Document(labels[0], headline, "")
    if not count:
        raise mistake("no news", corpus=corpus)


def read_part(folder: Path, place: Subset, size: int | None) -> tuple[Path, Iterator[Document]]:
    return folder / corpus_folder(place.code), read_titles(folder, place.code)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    return [parts(read_titles(folder, code))]
