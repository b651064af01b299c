"""Download a file so that it is whole and what it should be, or there is one clear error.

Notable choices:
- an interrupted download goes on where it stopped (Range, only a right 206), in the same run and in
  the next; a server that answers with something else is taken from zero;
- what may pass (no network, a stall, a cut, 408, 425, 429, 5xx) is tried again after a pause that
  doubles, with jitter, or that the server names (Retry-After); other answers are final;
- attempts that brought something new do not count: a long download over a bad line ends in the end;
- bytes are taken as they are: the server is asked not to pack them on their way.
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

from ems.corpora.content import short
from ems.corpora.locations import address
from ems.corpora.part import Again, Part, part_path
from ems.corpora.slots import default_folder, held, slot
from ems.errors import EmsError
from ems.progress import Progress, log

BLOCK = 1 << 18  # bytes read at once
CONNECT = 20.0  # seconds to connect
NEW = 1 << 20  # bytes that an attempt must bring so as not to count
LONGEST_PAUSE = 60.0  # seconds
LONGEST_WAIT = 900.0  # seconds that a server may ask for
PASSING = {408, 425, 429}  # and 5xx
ASKED = {"Accept-Encoding": "identity", "User-Agent": "ems"}


@dataclass(frozen=True)
class Downloads:
    """How to download: `downloads` of config.yaml, and the folder of the locks."""

    per_host: int = 4  # connections to one host at once, of all processes together
    retries: int = 5  # attempts after one that failed
    slots: Path | None = None  # the folder of the locks; None: this machine's temporary one
    stall: float = 60.0  # seconds without a byte after which a server is given up
    pause: float = 1.0  # seconds before the first of the retries


DOWNLOADS = Downloads()


@contextmanager
def download(url: str, out: Path, how: Downloads = DOWNLOADS) -> Iterator[Path]:
    """Yield a file beside `out` that holds all of `url`, for the caller to check and to move.

    What was received stays when the network fails or the process is killed, and the next call goes
    on from there; it goes when it is wrong, or when the caller raises `EmsError`.
    """
    with held(part_path(out)) as writer:
        part = Part(url, out, writer)
        _complete(part, how)
        try:
            yield part.path
        except EmsError:
            part.remove()
            raise
        part.memory.unlink(missing_ok=True)


def _complete(part: Part, how: Downloads) -> None:
    failures, best = 0, part.size
    while not part.whole:
        try:
            with slot(_host(part.url), how.per_host, how.slots or default_folder()):
                _attempt(part, how)
        except Again as again:
            failures = 1 if part.size >= best + NEW else failures + 1
            best = max(best, part.size)
            if failures > how.retries:
                raise _given_up(part, again, failures) from None
            _wait(part, again, failures, how)


def _host(url: str) -> str:
    """Host and port of an address, without a user's name."""
    return address(url).netloc.rpartition("@")[2]


def _given_up(part: Part, again: Again, failures: int) -> EmsError:
    kept = f" (it goes on from byte {part.size:,})" if part.size else ""
    return EmsError(
        f"{part.url}: {again}, {failures} times; run the same command again later{kept}, check the "
        "network, or set `sources` in config.yaml to a mirror directory"
    )


def _wait(part: Part, again: Again, failures: int, how: Downloads) -> None:
    pause = min(LONGEST_PAUSE, how.pause * 2 ** (failures - 1)) * random.uniform(0.5, 1.5)
    if again.wait is not None:
        pause = max(again.wait, pause)
    if pause > LONGEST_WAIT:
        raise EmsError(f"{part.url}: {again}; the server asks to wait {pause:,.0f} s: run it later")
    log.info(
        "download %s: %s; retry %s of %s in %.1f s", part.name, again, failures, how.retries, pause
    )
    time.sleep(pause)


def _attempt(part: Part, how: Downloads) -> None:
    with _ask(part, how) as answer:
        _judge(answer, part)
        progress = Progress(f"download {part.name}", part.length, "bytes", before=part.size)
        for block in _blocks(answer):
            part.write(block)
            progress.add(len(block))
    part.finish()
    progress.close()


def _ask(part: Part, how: Downloads) -> requests.Response:
    try:
        timeout = (min(CONNECT, how.stall), how.stall)
        headers = {**ASKED, **part.headers()}
        return requests.get(part.url, stream=True, timeout=timeout, headers=headers)
    except (requests.RequestException, ValueError) as error:  # ValueError: a wrong Location
        why = f"download failed ({type(error).__name__}: {short(str(error), 500)})"
        if isinstance(error, ValueError) or "CERTIFICATE_VERIFY_FAILED" in why:
            raise EmsError(f"{part.url}: {why}; check the address") from None
        raise Again(why) from None


def _judge(answer: requests.Response, part: Part) -> None:
    """Let the part begin or go on with this answer. Raises `Again` or `EmsError` otherwise."""
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
        raise Again(why, _asked_wait(answer.headers.get("Retry-After", "")))
    else:
        raise EmsError(f"{part.url}: {why}; check that the source has this file at this address")


def _asked_wait(text: str) -> float | None:
    """Seconds of a Retry-After, which is a number of seconds or a date; None if it is neither."""
    if re.fullmatch("[0-9]{1,9}", text.strip()):  # up to 31 years
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _blocks(answer: requests.Response) -> Iterator[bytes]:
    """The bytes of the body as they come. Raises `Again` when they stop coming before the end."""
    try:
        while block := answer.raw.read1(BLOCK, decode_content=False):
            yield block
    except (HTTPError, OSError) as error:
        raise Again(f"the download broke off ({type(error).__name__}: {error})") from None
