"""Dumps of Wikipedia: `<code>wiki-<date>-pages-articles-multistream.xml.bz2`, read from any stream.

Such a file is bzip2 streams one after the other: the head with the site's names, then a hundred
pages each, then the end of the XML. So pieces of it can be read by many processes, and an
interrupted reader goes on in the middle.
"""

import bz2
import hashlib
import io
import re
from pathlib import Path
from typing import BinaryIO

from ems.base.errors import Damaged, EmsError
from ems.base.files import unreadable
from ems.corpora.packed import Budget, guarded

STREAM = re.compile(rb"BZh[1-9]1AY&SY")  # 80 bits: no other bytes of a dump look like this
MARK = 10  # bytes of it
BLOCK = 1 << 20  # bytes read at once
ROOT = b"<mediawiki"
END = b"</mediawiki>\n"


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
                rest = joined[-MARK + 1 :]
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
