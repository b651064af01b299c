"""Bring one file from a source (directory, http or https host) to its place, whole and checked.

Notable choices:
- a source is a setting, never an address in code: the same call serves OPUS, a mirror and the demo;
- trust on first use: url, bytes and sha256 go into `<file>.lock.json` beside the file, which stays
  when the file is deleted; a later download that differs is an error (DESIGN "On disk");
- what ems generates itself (the demo) is not locked: there the source code is the version;
- the file gets its name only after its check passed, so an error page never becomes data.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from ems.config import OPUSTOOLS
from ems.corpora.by_opustools import moses_by_opustools, opustools_location
from ems.corpora.content import LOCKED, START, check_start, lock_of
from ems.corpora.download import DOWNLOADS, Downloads, download
from ems.corpora.locations import (
    corpus_location,
    is_remote,
    local_path,
    mined_location,
    opus_location,
)
from ems.corpora.moses import count_pairs
from ems.corpora.part import part_path, write_all
from ems.corpora.slots import held
from ems.corpora.split import read_documents
from ems.corpora.wikimatrix import count_mined
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import atomic_path, check_readable, read_json, sha256_file, write_json
from ems.progress import Progress

BLOCK = 1 << 18  # bytes
Check = Callable[[Path], dict[str, Any]]  # raises EmsError for a bad file, else what to remember


def fetch_documents(
    source: str, corpus: str, version: str, out: Path, how: Downloads = DOWNLOADS
) -> dict[str, Any]:
    """Fetch the file of a corpus that names each line's document; it lies beside `moses/`."""
    location = f"{corpus_location(source, corpus, version)}/{out.name}"
    return fetch(location, out, lambda path: {"lines": len(read_documents(path))}, how=how)


def fetch_moses(
    source: str,
    corpus: str,
    version: str,
    pair: str,
    out: Path,
    locked: bool = True,
    how: Downloads = DOWNLOADS,
) -> dict[str, Any]:
    """Fetch and validate one Moses zip; return its lock entry with the number of `pairs`.

    The source `opustools` is no place: the package of that name brings the file.
    """

    def check(path: Path) -> dict[str, Any]:
        return {"pairs": count_pairs(path, corpus, pair)}

    if source == OPUSTOOLS:
        brought = moses_by_opustools(corpus, version, pair, out, how)
        return _settle(brought, opustools_location(corpus, version, pair), out, check, locked)
    return fetch(opus_location(source, corpus, version, pair), out, check, locked, how)


def fetch_mined(
    source: str, pair: str, out: Path, locked: bool = True, how: Downloads = DOWNLOADS
) -> dict[str, Any]:
    """Fetch and validate one mined file; return its lock entry with `pairs` of any score."""

    def check(path: Path) -> dict[str, Any]:
        return {"pairs": count_mined(path, -math.inf)}

    return fetch(mined_location(source, pair), out, check, locked, how)


def fetch(
    location: str,
    out: Path,
    check: Check,
    locked: bool = True,
    how: Downloads = DOWNLOADS,
) -> dict[str, Any]:
    """Copy or download `location` to `out` after `check(temporary)` passed; return the lock entry.

    Raises `EmsError` when the source is missing or unreadable, the check fails, or the content
    differs from what the lock beside `out` remembers; `out` and the lock are then as they were.
    """
    if is_remote(location):
        brought = download(location, out, how)
    else:
        brought = _copied(local_path(location), out)
    return _settle(brought, location, out, check, locked)


def _settle(
    brought: AbstractContextManager[Path], location: str, out: Path, check: Check, locked: bool
) -> dict[str, Any]:
    """Give what was brought its name and its lock, once it is good and what it was."""
    with brought as path:
        entry = _checked(path, out, location, check, locked)
        with atomic_path(out) as temporary:
            os.replace(path, temporary)
        write_json(lock_of(out), {"url": location, **entry})
    return entry


def _checked(path: Path, out: Path, location: str, check: Check, locked: bool) -> dict[str, Any]:
    """The lock entry of what came from `location`, if it is good and what it was."""
    with open(path, "rb") as reader:
        check_start(reader.read(START), out.name, location)
    try:
        found = check(path)
    except EmsError as error:
        raise _at_source(location, error.finding.replace(str(path), location), error) from None
    entry = {"bytes": path.stat().st_size, "sha256": sha256_file(path), **found}
    if locked and lock_of(out).exists():
        _compare(read_json(lock_of(out), LOCKED), entry, location, lock_of(out))
    return entry


def _at_source(location: str, text: str, error: EmsError) -> EmsError:
    """The error of a check, of what came, as one of its source: what came is gone."""
    if not isinstance(error, Damaged):
        return EmsError(text)
    if is_remote(location):
        return EmsError(f"{text}; fetch it again later, or set `sources` to another place")
    return Damaged(local_path(location), text.removeprefix(f"{location}: "))


def _compare(locked: dict[str, Any], entry: dict[str, Any], location: str, lock: Path) -> None:
    if locked["sha256"] != entry["sha256"]:
        raise EmsError(
            f"{location}: sha256 {entry['sha256'][:12]}… ({entry['bytes']:,} bytes), but the first "
            f"download had {locked['sha256'][:12]}… ({locked['bytes']:,} bytes): "
            f"the source changed. If that is right, delete {lock} and run again"
        )


@contextmanager
def _copied(source: Path, out: Path) -> Iterator[Path]:
    """Yield a copy of `source` beside `out`; it goes when nobody moves it."""
    path = part_path(out)
    with held(path) as writer:
        try:
            _copy(source, writer, path)
            yield path
        finally:
            path.unlink(missing_ok=True)


def _copy(source: Path, writer: FileIO, path: Path) -> None:
    check_readable(source)
    try:
        reader = open(source, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise EmsError(
            f"{source}: no such file; check `sources` and the corpus's languages"
        ) from None
    except (PermissionError, IsADirectoryError) as error:
        raise EmsError(f"{source}: cannot be read ({error.strerror})") from None
    with reader:
        progress = Progress(f"copy {source.name}", os.fstat(reader.fileno()).st_size, "bytes")
        writer.truncate(0)
        while block := reader.read(BLOCK):
            write_all(writer, block, path)
            progress.add(len(block))
    progress.close()
