"""RCV2 titles: the topic of a news item, by its headline alone; four classes.

Source: the user's own Reuters corpora (`reuters`). The monolingual paper's section 4.3 (Table 2):
"we only take headlines of articles as the input"; it does not say which articles.

Notable choices:
- every item of a language that has a headline and just one of the four classes counts, in the order
  of its file's name; a benchmark draws from them;
- so decontamination takes them all: whatever is drawn, training has not seen it.
"""

from collections.abc import Iterator
from pathlib import Path

from ems.benchmarks.mldoc.reuters import as_document, corpus_folder, read_item
from ems.errors import EmsError
from ems.evalsets.documents import Document, parts


def file_names(code: str) -> tuple[str, ...]:
    """The folder of one language ("german"): its files are too many to name."""
    return (corpus_folder(code),)


def read_titles(folder: Path, code: str) -> Iterator[Document]:
    """(class, headline) of each item of one language, one by one, without text.

    Raises `EmsError` for a spoilt item, or when the folder has none.
    """
    place, found = folder / corpus_folder(code), 0
    for path in _items(place):
        item = read_item(path)
        if len(item.labels) == 1 and item.headline:
            found += 1
            yield Document(as_document(path, item).label, item.headline, "")
    if not found:
        raise EmsError(
            f"{place}: expected news items (PART/NUMBER.xml) with a headline and one class, found "
            "none"
        )


def _items(place: Path) -> Iterator[Path]:
    """The files of a corpus, part by part: no list of all of them."""
    for part in sorted(place.iterdir()) if place.is_dir() else []:
        yield from sorted(part.glob("*.xml"))


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    """The headlines of one language."""
    return [parts(read_titles(folder, code))]
