"""What readers of benchmarks share: lines and columns, XML that others made, documents.

Files are streamed, and errors name the file and the line. Only LF ends a line; a CR before it is no
part of the text. Nothing is quoted: a quotation mark is a character like any other (XNLI, PAWS-X
and BUCC hold single ones).
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

from ems.base.errors import EmsError
from ems.base.files import read_lines

MISSING = "no such file; fetch the benchmark again, or check the `path` of its evalsets entry"
ENTITIES = "declares entities of its own; check where it came from"
XML_BLOCK = 1 << 16  # bytes that are parsed at once
SENTENCE_ENDS = re.compile(r"\s*\n\s*|(?<=[.!?…])\s+|(?<=[。！？])\s*")

Columns = Iterator[tuple[int, list[str]]]
Record = tuple[int, dict[str, str]]  # (line where it begins, its fields)


def opened(path: Path) -> BinaryIO:
    """Open a file of a benchmark. Raises `EmsError` if it is absent."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise EmsError(f"{path}: {MISSING}") from None


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of each line. Raises `EmsError` for a missing file or one not UTF-8."""
    with opened(path) as reader:
        for number, line in enumerate(reader, start=1):
            try:
                yield number, line.decode("utf-8").removesuffix("\n").rstrip("\r")
            except UnicodeDecodeError as error:
                raise EmsError(f"{path}: line {number} is not UTF-8 ({error.reason})") from None


def rows(path: Path, columns: int) -> Columns:
    """Yield (number, columns) of each line of a tab-separated file with so many columns."""
    for number, line in numbered_lines(path):
        yield number, _split(path, number, line, columns)


def _split(path: Path, number: int, line: str, expected: int) -> list[str]:
    columns = line.split("\t")
    if len(columns) != expected:
        raise EmsError(f"{path}: line {number} has {len(columns)} columns, expected {expected}")
    return columns


def named_rows(path: Path, names: tuple[str, ...]) -> Columns:
    """Yield (number, the columns `names`) of each line below a tab-separated file's header."""
    lines = numbered_lines(path)
    header = next(lines, (0, ""))[1].split("\t")
    missing = [name for name in names if name not in header]
    if missing:
        raise EmsError(
            f"{path}: expected the columns {', '.join(names)}, found no {missing[0]} in its first "
            "line"
        )
    places = [header.index(name) for name in names]
    for number, line in lines:
        columns = _split(path, number, line, len(header))
        yield number, [columns[place] for place in places]


def some(count: int, path: Path, what: str) -> None:
    """Raise `EmsError` if a file held none of what it should."""
    if not count:
        raise EmsError(f"{path}: expected {what}, found none; fetch the benchmark again")


def read_sentences(path: Path) -> list[str]:
    """Return the lines of a benchmark's file. Raises `EmsError` for a bad file or an empty line."""
    lines = read_lines(path)
    for number, line in enumerate(lines or [""], start=1):
        if not line.strip():
            raise EmsError(f"{path}: line {number} is empty; expected one sentence on every line")
    return [line.rstrip("\r") for line in lines]


# --- XML
#
# Expat is read directly where a file is large: it alone says on which line a record begins. Entity
# declarations are refused, since a few lines of them can grow to gigabytes; no benchmark has one.


class _Records:
    """Collects the children of each element `name`, as text by their names."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.complete: list[Record] = []
        self.record: Record | None = None
        self.field, self.text = "", [""]
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.add
        self.parser.EntityDeclHandler = self.refuse

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == self.name:
            self.record = (self.parser.CurrentLineNumber, {})
        elif self.record is not None and not self.field:
            self.field, self.text = name, []

    def add(self, text: str) -> None:
        if self.field:
            self.text.append(text)

    def end(self, name: str) -> None:
        if name == self.name and self.record is not None:
            self.complete.append(self.record)
            self.record = None
        elif self.record is not None and name == self.field:
            self.record[1][name] = "".join(self.text).strip()
            self.field = ""

    def refuse(self, *_: object) -> None:
        raise EmsError(f"{self.path}: {ENTITIES}")

    def parse(self, block: bytes) -> list[Record]:
        """Parse a block (b"" ends the file); return the records that it completes."""
        try:
            self.parser.Parse(block, not block)
        except expat.ExpatError as error:
            problem = expat.errors.messages.get(error.code, "damaged")
            raise EmsError(f"{self.path}: line {error.lineno}: not valid XML ({problem})") from None
        complete, self.complete = self.complete, []
        return complete


def records(path: Path, name: str) -> Iterator[Record]:
    """Yield each element `name` of a file: the line where it begins, its children's text by name.

    Raises `EmsError` with the line for a file that is no XML.
    """
    collector = _Records(path, name)
    with opened(path) as reader:
        while block := reader.read(XML_BLOCK):
            yield from collector.parse(block)
        yield from collector.parse(b"")


def tree(path: Path) -> ElementTree.Element:
    """Return a small document. Raises `EmsError` with the line for a file that is no XML."""
    with opened(path) as reader:
        content = reader.read()
    if b"<!ENTITY" in content:
        raise EmsError(f"{path}: {ENTITIES}")
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise EmsError(f"{path}: line {error.position[0]}: not valid XML ({error})") from None


# --- documents
#
# Decontamination takes the whole text, its title, each line and each sentence: a parallel corpus
# holds sentences, so it never holds a document as a whole. Sentences end at . ! ? … before white
# space, at 。！？ and at line ends. This cuts too often (after "Mr."), which costs a few more keys,
# but needs no model. No part is too short to be a key: training loses "Super!" if a review says it,
# and the decontamination report counts that.


@dataclass(frozen=True)
class Document:
    """A text with its class ('' where it has none) and its title ('' where it has none)."""

    label: str
    title: str
    text: str


@dataclass(frozen=True)
class Subset:
    """One part of a set of documents: language (its code in the set), domain ('' for none), part.

    The part is "train", "valid" or "test".
    """

    code: str
    domain: str
    part: str


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without white space around them and without empty ones."""
    return [part for part in map(str.strip, SENTENCE_ENDS.split(text)) if part]


def parts(documents: Iterable[Document]) -> Iterator[str]:
    """Return what training must not see of documents: title, text, and each sentence of both."""
    for document in documents:
        for text in filter(None, (document.title, document.text)):
            yield text
            cut = sentences(text)
            if len(cut) > 1:
                yield from cut
