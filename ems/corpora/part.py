"""The part of a download that is there already, and what its server said of the whole.

Notable choices:
- the part has one stable name, `.<name>.part`, without a process id: it outlives `kill -9`, and the
  next run goes on from its end; what the server said of it lies beside it as JSON;
- a part is only ever continued with proof that it is still the same file: a strong ETag or the date
  of its last change, sent as If-Range, and checked again in the answer.
"""

import os
import re
from io import FileIO
from pathlib import Path
from typing import Any

import requests

from ems.corpora.content import START, check_start, check_type, short
from ems.errors import EmsError
from ems.files import read_json, write_json
from ems.progress import log
from ems.shapes import TEXT, Shape, record

_MAYBE: Shape = {"type": ["string", "null"]}
SAID = record(  # what the server said of a download
    {"url": TEXT},
    {"length": {"type": ["integer", "null"], "minimum": 0}, "etag": _MAYBE, "modified": _MAYBE},
)

BYTES = "[0-9]{1,18}"  # a number of them; more digits are none


class Again(Exception):
    """An attempt failed in a way that another one may mend, after `wait` seconds if that is set."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


def part_path(out: Path) -> Path:
    """Where the part of a download to `out` lies."""
    return out.with_name(f".{out.name}.part")


def write_all(writer: FileIO, block: bytes, path: Path) -> None:
    """Write all of a block. Raises `EmsError` that names `path` when the disk does not take it."""
    rest = memoryview(block)
    try:
        while rest:
            rest = rest[writer.write(rest) :]
    except OSError as error:
        raise EmsError(
            f"cannot write {path}: {error.strerror}; free some space, then run the same command "
            "again (a download goes on where it stopped)"
        ) from None


def _length(text: str | None) -> int | None:
    """The Content-Length, which may be there twice; None without one. Raises `Again` for another
    text: where the file ends would be a guess.
    """
    if text is None:
        return None
    lengths = {part.strip() for part in text.split(",")}
    if len(lengths) > 1 or not re.fullmatch(BYTES, *lengths):
        raise Again(f"expected a number of bytes as Content-Length, found {short(text)!r}")
    return int(*lengths)


class Part:
    """The bytes of `url` so far, in a file that is open as `writer` (unbuffered)."""

    def __init__(self, url: str, out: Path, writer: FileIO) -> None:
        self.url, self.name, self.writer = url, out.name, writer
        self.path = part_path(out)
        self.memory = self.path.with_name(self.path.name + ".json")
        self.size = os.fstat(writer.fileno()).st_size
        self.said: dict[str, Any] = {}
        self._recall()

    def _recall(self) -> None:
        """Take up what is there, if the server can tell whether it is still good."""
        if self.size and self.memory.exists():
            try:
                self.said = read_json(self.memory, SAID)
            except EmsError as error:
                log.info("%s; starting from zero", error.finding)
        if self.said.get("url") == self.url and (self.whole or self._validator()):
            log.info("download %s: %s bytes are here already", self.name, f"{self.size:,}")
        else:
            self.forget()

    @property
    def length(self) -> int | None:
        """The bytes of the whole, if the server said so."""
        return self.said.get("length")

    @property
    def whole(self) -> bool:
        """Whether every byte is there."""
        return self.length is not None and self.size == self.length

    def _validator(self) -> str:
        """What If-Range may hold: a strong ETag, else a date; '' when the server gave neither."""
        etag = self.said.get("etag") or ""
        return etag if etag.startswith('"') else self.said.get("modified") or ""

    def headers(self) -> dict[str, str]:
        """The request for what is missing."""
        if self.size and not self._validator():
            self.forget()
        if not self.size:
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": self._validator()}

    def forget(self) -> None:
        """Start from zero."""
        self.said, self.size = {}, 0
        self.writer.truncate(0)
        self.memory.unlink(missing_ok=True)

    def begin(self, answer: requests.Response) -> None:
        """Remember what the server says of the whole that it is about to send."""
        check_type(answer.headers.get("Content-Type", ""), self.name, self.url)
        self._check_encoding(answer.headers.get("Content-Encoding") or "identity")
        self.forget()
        self.said = {
            "url": self.url,
            "length": _length(answer.headers.get("Content-Length")),
            "etag": answer.headers.get("ETag"),
            "modified": answer.headers.get("Last-Modified"),
        }
        write_json(self.memory, self.said)

    def _check_encoding(self, encoding: str) -> None:
        """A .gz may be labelled as packed on its way; anything else was asked for as it is."""
        if encoding.lower() != "identity" and not self.name.endswith((".gz", ".tgz")):
            raise EmsError(
                f"{self.url}: asked for the file as it is, the server packs it "
                f"({short(encoding)}); set `sources` to another host or to a directory"
            )

    def go_on(self, answer: requests.Response) -> None:
        """Check that the server goes on where this part ends, in the same file; else start again.

        Raises `Again` when it does not.
        """
        said = answer.headers.get("Content-Range", "")
        found = re.fullmatch(rf"bytes ({BYTES})-({BYTES})/({BYTES}|\*)", said.strip())
        same = found is not None and int(found[1]) == self.size
        same = same and found[3] in ("*", str(self.length))
        for key, name in (("etag", "ETag"), ("modified", "Last-Modified")):
            now = answer.headers.get(name)
            same = same and (now is None or now == self.said[key])
        if not same:
            at, length = self.size, self.length
            self.forget()
            raise Again(
                f"asked to go on from byte {at:,} of {length or 'unknown'}, the server gave "
                f"{short(said) or 'no range'} or another file; starting from zero"
            )

    def write(self, block: bytes) -> None:
        """Append a block. Raises `EmsError` for a full disk and for a page instead of data."""
        before = self.size
        self.writer.seek(before)
        write_all(self.writer, block, self.path)
        self.size += len(block)
        if before < START <= self.size:
            self.check()

    def finish(self) -> None:
        """Check the length of what came. Raises `Again` when it is another than was said."""
        if self.length is None:  # the server did not say: its end is the end
            self.said["length"] = self.size
        if self.size < self.length:
            raise Again(f"expected {self.length:,} bytes, received {self.size:,}")
        if self.size > self.length:
            length, size = self.length, self.size
            self.forget()
            raise Again(f"expected {length:,} bytes, received {size:,}; starting from zero")
        self.check()

    def check(self) -> None:
        """Raise `EmsError` when the beginning is not that of such a file; nothing of it stays."""
        self.writer.seek(0)
        try:
            check_start(self.writer.read(START), self.name, self.url)
        except EmsError:
            self.remove()
            raise

    def remove(self) -> None:
        """Leave nothing behind. The file is not emptied: its caller may have moved it."""
        self.memory.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
