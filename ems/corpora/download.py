"""Download a file so that it is whole and what it should be, or fail with one clear error.

An interrupted download goes on where it stopped (part.py), in the same run and in the next. Network
errors, stalls and the statuses 408, 425, 429 and 5xx are tried again after a pause that doubles,
with jitter, or that the server names (Retry-After); other answers are final. urllib3's own retries
would begin at zero and end a long download over a bad line: here attempts that brought something
new do not count.
"""

import email.utils
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
from urllib3.exceptions import HTTPError

from ems.base.errors import EmsError
from ems.base.progress import Progress, log
from ems.corpora.content import short
from ems.corpora.locations import address
from ems.corpora.part import Again, Part, part_path
from ems.corpora.slots import held, slot

BLOCK = 1 << 18  # bytes read at once
CONNECT = 20.0  # seconds to connect
NEW = 1 << 20  # bytes that an attempt must bring so as not to count
LONGEST_PAUSE = 60.0  # seconds
LONGEST_WAIT = 900.0  # seconds that a server may ask for
PASSING = {408, 425, 429}  # and 5xx
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


@contextmanager
def download(url: str, out: Path, downloads: Downloads = DOWNLOADS) -> Iterator[Path]:
    """Yield a file beside `out` that holds all of `url`, for the caller to check and to move.

    If the network fails or the process is killed, what was received stays and the next call goes on
    from there; if it is wrong, or the caller raises `EmsError`, it is removed.
    """
    with held(part_path(out)) as writer:
        part = Part(url, out, writer)
        _complete(part, downloads)
        try:
            yield part.path
        except EmsError:
            part.remove()
            raise
        part.memory.unlink(missing_ok=True)


def _complete(part: Part, downloads: Downloads) -> None:
    failures, best = 0, part.size
    host = address(part.url).netloc.rpartition("@")[2]  # without a user's name
    while not part.whole:
        try:
            with slot(host, downloads.per_host, downloads.slots):
                _attempt(part, downloads)
        except Again as again:
            failures = 1 if part.size >= best + NEW else failures + 1
            best = max(best, part.size)
            if failures > downloads.retries:
                kept = f" (it goes on from byte {part.size:,})" if part.size else ""
                raise EmsError(
                    f"{part.url}: {again}, {failures} times; run the same command again later"
                    f"{kept}, check the network, or set `sources` in config.yaml to a mirror "
                    "directory"
                ) from None
            _wait(part, again, failures, downloads)


def _wait(part: Part, again: Again, failures: int, downloads: Downloads) -> None:
    pause = min(LONGEST_PAUSE, downloads.pause * 2 ** (failures - 1)) * random.uniform(0.5, 1.5)
    pause = max(pause, again.wait or 0)
    if pause > LONGEST_WAIT:
        raise EmsError(f"{part.url}: {again}; the server asks to wait {pause:,.0f} s: run it later")
    retry = f"retry {failures} of {downloads.retries} in {pause:.1f} s"
    log.info("download %s: %s; %s", part.name, again, retry)
    time.sleep(pause)


def _attempt(part: Part, downloads: Downloads) -> None:
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


def _request(part: Part, stall: float) -> requests.Response:
    try:
        headers = {**HEADERS, **part.headers()}
        timeout = (min(CONNECT, stall), stall)
        return requests.get(part.url, stream=True, timeout=timeout, headers=headers)
    except (requests.RequestException, ValueError) as error:  # ValueError: a wrong Location
        why = f"download failed ({type(error).__name__}: {short(str(error), 500)})"
        if isinstance(error, ValueError) or "CERTIFICATE_VERIFY_FAILED" in why:
            raise EmsError(f"{part.url}: {why}; check the address") from None
        raise Again(why) from None


def _begin(answer: requests.Response, part: Part) -> None:
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
    """Return the seconds of a Retry-After, a number of them or a date; None if it is neither."""
    if re.fullmatch("[0-9]{1,9}", text.strip()):  # up to 31 years
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
