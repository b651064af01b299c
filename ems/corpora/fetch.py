"""Fetch one file of a corpus from a source (directory, http or https host) and check it.

Downloads are trusted on first use. The lock `<file>.lock.json` records url, bytes and sha256 and
stays if the file is deleted; a later download that differs is an error. Files that ems generates
itself (the demo) are not compared with their locks.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from ems.base.errors import Damaged, EmsError
from ems.base.files import atomic_path, check_readable, sha256_file, write_json
from ems.base.progress import Progress
from ems.base.schema import Json
from ems.config.file import OPUSTOOLS
from ems.corpora.archive import BLOCK
from ems.corpora.content import START, check_start, lock_of, read_lock
from ems.corpora.download import DOWNLOADS, Downloads, download, part_path, write_all
from ems.corpora.locations import (
    corpus_location,
    dump_location,
    is_remote,
    local_path,
    mined_location,
    opus_location,
)
from ems.corpora.monolingual import check_dump, count_documents
from ems.corpora.moses import count_mined, count_pairs
from ems.corpora.opustools import moses_by_opustools
from ems.corpora.slots import held
from ems.corpora.split import read_document_names

Lock = Json  # "url", "bytes", "sha256", and the counts of a check
Form = Literal["moses", "documents", "mined", "text", "dump"]
Check = Callable[[Path], Lock]  # returns entries for the lock; raises EmsError for a bad file


def fetch_file(
    form: Form,
    source: str,
    corpus: str,
    version: str,
    pair: str,
    out: Path,
    locked: bool = True,
    downloads: Downloads = DOWNLOADS,
) -> Lock:
    """Fetch and check one file of a corpus; return its lock, which includes the counts.

    Forms: OPUS's zip (moses), the document name of each line (documents), LASER's file of a
    language pair (mined), documents of one language (text), a Wikipedia (dump; start checked).
    """
    match form:
        case "moses":
            location = opus_location(source, corpus, version, pair)
        case "documents":
            location = f"{corpus_location(source, corpus, version)}/{out.name}"
        case "mined":
            location = mined_location(source, pair)
        case "text":
            location = f"{source.rstrip('/')}/{corpus}/{version}/{out.name}"
        case "dump":
            location = dump_location(source, pair, version)
    return fetch(location, out, partial(_counts, form, corpus, pair), locked, downloads)


def _counts(form: Form, corpus: str, pair: str, path: Path) -> dict[str, int]:
    """Return the counts of a file for its lock. Raises `EmsError` if it does not have its form."""
    match form:
        case "moses":
            return {"pairs": count_pairs(path, corpus, pair)}
        case "documents":
            return {"lines": len(read_document_names(path))}
        case "mined":
            return {"pairs": count_mined(path, -math.inf)}
        case "text":
            return count_documents(path)
        case "dump":
            return check_dump(path)


def fetch(
    location: str, out: Path, check: Check, locked: bool = True, downloads: Downloads = DOWNLOADS
) -> Lock:
    """Copy or download `location`, check it, and move it to `out`; return the lock.

    An `EmsError` (no source, failed check, different from the lock) leaves `out` unchanged.
    """
    with bring(location, out, downloads) as path:
        lock = lock_entry(path, out, location, check, locked)
        with atomic_path(out) as temporary:
            os.replace(path, temporary)
        write_json(lock_of(out), lock)
    return lock


def bring(location: str, out: Path, downloads: Downloads) -> AbstractContextManager[Path]:
    """Copy or download `location` to a temporary file next to `out`, for the caller to move."""
    if location.startswith(f"{OPUSTOOLS}:"):
        return moses_by_opustools(location, out, downloads)
    if is_remote(location):
        return download(location, out, downloads)
    return _copied(local_path(location), out)


def lock_entry(path: Path, out: Path, location: str, check: Check, locked: bool = True) -> Lock:
    """Return the lock of a file for `out`. Raises `EmsError` if a check or its lock fails."""
    with open(path, "rb") as reader:
        check_start(reader.read(START), out.name, location)
    try:
        added = check(path)
    except EmsError as error:
        text = error.finding.replace(str(path), location)  # name the source: `path` is temporary
        if not isinstance(error, Damaged):
            raise EmsError(text) from None
        if is_remote(location):
            advice = "fetch it again later, or set `sources` to another host or directory"
            raise EmsError(f"{text}; {advice}") from None
        raise Damaged(local_path(location), text.removeprefix(f"{location}: ")) from None
    lock = {"url": location, "bytes": path.stat().st_size, "sha256": sha256_file(path), **added}
    if locked and lock_of(out).exists():
        first = read_lock(out)
        if first.sha256 != lock["sha256"]:
            raise EmsError(
                f"{location}: sha256 {lock['sha256'][:12]}… ({lock['bytes']:,} bytes), but the "
                f"first download had {first.sha256[:12]}… ({first.bytes:,} bytes): the "
                f"source changed. If that is right, delete {lock_of(out)} and run again"
            )
    return lock


@contextmanager
def _copied(source: Path, out: Path) -> Iterator[Path]:
    """Yield a copy of `source` next to `out`, which is removed unless the caller moves it."""
    check_readable(source)
    try:
        reader = open(source, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise EmsError(
            f"{source}: no such file; check `sources` and the corpus's languages"
        ) from None
    except (PermissionError, IsADirectoryError) as error:
        raise EmsError(f"{source}: cannot be read ({error.strerror})") from None
    path = part_path(out)
    with reader, held(path) as writer:
        try:
            progress = Progress(f"copy {source.name}", os.fstat(reader.fileno()).st_size, "bytes")
            writer.truncate(0)
            for block in progress.over(iter(lambda: reader.read(BLOCK), b""), len):
                write_all(writer, block, path)
            yield path
        finally:
            path.unlink(missing_ok=True)
