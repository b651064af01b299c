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

NumberedColumns = Iterator[tuple[int, list[str]]]
FieldRecord = tuple[int, dict[str, str]]  # (line where it begins, its fields)


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


def rows(path: Path, columns: int) -> NumberedColumns:
    """Yield (number, columns) of each line of a tab-separated file with so many columns."""
    for number, line in numbered_lines(path):
        yield number, _split(path, number, line, columns)


def _split(path: Path, number: int, line: str, expected: int) -> list[str]:
    columns = line.split("\t")
    if len(columns) != expected:
        raise EmsError(f"{path}: line {number} has {len(columns)} columns, expected {expected}")
    return columns


def named_rows(path: Path, names: tuple[str, ...]) -> NumberedColumns:
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
# Expat alone says on which line a record begins. Entity declarations are refused, since a few lines
# of them can grow to gigabytes.


def records(path: Path, name: str) -> Iterator[FieldRecord]:
    """Yield the line of each element `name`, and its children's text. Raises `EmsError`."""
    complete: list[FieldRecord] = []
    record: FieldRecord | None = None
    field, texts = "", [""]

    def start(element: str, attributes: dict[str, str]) -> None:
        nonlocal record, field, texts
        if element == name:
            record = (parser.CurrentLineNumber, {})
        elif record is not None and not field:
            field, texts = element, []

    def end(element: str) -> None:
        nonlocal record, field
        if element == name and record is not None:
            complete.append(record)
            record = None
        elif record is not None and element == field:
            record[1][field] = "".join(texts).strip()
            field = ""

    def refuse(*_: object) -> None:
        raise EmsError(f"{path}: {ENTITIES}")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: texts.append(text) if field else None
    parser.EntityDeclHandler = refuse
    with opened(path) as reader:
        while True:
            block = reader.read(XML_BLOCK)
            try:
                parser.Parse(block, not block)
            except expat.ExpatError as error:
                problem = expat.errors.messages.get(error.code, "damaged")
                where = f"{path}: line {error.lineno}"
                raise EmsError(f"{where}: not valid XML ({problem})") from None
            yield from complete
            complete.clear()
            if not block:
                return


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
# Decontamination takes the whole text, its title, each line and each sentence, as a parallel corpus
# holds sentences. They end at . ! ? … before white space, at 。！？ and at line ends. This cuts too
# often (after "Mr."), which costs a few more keys, but needs no model.


@dataclass(frozen=True)
class Document:
    """A text with its class and its title, '' where it has none."""

    label: str
    title: str
    text: str


@dataclass(frozen=True)
class Subset:
    """A part (train, valid, test) of a set of documents: code of the language, domain or ''."""

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
