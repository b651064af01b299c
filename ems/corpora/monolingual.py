"""Documents of one language: text, OPUS's zips of raw text, and the dumps of Wikipedia.

Text is plain or gz, one sentence a line, a blank line after each document. Of OPUS's zip each XML
file is a document and each <s> a sentence. A line ends at LF and nowhere else. One that is not
UTF-8 is an error with its number, or becomes None. A document is held in memory as a whole, so a
file without blank lines is an error and not a full machine.

A dump, `<code>wiki-<date>-pages-articles-multistream.xml.bz2`, is bzip2 streams one after the
other: the head with the site's names, then a hundred pages each, then the end of the XML. So pieces
of it can be read by many processes, and an interrupted reader goes on in the middle.
"""

import bz2
import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import ParseError, iterparse

from ems.base.errors import Damaged, EmsError
from ems.base.files import unreadable
from ems.corpora.archive import (
    BLOCK,
    Budget,
    guarded,
    open_member,
    open_packed,
    open_zip,
    read_lines_of,
)
from ems.corpora.moses import decode_lines

LARGEST = 1 << 26  # bytes of a document: the Bible has 4 million
# of a dump: 80 bits that begin a stream (no other bytes look like this), and what it says in XML
STREAM, STREAM_BYTES = re.compile(rb"BZh[1-9]1AY&SY"), 10
ROOT, END = b"<mediawiki", b"</mediawiki>\n"


@dataclass(frozen=True)
class RawDocument:
    """The lines of one document with their ends; `first` is the number of the first of them.

    A blank line that ends no document is an empty one.
    """

    first: int
    lines: tuple[bytes, ...]


def read_documents(path: Path) -> Iterator[RawDocument]:
    """Yield the documents of a file. Raises `EmsError` for a bad archive, one that is beyond the
    limits, and a document of more than LARGEST bytes.
    """
    if path.suffix == ".zip":
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
            yield RawDocument(first, tuple(lines))
            lines, first, held = [], number + 1, 0
        if lines:
            yield RawDocument(first, tuple(lines))


def _raw_documents(path: Path) -> Iterator[RawDocument]:
    """Yield the documents of OPUS's raw/LANGUAGE.zip; sentences are numbered through its files."""
    first = 1
    with open_zip(path) as packed:
        for info in packed.infolist():
            if not info.filename.endswith(".xml"):
                continue
            if info.file_size > LARGEST:
                many = f"{info.filename} has {info.file_size:,} bytes, more than {LARGEST:,}"
                raise EmsError(f"{path}: {many}; divide it into files of a document each")
            with open_member(packed, info, Budget(path)) as stream:
                lines = tuple(_sentences(stream, path, info.filename))
            yield RawDocument(first, lines)
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
    if held > LARGEST:
        raise EmsError(
            f"{path}: the document that begins at line {first:,} is longer than {LARGEST:,} "
            "bytes; expected a blank line after each document: put them in"
        )


def decoded(document: RawDocument, path: Path, undecodable: str) -> list[str | None]:
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


# --- dumps of Wikipedia


def check_dump(path: Path) -> dict[str, int]:
    """Return {}. Raises `EmsError` for a file that does not begin as a dump."""
    with bz2.open(path) as packed:
        start = guarded(packed, path, Budget(path)).read(BLOCK)
    if not start.lstrip().startswith(ROOT):
        raise EmsError(f"{path}: expected a dump of MediaWiki, found {start[:40]!r}")
    return {}


def streams(path: Path) -> tuple[list[int], str]:
    """Return where each stream of a dump begins and where the last one ends, and the SHA-256."""
    places: list[int] = []
    hasher, read, rest = hashlib.sha256(), 0, b""
    try:
        with open(path, "rb") as reader:
            while block := reader.read(BLOCK):
                hasher.update(block)
                start, joined = read - len(rest), rest + block
                places += [start + match.start() for match in STREAM.finditer(joined)]
                read += len(block)
                rest = joined[-STREAM_BYTES + 1 :]
    except OSError as error:
        raise unreadable(path, error) from None
    if places[:1] != [0]:
        raise Damaged(path, "not a bzip2 file")
    return [*places, read], hasher.hexdigest()


def open_pages(path: Path, head: int, start: int, end: int) -> BinaryIO:
    """Open the streams in the bytes `start` to `end` as XML of its own, with the head of the dump,
    which is its first `head` bytes.

    Raises `EmsError` if the first of them does not begin with a page.
    """
    try:
        with open(path, "rb") as reader:
            first = reader.read(head)
            reader.seek(start)
            pages = reader.read(end - start)
            whole = not reader.read(1)
    except OSError as error:
        raise unreadable(path, error) from None
    if head:
        _check_page(path, pages, start)
    packed = first + pages + (b"" if whole else bz2.compress(END))
    return guarded(bz2.open(io.BytesIO(packed)), path, Budget(path))


def _check_page(path: Path, pages: bytes, start: int) -> None:
    with bz2.open(io.BytesIO(pages)) as packed:
        first = guarded(packed, path).read(64).lstrip()
    if not first.startswith((b"<page>", END.strip())):
        raise EmsError(
            f"{path}: expected a page at the start of the stream at byte {start:,}, found "
            f"{first[:20]!r}; fetch the dump whose name has `multistream`"
        )
