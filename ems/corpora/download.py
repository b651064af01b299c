"""Download a file so that it is whole and what it should be, or fail with one clear error.

An interrupted download goes on where it stopped. Network errors, stalls and the statuses 408, 425,
429 and 5xx are tried again after a pause that doubles, with jitter, or that the server names
(Retry-After); other answers are final. Attempts that brought something new do not count.

The part that is there already has no process id in its name, so it outlives `kill -9`. It is only
continued with proof that it is still the same file: a strong ETag or the date of the last change,
sent as If-Range and checked again in the answer.
"""

import email.utils
import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import requests
from urllib3.exceptions import HTTPError

from ems.base.errors import EmsError
from ems.base.files import read_json, write_json
from ems.base.progress import Progress, log
from ems.base.schema import Count, Json, NonBlank, Record
from ems.corpora.content import MARKUP, START, WAY_OUT, check_start, short
from ems.corpora.locations import address
from ems.corpora.slots import MACHINE, held, slot

BLOCK = 1 << 18  # bytes read at once
CONNECT = 20.0  # seconds to connect
NEW = 1 << 20  # bytes that an attempt must bring so as not to count
LONGEST_PAUSE = 60.0  # seconds
LONGEST_WAIT = 900.0  # seconds that a server may ask for
PASSING = {408, 425, 429}  # and 5xx
BYTES = "[0-9]{1,18}"  # a number of bytes; more digits are an error
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "ems"}


@dataclass(frozen=True)
class Downloads:
    """The settings of downloads: `downloads` of config.yaml, and the folder of the locks."""

    per_host: int = 4  # connections to one host at once, of all processes together
    retries: int = 5  # attempts after one that failed
    slots: Path | None = None  # folder of the locks; None: this machine's temporary one
    stall: float = 60.0  # seconds without a byte after which an attempt ends
    pause: float = 1.0  # seconds before the first retry


DOWNLOADS = Downloads()


class _Said(Record):
    url: NonBlank
    length: Count | None = None
    etag: str | None = None
    modified: str | None = None


class Again(Exception):
    """An attempt failed; another one may succeed, after `wait` seconds if that is set."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


def part_path(out: Path) -> Path:
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


class PartialFile:
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
        return self.said.get("length")

    @property
    def whole(self) -> bool:
        return self.length is not None and self.size == self.length

    def _validator(self) -> str:
        """Return what If-Range may hold: a strong ETag, else a date, else ''."""
        etag = self.said.get("etag") or ""
        return etag if etag.startswith('"') else self.said.get("modified") or ""

    def headers(self) -> dict[str, str]:
        if self.size and not self._validator():
            self.forget()
        wanted = {"Range": f"bytes={self.size}-", "If-Range": self._validator()}
        return HEADERS | (wanted if self.size else {})

    def forget(self) -> None:
        self.said, self.size = {}, 0
        self.writer.truncate(0)
        self.memory.unlink(missing_ok=True)

    def begin(self, answer: requests.Response) -> None:
        """Start from zero with an answer; remember what the server says of the whole file."""
        kind = answer.headers.get("Content-Type", "")
        page = next((word for word in ("html", "xml") if word in kind.lower()), None)
        if page and MARKUP.get(Path(self.name).suffix.lower()) != page:
            problem = f"expected a file, found a web page ({short(kind)})"
            raise EmsError(f"{self.url}: {problem}; {WAY_OUT}")
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
        """Raise `Again`, to start from zero, unless an answer goes on where this part ends."""
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
        problem = f"expected {self.length:,} bytes, received {self.size:,}"
        if self.size < self.length:
            raise Again(problem)
        if self.size > self.length:
            self.forget()
            raise Again(f"{problem}; starting from zero")
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
    """Return a Content-Length, maybe given twice; None if absent. Raises `Again` for other text."""
    if text is None:
        return None
    lengths = {part.strip() for part in text.split(",")}
    if len(lengths) > 1 or not re.fullmatch(BYTES, *lengths):
        raise Again(f"expected a number of bytes as Content-Length, found {short(text)!r}")
    return int(*lengths)


@contextmanager
def download(url: str, out: Path, downloads: Downloads = DOWNLOADS) -> Iterator[Path]:
    """Yield a file beside `out` that holds all of `url`, for the caller to check and to move.

    It stays if the network fails, and is removed if it is wrong or the caller raises `EmsError`.
    """
    with held(part_path(out)) as writer:
        part = PartialFile(url, out, writer)
        _complete(part, downloads)
        try:
            yield part.path
        except EmsError:
            part.remove()
            raise
        part.memory.unlink(missing_ok=True)


def _complete(part: PartialFile, downloads: Downloads) -> None:
    failures, best = 0, part.size
    host = address(part.url).netloc.rpartition("@")[2]  # without a user's name
    while not part.whole:
        try:
            with slot(host, downloads.per_host, downloads.slots):
                _attempt(part, downloads)
            continue
        except Again as error:
            again = error
        failures = 1 if part.size >= best + NEW else failures + 1
        best = max(best, part.size)
        if failures > downloads.retries:
            kept = f" (it goes on from byte {part.size:,})" if part.size else ""
            raise EmsError(
                f"{part.url}: {again}, {failures} times; run the same command again later{kept}, "
                "check the network, or set `sources` in config.yaml to a mirror directory"
            )
        pause = min(LONGEST_PAUSE, downloads.pause * 2 ** (failures - 1)) * random.uniform(0.5, 1.5)
        pause = max(pause, again.wait or 0)
        if pause > LONGEST_WAIT:
            asked = f"the server asks to wait {pause:,.0f} s"
            raise EmsError(f"{part.url}: {again}; {asked}: run it later")
        retry = f"retry {failures} of {downloads.retries} in {pause:.1f} s"
        log.info("download %s: %s; %s", part.name, again, retry)
        time.sleep(pause)


def _attempt(part: PartialFile, downloads: Downloads) -> None:
    with _request(part, downloads.stall) as answer:
        _begin(answer, part)
        progress = Progress(f"download {part.name}", part.length, "bytes", before=part.size)
        try:
            while block := answer.raw.read1(BLOCK, decode_content=False):
                part.write(block)
                progress.add(len(block))
        except (HTTPError, OSError) as error:
            raise Again(f"the download broke off ({type(error).__name__}: {error})") from None
    part.finish()
    progress.close()


def _request(part: PartialFile, stall: float) -> requests.Response:
    try:
        timeout = (min(CONNECT, stall), stall)
        return requests.get(part.url, stream=True, timeout=timeout, headers=part.headers())
    except (requests.RequestException, ValueError) as error:  # ValueError: a wrong Location
        why = f"download failed ({type(error).__name__}: {short(str(error), 500)})"
        if isinstance(error, ValueError) or "CERTIFICATE_VERIFY_FAILED" in why:
            raise EmsError(f"{part.url}: {why}; check the address") from None
        raise Again(why) from None


def _begin(answer: requests.Response, part: PartialFile) -> None:
    """Let the part begin or go on with this answer. Raises `Again` or `EmsError` if it cannot."""
    status = answer.status_code
    why = f"expected status 200, found {status}"
    if status == 206 and part.size:
        part.go_on(answer)
    elif status == 200:
        part.begin(answer)
    elif status in (206, 416):
        part.forget()
        raise Again(why)
    elif status in PASSING or status >= 500:
        raise Again(why, _retry_after(answer.headers.get("Retry-After", "")))
    else:
        raise EmsError(f"{part.url}: {why}; check that the source has this file at this address")


def _retry_after(text: str) -> float | None:
    """Return the seconds of a Retry-After, a number or a date; None if it is neither."""
    if re.fullmatch("[0-9]{1,9}", text.strip()):  # up to 31 years
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
