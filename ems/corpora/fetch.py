"""Bring one file from a source (directory, http or https host) to its place, whole and checked.

Notable choices:
- a source is a setting, never an address in code: the same call serves OPUS, a mirror and the demo;
- trust on first use: url, bytes and sha256 go into `<file>.lock.json` beside the file, which stays
  when the file is deleted; a later download that differs is an error (DESIGN "On disk");
- what ems generates itself (the demo) is not locked: there the source code is the version;
- the file gets its name only after its check passed, so an error page never becomes data.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from ems.corpora.moses import count_pairs
from ems.corpora.split import read_documents
from ems.errors import EmsError
from ems.files import atomic_path, read_json, sha256_file, write_json
from ems.progress import Progress

TIMEOUT = (20, 60)  # seconds to connect, and between two blocks
BLOCK = 1 << 18  # bytes


def is_remote(source: str) -> bool:
    """Whether `source` is a web address rather than a directory."""
    return source.startswith(("https://", "http://"))


def opus_location(source: str, corpus: str, version: str, pair: str) -> str:
    """Where a source keeps a pair."""
    return f"{corpus_location(source, corpus, version)}/moses/{pair}.txt.zip"


def corpus_location(source: str, corpus: str, version: str) -> str:
    """Where a source keeps a corpus: OPUS hosts prefix its name with `OPUS-`, folders do not."""
    prefix = "OPUS-" if is_remote(source) else ""
    return f"{source.rstrip('/')}/{prefix}{corpus}/{version}"


def fetch_documents(source: str, corpus: str, version: str, out: Path) -> dict[str, Any]:
    """Fetch the file of a corpus that names each line's document; it lies beside `moses/`."""
    location = f"{corpus_location(source, corpus, version)}/{out.name}"
    return fetch(location, out, lambda path: {"lines": len(read_documents(path))})


def fetch_moses(
    source: str, corpus: str, version: str, pair: str, out: Path, locked: bool = True
) -> dict[str, Any]:
    """Fetch and validate one Moses zip; return its lock entry with the number of `pairs`."""
    location = opus_location(source, corpus, version, pair)

    def check(path: Path) -> dict[str, Any]:
        return {"pairs": count_pairs(path, corpus, pair)}

    return fetch(location, out, check, locked)


def fetch(
    location: str, out: Path, check: Callable[[Path], dict[str, Any]], locked: bool = True
) -> dict[str, Any]:
    """Copy or download `location` to `out` after `check(temporary)` passed; return the lock entry.

    Raises `EmsError` when the source is missing or unreadable, the check fails, or the content
    differs from what the lock beside `out` remembers.
    """
    lock = out.with_name(out.name + ".lock.json")
    with atomic_path(out) as temporary:
        if is_remote(location):
            _download(location, temporary)
        else:
            _copy(Path(location), temporary)
        try:
            found = check(temporary)
        except EmsError as error:
            raise EmsError(str(error).replace(str(temporary), location)) from None
        entry = {"bytes": temporary.stat().st_size, "sha256": sha256_file(temporary), **found}
        if locked and lock.exists():
            _compare(read_json(lock), entry, location, lock)
    write_json(lock, {"url": location, **entry})
    return entry


def _compare(locked: dict[str, Any], entry: dict[str, Any], location: str, lock: Path) -> None:
    if locked["sha256"] != entry["sha256"]:
        raise EmsError(
            f"{location}: sha256 {entry['sha256'][:12]}… ({entry['bytes']:,} bytes), but the first "
            f"download had {locked['sha256'][:12]}… ({locked['bytes']:,} bytes): "
            f"the source changed. If that is right, delete {lock} and run again"
        )


def _copy(source: Path, target: Path) -> None:
    try:
        total = source.stat().st_size
        progress = Progress(f"copy {source.name}", total, "bytes")
        with open(source, "rb") as reader, open(target, "wb") as writer:
            shutil.copyfileobj(reader, writer, BLOCK)
    except FileNotFoundError:
        raise EmsError(
            f"{source}: no such file; check `sources` and the corpus's languages"
        ) from None
    except (PermissionError, IsADirectoryError) as error:
        raise EmsError(f"{source}: cannot be read ({error.strerror})") from None
    progress.add(total)
    progress.close()


def _download(url: str, target: Path) -> None:
    try:
        with requests.get(url, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code != 200:
                raise EmsError(f"{url}: expected status 200, found {answer.status_code}")
            if "text/html" in answer.headers.get("Content-Type", ""):
                raise EmsError(f"{url}: expected a file, found a web page (text/html)")
            length = answer.headers.get("Content-Length")
            _receive(answer, target, url, int(length) if length else None)
    except requests.RequestException as error:
        raise EmsError(
            f"{url}: download failed ({type(error).__name__}: {error}); check the network or set "
            "`sources` in config.yaml to a mirror directory"
        ) from None


def _receive(answer: requests.Response, target: Path, url: str, total: int | None) -> None:
    progress = Progress(f"download {os.path.basename(url)}", total, "bytes")
    encoded = answer.headers.get("Content-Encoding", "identity") != "identity"
    with open(target, "wb") as writer:
        for block in answer.iter_content(BLOCK):
            writer.write(block)
            progress.add(len(block))
    if total is not None and not encoded and progress.done != total:
        raise EmsError(f"{url}: expected {total:,} bytes, received {progress.done:,}; run again")
    progress.close()
