"""Helpers for readers of benchmarks: lines, columns, XML, documents.

Files are streamed, and errors name the file and the line. Only LF ends a line; a CR before it is
dropped. Quotation marks have no special meaning: XNLI, PAWS-X and BUCC contain unpaired ones.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers.expat import errors

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import parse_json
from ems.base.records import Json
from ems.base.texts import LONGEST, bounded_lines, opened

MISSING = "no such file; fetch the benchmark again, or check the `path` of its evalsets entry"
ENTITIES = "declares entities of its own; check where it came from"
SENTENCE_ENDS = re.compile(r"\s*\n\s*|(?<=[.!?…])\s+|(?<=[。！？])\s*")

NumberedColumns = Iterator[tuple[int, list[str]]]


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    if not path.exists():
        raise EmsError(f"{path}: {MISSING}")
    return opened(path)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of each line. Raises `EmsError` for a missing file or one not UTF-8."""
    with _opened(path) as reader:
        for number, line in enumerate(bounded_lines(reader), start=1):
            if len(line) > LONGEST + 1:
                raise EmsError(f"{path}: line {number:,} is longer than {LONGEST:,} bytes")
            try:
                yield number, line.decode("utf-8").removesuffix("\n").rstrip("\r")
            except UnicodeDecodeError as error:
                raise Damaged(path, f"line {number} is not UTF-8 ({error.reason})") from None


def rows(path: Path, columns: int) -> NumberedColumns:
    """Yield (line number, columns) of a tab-separated file. Raises `EmsError` for other widths."""
    for number, line in numbered_lines(path):
        yield number, _split(path, number, line, columns)


def _split(path: Path, number: int, line: str, expected: int) -> list[str]:
    columns = line.split("\t")
    if len(columns) != expected:
        raise EmsError(f"{path}: line {number} has {len(columns)} columns, expected {expected}")
    return columns


def named_rows(path: Path, names: tuple[str, ...]) -> NumberedColumns:
    """Yield (line number, the columns `names`) of a tab-separated file with a header."""
    lines = numbered_lines(path)
    header = next(lines, (0, ""))[1].split("\t")
    missing = [name for name in names if name not in header]
    if missing:
        raise mistake("column missing", path=path, found=names, missing=missing[0])
    places = [header.index(name) for name in names]
    for number, line in lines:
        columns = _split(path, number, line, len(header))
        yield number, [columns[place] for place in places]


def json_rows(path: Path, read: Callable[[Json], Any], expected: str) -> Iterator[tuple[int, Any]]:
    """Yield (line number, what `read` returns) of JSON objects. Raises `EmsError` for others."""
    for number, line in numbered_lines(path):
        try:
            row = read(parse_json(line))
        except (ValueError, KeyError, TypeError):
            wanted = f"expected a JSON object with {expected}"
            raise EmsError(f"{path}: line {number}: {wanted}, found {line[:40]!r}") from None
        yield number, row


def check_count(count: int, path: Path, expected: str) -> None:
    if not count:
        raise EmsError(f"{path}: expected {expected}, found none; fetch the benchmark again")


def read_sentences(path: Path) -> list[str]:
    """Return one sentence per line. Raises `EmsError` for a missing file or an empty line."""
    lines = [line for _, line in numbered_lines(path)]
    for number, line in enumerate(lines or [""], start=1):
        if not line.strip():
            raise EmsError(f"{path}: line {number} is empty; expected one sentence on every line")
    return lines


# --- XML: entity declarations are refused, since a few lines of them can expand to gigabytes


def records(path: Path, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (first line, {child: text}) of each element `name`. Raises `EmsError` for bad XML."""
    parser, begin = ElementTree.XMLPullParser(("start", "end")), 0
    with _opened(path) as reader:
        try:
            for number, line in chain(enumerate(reader, start=1), [(0, b"")]):
                if b"<!ENTITY" in line:
                    raise EmsError(f"{path}: {ENTITIES}")
                if line:
                    parser.feed(line)
                else:
                    parser.close()
                for event, element in parser.read_events():
                    if element.tag == name and event == "start":
                        begin = number
                    elif element.tag == name:
                        yield begin, {own.tag: "".join(own.itertext()).strip() for own in element}
                        element.clear()
        except ElementTree.ParseError as error:
            problem = errors.messages.get(error.code, "damaged")
            line = f"{path}: line {error.position[0]}"
            raise EmsError(f"{line}: not valid XML ({problem})") from None


def tree(path: Path) -> ElementTree.Element:
    """Parse a small XML document. Raises `EmsError` with the line if it is not valid."""
    with _opened(path) as reader:
        content = reader.read()
    if b"<!ENTITY" in content:
        raise EmsError(f"{path}: {ENTITIES}")
    try:
        return ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise EmsError(f"{path}: line {error.position[0]}: not valid XML ({error})") from None


# --- documents: decontamination removes the whole text, its title, each line and each sentence,
# because parallel corpora consist of sentences. A sentence ends at . ! ? … before white space, at
# 。！？ and at line ends. This splits too often (after "Mr."), but needs no model.


@dataclass(frozen=True)
class Document:
    """A text with its class (`label`) and its title ('' if it has none)."""

    label: str
    title: str
    text: str


@dataclass(frozen=True)
class Subset:
    """One part (train, valid, test) of a document set: language code, domain ('' if none)."""

    code: str
    domain: str
    part: str


def sentences(text: str) -> list[str]:
    return [part for part in map(str.strip, SENTENCE_ENDS.split(text)) if part]


def parts(documents: Iterable[Document]) -> Iterator[str]:
    """Yield the texts that training must not contain: title, text, and each sentence of both."""
    for document in documents:
        for text in filter(None, (document.title, document.text)):
            yield text
            if len(cut := sentences(text)) > 1:
                yield from cut
