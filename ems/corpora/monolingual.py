"""Documents of one language: text, OPUS's zips of raw text, and the dumps of Wikipedia.

Text is plain or gz, one sentence a line, a blank line after each document. Of OPUS's zip each XML
file is a document and each <s> a sentence. A document is held in memory as a whole, so a file
without blank lines is an error and not a full machine.

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
from ems.corpora import archive

LARGEST = 1 << 26  # bytes of a document: the Bible has 4 million
# of a dump: 80 bits that begin a stream (no other bytes look like this), and what it says in XML
STREAM, STREAM_BYTES = re.compile(rb"BZh[1-9]1AY&SY"), 10
ROOT, END = b"<mediawiki", b"</mediawiki>\n"


@dataclass(frozen=True)
class RawDocument:
    """The lines of one document with their ends, the first of them number `first`; maybe none."""

    first: int
    lines: tuple[bytes, ...]


def read_documents(path: Path) -> Iterator[RawDocument]:
    """Yield the documents of a file. Raises `EmsError` for a bad archive or a huge document."""
    if path.suffix == ".zip":
        yield from _raw_documents(path)
        return
    with archive.open_packed(path) as stream:
        lines: list[bytes] = []
        first, held = 1, 0
        for number, line in enumerate(archive.read_lines_of(stream, str(path)), start=1):
            if not line.strip():
                yield RawDocument(first, tuple(lines))
                lines, first, held = [], number + 1, 0
                continue
            lines.append(line)
            held += len(line)
            if held > LARGEST:
                raise EmsError(
                    f"{path}: the document that begins at line {first:,} is longer than "
                    f"{LARGEST:,} bytes; expected a blank line after each document: put them in"
                )
        if lines:
            yield RawDocument(first, tuple(lines))


def _raw_documents(path: Path) -> Iterator[RawDocument]:
    """Yield the documents of OPUS's raw/LANGUAGE.zip; sentences are numbered through its files."""
    first = 1
    with archive.open_zip(path) as packed:
        for info in packed.infolist():
            if not info.filename.endswith(".xml"):
                continue
            if info.file_size > LARGEST:
                many = f"{info.filename} has {info.file_size:,} bytes, more than {LARGEST:,}"
                raise EmsError(f"{path}: {many}; divide it into files of a document each")
            lines = []
            with archive.open_member(packed, info, archive.Budget(path)) as stream:
                try:
                    for _, element in iterparse(stream):
                        if element.tag == "s":
                            sentence = " ".join("".join(element.itertext()).split())
                            lines.append(sentence.encode() + b"\n")
                            element.clear()
                except ParseError as error:
                    problem = f"expected XML with a sentence in each <s>, {error}"
                    raise Damaged(path, f"{info.filename}: {problem}") from None
            yield RawDocument(first, tuple(lines))
            first += len(lines)


def count_documents(path: Path) -> dict[str, int]:
    """Return the numbers of documents with text, and of such lines. Raises `EmsError` for 0."""
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
        start = archive.guarded(packed, path, archive.Budget(path)).read(archive.BLOCK)
    if not start.lstrip().startswith(ROOT):
        raise EmsError(f"{path}: expected a dump of MediaWiki, found {start[:40]!r}")
    return {}


def streams(path: Path) -> tuple[list[int], str]:
    """Return where each stream of a dump begins and where the last one ends, and the SHA-256."""
    places: list[int] = []
    hasher, read, rest = hashlib.sha256(), 0, b""
    try:
        with open(path, "rb") as reader:
            while block := reader.read(archive.BLOCK):
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
    """Open the streams between two bytes as XML, with the head of the dump. Raises `EmsError`."""
    try:
        with open(path, "rb") as reader:
            first = reader.read(head)
            reader.seek(start)
            pages = reader.read(end - start)
            whole = not reader.read(1)
    except OSError as error:
        raise unreadable(path, error) from None
    if head:
        with bz2.open(io.BytesIO(pages)) as packed:
            page = archive.guarded(packed, path).read(64).lstrip()
        if not page.startswith((b"<page>", END.strip())):
            raise EmsError(
                f"{path}: expected a page at the start of the stream at byte {start:,}, found "
                f"{page[:20]!r}; fetch the dump whose name has `multistream`"
            )
    content = first + pages + (b"" if whole else bz2.compress(END))
    return archive.guarded(bz2.open(io.BytesIO(content)), path, archive.Budget(path))
