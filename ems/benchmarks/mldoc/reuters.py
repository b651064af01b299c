"""News of Reuters RCV1 (English) and RCV2 (other languages): XML, one file an item.

They lie as the scripts of MLDoc expect them: `rcv1/<day>/<number>newsML.xml` and
`RCV2_Multilingual_Corpus/<language>/<part>/<number>.xml`. Both come on request from NIST
(https://trec.nist.gov/data/reuters/reuters.html); nothing of them may be passed on.
"""

from dataclasses import dataclass
from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.evalsets.formats import Document, tree

CLASSES = ("CCAT", "ECAT", "GCAT", "MCAT")  # corporate, economics, government, markets
TOPICS = ".//codes[@class='bip:topics:1.0']/code"


@dataclass(frozen=True)
class Item:
    """One news item: those of CLASSES that it has, its headline and its paragraphs."""

    labels: tuple[str, ...]
    headline: str
    paragraphs: tuple[str, ...]


def corpus_folder(code: str) -> str:
    """Return the folder of one language ("german"), below that of all Reuters data."""
    return "rcv1" if code == "english" else f"RCV2_Multilingual_Corpus/{code}"


def read_item(path: Path) -> Item:
    """Read one item. Raises `EmsError` for a missing file, or one that is no news item."""
    root = tree(path)
    if root.tag != "newsitem":
        raise EmsError(f"{path}: expected <newsitem>, found <{root.tag}>")
    topics = [topic.get("code", "") for topic in root.findall(TOPICS)]
    headline = root.findtext("headline", default="")  # <title> has the country before it
    texts = ("".join(p.itertext()).strip() for p in root.findall(".//p"))
    labels = tuple(label for label in CLASSES if label in topics)
    return Item(labels, headline.strip(), tuple(filter(None, texts)))


def as_document(path: Path, item: Item) -> Document:
    """Return an item as a document, a paragraph a line. Raises `EmsError` without one class."""
    if len(item.labels) != 1:
        raise EmsError(
            f"{path}: has {len(item.labels)} of the classes {', '.join(CLASSES)}, expected one"
        )
    return Document(item.labels[0], item.headline, "\n".join(item.paragraphs))
