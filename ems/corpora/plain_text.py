"""Documents of one language: a text file, plain or gz, one sentence a line, a blank line after each
document; or OPUS's zip of raw text, of which each XML file is a document and each <s> a sentence.

A line ends at LF and nowhere else. One that is not UTF-8 is an error with its number, or becomes
None. A document is held in memory as a whole, so a file without blank lines is
an error and not a full machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import ParseError, iterparse

from ems.base.errors import Damaged, EmsError
from ems.corpora.moses import decode_lines
from ems.corpora.packed import Budget, open_member, open_packed, open_zip, read_lines_of

ZIP = ".zip"
DOCUMENT = 1 << 26  # bytes of a document at most: the Bible has 4 million


@dataclass(frozen=True)
class Document:
    """The lines of one document with their ends; `first` is the number of the first of them.

    A blank line that ends no document is an empty one.
    """

    first: int
    lines: tuple[bytes, ...]


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a file. Raises `EmsError` for a bad archive, one that is beyond the
    limits, and a document of more than DOCUMENT bytes.
    """
    if path.suffix == ZIP:
        yield from _raw_documents(path)
        return
    with open_packed(path) as stream:
        lines: list[bytes] = []
        first, held, number = 1, 0, 0
        for number, line in enumerate(read_lines_of(stream, str(path)), start=1):
            if line.strip():
                lines.append(line)
                held += len(line)
                _check_size(path, first, held)
                continue
            yield Document(first, tuple(lines))
            lines, first, held = [], number + 1, 0
        if lines:
            yield Document(first, tuple(lines))


def _raw_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of OPUS's raw/LANGUAGE.zip; sentences are numbered through its files."""
    first = 1
    with open_zip(path) as packed:
        for info in packed.infolist():
            if not info.filename.endswith(".xml"):
                continue
            if info.file_size > DOCUMENT:
                many = f"{info.filename} has {info.file_size:,} bytes, more than {DOCUMENT:,}"
                raise EmsError(f"{path}: {many}; divide it into files of a document each")
            with open_member(packed, info, Budget(path)) as stream:
                lines = tuple(_sentences(stream, path, info.filename))
            yield Document(first, lines)
            first += len(lines)


def _sentences(stream: BinaryIO, path: Path, member: str) -> Iterator[bytes]:
    """Yield the text of each <s>. Raises `EmsError` for what is no XML."""
    try:
        for _, element in iterparse(stream):
            if element.tag == "s":
                yield " ".join("".join(element.itertext()).split()).encode() + b"\n"
                element.clear()
    except ParseError as error:
        raise Damaged(
            path, f"{member}: expected XML with a sentence in each <s>, {error}"
        ) from None


def _check_size(path: Path, first: int, held: int) -> None:
    if held > DOCUMENT:
        raise EmsError(
            f"{path}: the document that begins at line {first:,} is longer than {DOCUMENT:,} "
            "bytes; expected a blank line after each document: put them in"
        )


def decoded(document: Document, path: Path, undecodable: str) -> list[str | None]:
    """Return the sentences of a document, None for one that is not UTF-8.

    Raises `EmsError` with the line of the first of those, unless `undecodable` is "drop".
    """
    return decode_lines(document.lines, undecodable, path, document.first)


def count_documents(path: Path) -> dict[str, int]:
    """Return the number of documents with a sentence, and of lines with text.

    Raises `EmsError` as `read_documents` does, and for a file without a document.
    """
    counts = {"documents": 0, "sentences": 0}
    for document in read_documents(path):
        counts["documents"] += bool(document.lines)
        counts["sentences"] += len(document.lines)
    if not counts["documents"]:
        raise EmsError(f"{path}: no document in it (every line is blank)")
    return counts
