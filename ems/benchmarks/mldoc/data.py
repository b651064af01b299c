"""MLDoc: the topic of a news item, four classes, eight languages.

`mldoc-indices/<language>.{dev,test,train.1000,...}` list the items, one per line: `REUTFR18-209642`
is `RCV2_Multilingual_Corpus/french/REUTFR18/209642.xml` and `19970617-667588newsML` is
`rcv1/19970617/667588newsML.xml`, XML files of the user's Reuters corpora. A document has a headline
and paragraphs; MLDoc's own script takes the paragraphs only. Source: Schwenk and Li (LREC 2018),
https://github.com/facebookresearch/MLDoc.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.base.schema import Settings
from ems.corpora.evalsets.formats import Document, Subset, check_count, numbered_lines, parts, tree

CLASSES = ("CCAT", "ECAT", "GCAT", "MCAT")  # corporate, economics, government, markets
TOPICS = ".//codes[@class='bip:topics:1.0']/code"
EVALUATED = ("dev", "test")
NAME = re.compile(r"(\w+)-(\w+)")  # part and number of an item


def file_name(code: str, split: str) -> str:
    return f"mldoc-indices/{code}.{split}"


def file_names(code: str) -> tuple[str, ...]:
    return (*(file_name(code, split) for split in EVALUATED), corpus_folder(code))


def training_files(code: str, settings: Settings | None) -> tuple[str, ...]:
    return (file_name(code, f"train.{settings.train}"),)


def read_index(folder: Path, code: str, split: str) -> list[Path]:
    """Return the files of a split in order; raise `EmsError` for a malformed line."""
    path, items = folder / file_name(code, split), []
    for number, line in numbered_lines(path):
        name = NAME.fullmatch(line.strip())
        if name is None:
            raise EmsError(f"{path}: line {number}: expected PART-NUMBER, found {line[:40]!r}")
        items.append(folder / corpus_folder(code) / name[1] / f"{name[2]}.xml")
    check_count(len(items), path, "names of news items")
    return items


def read_split(folder: Path, code: str, split: str) -> Iterator[Document]:
    """Yield the documents of a split; raise `EmsError` for an item without exactly one class."""
    for path in read_index(folder, code, split):
        labels, headline, text = read_item(path)
        if len(labels) != 1:
            raise mistake("classes of an item", path=path, count=len(labels), classes=CLASSES)
        yield Document(labels[0], headline, text)


def read_part(folder: Path, place: Subset, size: int | None) -> tuple[Path, Iterator[Document]]:
    split = {"train": f"train.{size}", "valid": "dev", "test": "test"}[place.part]
    return folder / file_name(place.code, split), read_split(folder, place.code, split)


def read_sides(folder: Path, code: str) -> list[Iterator[str]]:
    return [parts(read_split(folder, code, split)) for split in EVALUATED]


def corpus_folder(code: str) -> str:
    """Return the folder of a language ("german") within the Reuters data."""
    return "rcv1" if code == "english" else f"RCV2_Multilingual_Corpus/{code}"


def read_item(path: Path) -> tuple[list[str], str, str]:
    """Return (classes, headline, paragraphs on lines). Raises `EmsError` if it is no news item."""
    root = tree(path)
    if root.tag != "newsitem":
        raise EmsError(f"{path}: expected <newsitem>, found <{root.tag}>")
    topics = [topic.get("code", "") for topic in root.findall(TOPICS)]
    headline = root.findtext("headline", default="")  # <title> starts with the country
    texts = ("".join(p.itertext()).strip() for p in root.findall(".//p"))
    labels = [label for label in CLASSES if label in topics]
    return labels, headline.strip(), "\n".join(filter(None, texts))
