"""The part of a download that is already here, and what its server said of the whole.

The part has one name, `.<name>.on-<machine>.part`, without a process id, so it outlives `kill -9`
and the next run on this machine goes on from its end. It is only continued with proof that it is
still the same file: a strong ETag or the date of the last change, sent as If-Range and checked
again in the answer.
"""

import os
import re
from io import FileIO
from pathlib import Path

import requests

from ems.base.errors import EmsError
from ems.base.files import read_json, write_json
from ems.base.progress import log
from ems.base.schema import Count, Json, Record, Text
from ems.corpora.content import START, check_start, check_type, short
from ems.corpora.slots import MACHINE

BYTES = "[0-9]{1,18}"  # a number of bytes; more digits are an error


class _Said(Record):
    """What the server said of a download, as JSON beside its part."""

    url: Text
    length: Count | None = None
    etag: str | None = None
    modified: str | None = None


class Again(Exception):
    """An attempt failed; another one may succeed, after `wait` seconds if that is set."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


def part_path(out: Path) -> Path:
    """Return where this machine's part of a download to `out` lies."""
    return out.with_name(f".{out.name}.{MACHINE}.part")


def write_all(writer: FileIO, block: bytes, path: Path) -> None:
    """Write all of a block. Raises `EmsError` that names `path` if the disk refuses it."""
    rest = memoryview(block)
    try:
        while rest:
            rest = rest[writer.write(rest) :]
    except OSError as error:
        raise EmsError(
            f"cannot write {path}: {error.strerror}; free some space, then run the same command "
            "again (a download goes on where it stopped)"
        ) from None


class Part:
    """The bytes of `url` so far, in a file that is open as `writer` (unbuffered)."""

    def __init__(self, url: str, out: Path, writer: FileIO) -> None:
        self.url, self.name, self.writer = url, out.name, writer
        self.path = part_path(out)
        self.memory = self.path.with_name(self.path.name + ".json")
        self.size = os.fstat(writer.fileno()).st_size
        self.said: Json = {}
        if self.size and self.memory.exists():
            try:
                self.said = read_json(self.memory, _Said).model_dump()
            except EmsError as error:
                log.info("%s; starting from zero", error.finding)
        if self.said.get("url") == self.url and (self.whole or self._validator()):
            log.info("download %s: %s bytes are here already", self.name, f"{self.size:,}")
        else:
            self.forget()

    @property
    def length(self) -> int | None:
        """The bytes of the whole file, if the server said so."""
        return self.said.get("length")

    @property
    def whole(self) -> bool:
        """True if every byte is here."""
        return self.length is not None and self.size == self.length

    def _validator(self) -> str:
        """Return what If-Range may hold: a strong ETag, else a date, else ''."""
        etag = self.said.get("etag") or ""
        return etag if etag.startswith('"') else self.said.get("modified") or ""

    def headers(self) -> dict[str, str]:
        """Return the headers that ask for the missing bytes."""
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
        """Start from zero with an answer; remember what the server says of the whole file."""
        check_type(answer.headers.get("Content-Type", ""), self.name, self.url)
        encoding = answer.headers.get("Content-Encoding") or "identity"
        if encoding.lower() != "identity" and not self.name.endswith((".gz", ".tgz")):
            raise EmsError(
                f"{self.url}: asked for the file as it is, the server packs it "
                f"({short(encoding)}); set `sources` to another host or to a directory"
            )
        self.forget()
        self.said = {
            "url": self.url,
            "length": _length(answer.headers.get("Content-Length")),
            "etag": answer.headers.get("ETag"),
            "modified": answer.headers.get("Last-Modified"),
        }
        write_json(self.memory, self.said)

    def go_on(self, answer: requests.Response) -> None:
        """Check that an answer goes on where this part ends, in the same file.

        Raises `Again`, to start from zero, if it does not.
        """
        said = answer.headers.get("Content-Range", "")
        match = re.fullmatch(rf"bytes ({BYTES})-({BYTES})/({BYTES}|\*)", said.strip())
        same = match is not None and int(match[1]) == self.size
        same = same and match[3] in ("*", str(self.length))
        for key, name in (("etag", "ETag"), ("modified", "Last-Modified")):
            same = same and answer.headers.get(name, self.said[key]) == self.said[key]
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
        write_all(self.writer, block, self.path)
        self.size += len(block)
        if before < START <= self.size:
            self.check()

    def finish(self) -> None:
        """Check the length of what came. Raises `Again` if the server promised another one."""
        if self.length is None:  # the server did not say: its end is the end
            self.said["length"] = self.size
        length, size = self.length, self.size
        if size < length:
            raise Again(f"expected {length:,} bytes, received {size:,}")
        if size > length:
            self.forget()
            raise Again(f"expected {length:,} bytes, received {size:,}; starting from zero")
        self.check()

    def check(self) -> None:
        """Raise `EmsError`, and remove the part, if such a file cannot begin like this."""
        self.writer.seek(0)
        try:
            check_start(self.writer.read(START), self.name, self.url)
        except EmsError:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the part. The file is not emptied: the caller may have moved it."""
        self.memory.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


def _length(text: str | None) -> int | None:
    """Return a Content-Length, which may be there twice; None if it is absent.

    Raises `Again` for any other text: where the file ends would be a guess.
    """
    if text is None:
        return None
    lengths = {part.strip() for part in text.split(",")}
    if len(lengths) > 1 or not re.fullmatch(BYTES, *lengths):
        raise Again(f"expected a number of bytes as Content-Length, found {short(text)!r}")
    return int(*lengths)
