"""Documents of one language: text files, OPUS's zips of raw text, and Wikipedia dumps.

A text file, plain or compressed, has one sentence per line and a blank line after each document. In
OPUS's zip each XML file is a document and each <s> a sentence. Documents are held in memory as a
whole, so their size is limited: a file without blank lines is an error.

A dump, `<code>wiki-<date>-pages-articles-multistream.xml.bz2`, is a sequence of bzip2 streams: the
head with the site's names, a hundred pages each, the end of the XML. Several processes can read
pieces of it, and an interrupted reader resumes in the middle.
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

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import reading_bytes
from ems.base.texts import opened
from ems.corpora import archive
from ems.corpora.probe import Sample

LARGEST = 1 << 26  # bytes of a document; the Bible has 4 million
# The first 80 bits of a bzip2 stream, which occur nowhere else, and the XML tags of a dump
STREAM, STREAM_BYTES = re.compile(rb"BZh[1-9]1AY&SY"), 10
ROOT, END = b"<mediawiki", b"</mediawiki>\n"


@dataclass(frozen=True)
class RawDocument:
    """Lines of one document with their line ends; `first` is the number of the first line."""

    first: int
    lines: tuple[bytes, ...]


def read_documents(path: Path) -> Iterator[RawDocument]:
    """Yield the documents of a file. Raises `EmsError` for a bad archive or a huge document."""
    if path.suffix == ".zip":
        yield from _raw_documents(path)
        return
    with opened(path) as stream:
        lines: list[bytes] = []
        first, size = 1, 0
        for number, line in enumerate(archive.stream_lines(stream, str(path)), start=1):
            if not line.strip():
                yield RawDocument(first, tuple(lines))
                lines, first, size = [], number + 1, 0
                continue
            lines.append(line)
            size += len(line)
            if size > LARGEST:
                raise mistake("document too long", path=path, first=first, largest=LARGEST)
        if lines:
            yield RawDocument(first, tuple(lines))


def _raw_documents(path: Path) -> Iterator[RawDocument]:
    """Yield the documents of OPUS's raw/LANGUAGE.zip; numbering continues across its files."""
    first = 1
    with archive.open_zip(path) as packed:
        for info in packed.infolist():
            if not info.filename.endswith(".xml"):
                continue
            if info.file_size > LARGEST:
                raise mistake("file of several documents", path=path, info=info, largest=LARGEST)
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


def count_documents(path: Path, sample: Sample | None = None) -> dict[str, int]:
    """Count documents with text and their lines, and `sample` these. Raises `EmsError` if none."""
    counts = {"documents": 0, "sentences": 0}
    for document in read_documents(path):
        counts["documents"] += bool(document.lines)
        counts["sentences"] += len(document.lines)
        if sample:
            sample.sides[0].add(document.lines)
    if not counts["documents"]:
        raise EmsError(f"{path}: contains no document (every line is blank)")
    return counts


def check_dump(path: Path) -> dict[str, int]:
    """Return {}. Raises `EmsError` if the file does not begin like a dump of MediaWiki."""
    with bz2.open(path) as packed:
        start = archive.guarded(packed, path, archive.Budget(path)).read(archive.BLOCK)
    if not start.lstrip().startswith(ROOT):
        raise EmsError(f"{path}: expected a dump of MediaWiki, found {start[:40]!r}")
    return {}


def streams(path: Path) -> tuple[list[int], str]:
    """Return the byte offsets of the streams of a dump, plus its size, and its SHA-256."""
    offsets: list[int] = []
    hasher, read, tail = hashlib.sha256(), 0, b""
    with reading_bytes(path) as reader:
        while block := reader.read(archive.BLOCK):
            hasher.update(block)
            start, joined = read - len(tail), tail + block
            offsets += [start + match.start() for match in STREAM.finditer(joined)]
            read += len(block)
            tail = joined[-STREAM_BYTES + 1 :]
    if offsets[:1] != [0]:
        raise Damaged(path, "not a bzip2 file")
    return [*offsets, read], hasher.hexdigest()


def open_pages(path: Path, head: int, start: int, end: int) -> BinaryIO:
    """Open the streams in bytes `start` to `end` as XML, after the `head` bytes of the dump. Raises
    `EmsError` if they do not begin with a page, as in a dump that is not multistream.
    """
    with reading_bytes(path) as reader:
        first = reader.read(head)
        reader.seek(start)
        pages = reader.read(end - start)
        whole = not reader.read(1)
    if head:
        with bz2.open(io.BytesIO(pages)) as packed:
            page = archive.guarded(packed, path).read(64).lstrip()
        if not page.startswith((b"<page>", END.strip())):
            raise mistake("no page of the dump", path=path, start=start, page=page[:20])
    content = first + pages + (b"" if whole else bz2.compress(END))
    return archive.guarded(bz2.open(io.BytesIO(content)), path, archive.Budget(path))
