"""Download a file completely and check it, or fail with one clear error.

An interrupted download resumes where it stopped. Network errors, stalls and the statuses 408, 425,
429 and 5xx are retried after a pause that doubles, with jitter, or that the server asks for
(Retry-After); any other status is final. Attempts that made progress do not count as failures.

The partial file has no process id in its name, so it survives `kill -9`. It is only continued with
proof that the file is unchanged: a strong ETag or the modification date, sent as If-Range and
checked again in the response. Without either, a failed download leaves no part.

A server may send a byte a second, or never end. So each wait for it has a deadline, also for a
whole header, the rate has a minimum, and the size a maximum.
"""

import email.utils
import os
import random
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import requests
from urllib3.exceptions import HTTPError

from ems.base.errors import EmsError, mistake
from ems.base.files import cannot_write, read_json, write_json
from ems.base.progress import Progress, log
from ems.base.records import Count, Json, NonBlank, Record
from ems.base.texts import BLOCK
from ems.corpora.content import MARKUP, START, WAY_OUT, check_start, short
from ems.corpora.locations import address
from ems.corpora.slots import MACHINE, held, slot

CONNECT = 20.0  # seconds to connect
NEW = 1 << 20  # bytes of progress with which a failed attempt does not count
LONGEST_PAUSE = 60.0  # seconds
LONGEST_WAIT = 900.0  # seconds; the most that a server may ask for
PASSING = {408, 425, 429}  # temporary, as is 5xx
BYTES = "[0-9]{1,18}"  # a number of bytes; more digits are an error
MARKS = {"etag": "ETag", "modified": "Last-Modified"}  # headers that change with the file
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "ems"}


@dataclass(frozen=True)
class Downloads:
    """Settings of downloads: `downloads` in config.yaml, and the folder of the locks."""

    per_host: int = 4  # simultaneous connections to one host, over all processes
    retries: int = 5  # attempts after a failed one
    slots: Path | None = None  # folder of the locks; None: the temporary folder of this machine
    largest_gb: float = 200.0  # of one file
    stall: float = 60.0  # seconds without data, or with too little, after which an attempt ends
    least: float = 1000.0  # bytes per second over `stall`
    pause: float = 1.0  # seconds before the first retry


DOWNLOADS = Downloads()


class _Response(Record):
    url: NonBlank
    length: Count | None = None
    etag: str | None = None
    modified: str | None = None


class Again(Exception):
    """A failed attempt that may be repeated, after `wait` seconds if set."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def part_path(out: Path) -> Path:
    return out.with_name(f".{out.name}.{MACHINE}.part")


def write_all(writer: FileIO, block: bytes, path: Path) -> None:
    """Write a whole block. Raises `EmsError` that names `path` if writing fails."""
    rest = memoryview(block)
    try:
        while rest:
            rest = rest[writer.write(rest) :]
    except OSError as error:
        raise cannot_write(path, error) from None


class PartialFile:
    """The part of `url` downloaded so far, in a file open as `writer` (unbuffered)."""

    def __init__(
        self, url: str, out: Path, writer: FileIO, downloads: Downloads = DOWNLOADS
    ) -> None:
        self.url, self.name, self.writer = url, out.name, writer
        self.largest_gb = downloads.largest_gb
        self.path = part_path(out)
        self.memory = self.path.with_name(self.path.name + ".json")
        self.size = os.fstat(writer.fileno()).st_size
        self.response: Json = {}
        if self.size and self.memory.exists():
            try:
                self.response = vars(read_json(self.memory, _Response))
            except EmsError as error:
                log.info("%s; starting from zero", error.finding)
        if self.response.get("url") == self.url and (self.whole or self.validator):
            log.info("download %s: %s bytes are here already", self.name, f"{self.size:,}")
        else:
            self.forget()

    @property
    def length(self) -> int | None:
        return self.response.get("length")

    @property
    def whole(self) -> bool:
        return self.length is not None and self.size == self.length

    @property
    def validator(self) -> str:
        """A value for If-Range: a strong ETag, else the date, else ''."""
        etag = self.response.get("etag") or ""
        return etag if etag.startswith('"') else self.response.get("modified") or ""

    def headers(self) -> dict[str, str]:
        if self.size and not self.validator:
            self.forget()
        resume = {"Range": f"bytes={self.size}-", "If-Range": self.validator}
        return HEADERS | (resume if self.size else {})

    def forget(self) -> None:
        self.response, self.size = {}, 0
        self.writer.truncate(0)
        self.memory.unlink(missing_ok=True)

    def begin(self, answer: requests.Response) -> None:
        """Start from zero with a response; store its length, ETag and date of the whole file."""
        kind = answer.headers.get("Content-Type", "")
        page = next((word for word in ("html", "xml") if word in kind.lower()), None)
        if page and MARKUP.get(Path(self.name).suffix.lower()) != page:
            raise mistake("web page", this=self, kind=short(kind), way_out=WAY_OUT)
        encoding = answer.headers.get("Content-Encoding") or "identity"
        if encoding.lower() != "identity" and not self.name.endswith((".gz", ".tgz")):
            raise mistake("compressed on its way", this=self, encoding=short(encoding))
        self.forget()
        length = _length(answer.headers.get("Content-Length"))
        marks = {key: answer.headers.get(name) for key, name in MARKS.items()}
        self.response = {"url": self.url, "length": length, **marks}
        self.check_size(self.length or 0)
        write_json(self.memory, self.response)

    def go_on(self, answer: requests.Response) -> None:
        """Raise `Again`, to start from zero, unless the response continues this very file."""
        content_range = answer.headers.get("Content-Range", "")
        match = re.fullmatch(rf"bytes ({BYTES})-({BYTES})/({BYTES}|\*)", content_range.strip())
        same = match is not None and int(match[1]) == self.size
        same = same and match[3] in ("*", str(self.length))
        for key, name in MARKS.items():
            same = same and answer.headers.get(name, self.response[key]) == self.response[key]
        if not same:
            asked = f"asked to go on from byte {self.size:,} of {self.length or 'unknown'}"
            given = f"the server gave {short(content_range) or 'no range'} or another file"
            self.forget()
            raise Again(f"{asked}, {given}; starting from zero")

    def write(self, block: bytes) -> None:
        """Append a block. Raises `EmsError` for a full disk, for too large a file, and for a web
        page instead of data; `Again` for more bytes than announced.
        """
        before = self.size
        self.check_size(before + len(block))
        write_all(self.writer, block, self.path)
        self.size += len(block)
        if self.length is not None and self.size > self.length:
            problem = f"more than the announced {self.length:,} bytes; starting from zero"
            self.forget()
            raise Again(problem)
        if before < START <= self.size:
            self.check()

    def finish(self) -> None:
        """Check the length. Raises `Again` if it differs from the announced one."""
        if self.length is None:  # not announced: the end of the response is the end of the file
            if not self.size:
                raise Again("the server sent neither a length nor a byte")
            self.response["length"] = self.size
        if self.size < self.length:
            raise Again(f"expected {self.length:,} bytes, received {self.size:,}")
        self.check()

    def check_size(self, size: int) -> None:
        """Raise `EmsError` and remove the part if the file has at least `size` bytes, too many."""
        if size > self.largest_gb * 1e9:
            self.remove()
            raise mistake("file too large", this=self)

    def check(self) -> None:
        """Raise `EmsError` and remove the part if such a file cannot begin like this."""
        self.writer.seek(0)
        try:
            check_start(self.writer.read(START), self.name, self.url)
        except EmsError:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the part, but do not empty the file: the caller may have moved it."""
        self.memory.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


def _length(text: str | None) -> int | None:
    """Parse a Content-Length, even if repeated; None if absent. Raises `Again` if invalid."""
    if text is None:
        return None
    lengths = {part.strip() for part in text.split(",")}
    if len(lengths) > 1 or not re.fullmatch(BYTES, *lengths):
        raise Again(f"expected a number of bytes as Content-Length, found {short(text)!r}")
    return int(*lengths)


@contextmanager
def download(url: str, out: Path, downloads: Downloads = DOWNLOADS) -> Iterator[Path]:
    """Yield a complete download of `url` next to `out`, for the caller to check and move. If the
    network fails, it stays if the next run can go on; an `EmsError` of the caller removes it.
    """
    with held(part_path(out)) as writer:
        part = PartialFile(url, out, writer, downloads)
        try:
            _complete(part, downloads)
        except EmsError:
            if not (part.size and part.validator):  # the next run could not go on
                part.remove()
            raise
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
            kept = f" (it resumes at byte {part.size:,})" if part.size and part.validator else ""
            raise mistake("download failed", part=part, again=again, failures=failures, kept=kept)
        pause = min(LONGEST_PAUSE, downloads.pause * 2 ** (failures - 1)) * random.uniform(0.5, 1.5)
        pause = max(pause, again.wait or 0)
        if pause > LONGEST_WAIT:
            raise mistake("long wait", part=part, again=again, pause=pause)
        retry = f"retry {failures} of {downloads.retries} in {pause:.1f} s"
        log.info("download %s: %s; %s", part.name, again, retry)
        time.sleep(pause)


def _attempt(part: PartialFile, downloads: Downloads) -> None:
    with _request(part, downloads.stall) as answer:
        _begin(answer, part)
        what = f"download {part.name}"
        progress = Progress(what, part.length, "bytes", before=part.size, small=True)
        try:
            begin, size = time.monotonic(), part.size
            while True:
                with _deadline(downloads.stall):
                    block = answer.raw.read1(BLOCK, decode_content=False)
                if not block:
                    break
                part.write(block)
                progress.add(len(block))
                seconds = time.monotonic() - begin
                if seconds >= downloads.stall:
                    rate = (part.size - size) / seconds
                    if rate < downloads.least:
                        raise Again(f"{rate:,.0f} bytes/s, less than {downloads.least:,.0f}")
                    begin, size = time.monotonic(), part.size
        except (HTTPError, OSError) as error:
            raise Again(f"the download broke off ({type(error).__name__}: {error})") from None
    part.finish()
    progress.close()


def _request(part: PartialFile, stall: float) -> requests.Response:
    try:
        options = {"timeout": (min(CONNECT, stall), stall), "hooks": {"response": _without_body}}
        with _deadline(stall):
            return requests.get(part.url, stream=True, headers=part.headers(), **options)
    except (requests.RequestException, ValueError) as error:  # ValueError: an invalid Location
        problem = f"download failed ({type(error).__name__}: {short(str(error), 500)})"
        if isinstance(error, ValueError) or "CERTIFICATE_VERIFY_FAILED" in problem:
            raise EmsError(f"{part.url}: {problem}; check the address") from None
        raise Again(problem) from None


def _without_body(answer: requests.Response, **_: object) -> None:
    if answer.is_redirect:
        answer._content = b""  # requests would read the body, which may never end
        answer.raw.close()  # with its connection, which still has the body


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise `Again` if the block takes longer; the timeouts of sockets are for each byte only. Does
    nothing outside of the main thread, where no signal can be set.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise Again(f"no header or data in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _begin(answer: requests.Response, part: PartialFile) -> None:
    """Start or resume the part with this response. Raises `Again` or `EmsError` if impossible."""
    status = answer.status_code
    problem = f"expected status 200, found {status}"
    if status == 206 and part.size:
        part.go_on(answer)
    elif status == 200:
        part.begin(answer)
    elif status in (206, 416):
        part.forget()
        raise Again(problem)
    elif status in PASSING or status >= 500:
        raise Again(problem, _retry_after(answer.headers.get("Retry-After", "")))
    else:
        raise EmsError(f"{part.url}: {problem}; check that the source has this file")


def _retry_after(text: str) -> float | None:
    """Return the seconds of a Retry-After, given as a number or date; None if it is neither."""
    if re.fullmatch("[0-9]{1,9}", text.strip()):  # up to 31 years
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
