"""Fetch files of a corpus from a source (directory, http or https host) and check them.

Downloads are trusted on first use. The lock `<file>.lock.json` records url, bytes and sha256 and
stays if the file is deleted; a later download that differs is an error, except in the demo.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Literal
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import atomic_path, check_readable, sha256_file, write_json
from ems.base.progress import Progress, log
from ems.base.records import Json
from ems.base.schema import plain
from ems.base.stamps import make_each
from ems.base.workers import in_workers
from ems.corpora import locations
from ems.corpora.archive import BLOCK
from ems.corpora.content import START, Locked, check_start, lock_of, read_lock
from ems.corpora.download import DOWNLOADS, Downloads, download, part_path, write_all
from ems.corpora.locations import is_remote, local_path
from ems.corpora.monolingual import check_dump, count_documents
from ems.corpora.moses import count_mined, count_pairs
from ems.corpora.probe import Sample, check_probe, tell
from ems.corpora.slots import alone, held
from ems.corpora.split import read_document_names

Lock = Json  # "url", "bytes", "sha256", and the counts of a check
Form = Literal["moses", "documents", "mined", "text", "dump"]
Check = Callable[[Path], Lock]  # returns entries for the lock; raises EmsError for a bad file
Fetched = tuple[str, int]  # the SHA-256 and the bytes that were fetched, 0 if it was here


@dataclass(frozen=True)
class Release:
    """The files of a release of a corpus. Forms: OPUS's zip (moses), the document name of each line
    (documents), LASER's file of a pair (mined), text of one language (text), a Wikipedia (dump).
    """

    form: Form
    source: str
    corpus: str
    version: str
    locked: bool = True
    downloads: Downloads = DOWNLOADS
    accept: str = ""  # why files are right that are more than half wrong for `ems.corpora.probe`

    def fetch_all(self, paths: dict[str, Path], again: bool = False) -> dict[str, str]:
        """Fetch files by name, present ones only if asked `again`; return {path: SHA-256}."""
        what, one = f"{self.corpus}/{self.version}", partial(self._fetch_missing, paths, again)
        sums = fetch_each(what, "files", [*paths], one, self.source, self.downloads)
        return {str(paths[name]): sha256 for name, sha256 in sums.items()}

    def _fetch_missing(self, paths: dict[str, Path], again: bool, name: str) -> Fetched:
        out, location = paths[name], self._location(name, paths[name])
        with alone(out, lock_of(out)) as made:
            here = made or (self.locked and not again and is_here(out, location))
            if not here:
                self.fetch(name, out)
            lock = read_lock(out)
        check_probe(location, lock.probe, self.accept)
        if lock.probe and not here:
            tell(location, lock.probe)
        return lock.sha256, 0 if here else lock.bytes

    def fetch(self, name: str, out: Path) -> Lock:
        check, location = partial(self._counts, name), self._location(name, out)
        sides = locations.ntrex_sides(self.source, self.corpus, name)
        brought = _zipped(sides, out, self.downloads) if sides and self.form == "moses" else None
        return fetch(location, out, check, self.locked, self.downloads, brought)

    def _location(self, name: str, out: Path) -> str:
        source, corpus, version = self.source, self.corpus, self.version
        places = {
            "moses": locations.opus_location(source, corpus, version, name),
            "documents": f"{locations.corpus_location(source, corpus, version)}/{out.name}",
            "mined": locations.mined_location(source, name),
            "text": f"{source.rstrip('/')}/{corpus}/{version}/{out.name}",
            "dump": locations.dump_location(source, name, version),
        }
        return places[self.form]

    def _counts(self, name: str, path: Path) -> Lock:
        """Return a file's counts and probe for its lock. Raises `EmsError` for another form."""
        sample = Sample(name.split("-"))
        match self.form:
            case "moses":
                counts: Lock = {"pairs": count_pairs(path, self.corpus, name, sample)}
            case "mined":
                counts = {"pairs": count_mined(path, -math.inf, sample)}
            case "text":
                counts = count_documents(path, sample)
            case "documents":
                return {"lines": len(read_document_names(path))}
            case "dump":
                return check_dump(path)
        return counts | {"probe": plain(sample.probe())}


def fetch_each(
    what: str,
    unit: str,
    names: Sequence[str],
    one: Callable[[str], Fetched],
    source: str,
    downloads: Downloads = DOWNLOADS,
) -> dict[str, str]:
    """Fetch all by `one`; return {name: SHA-256}. Raises `EmsError` at the end if some failed."""
    progress, begin = Progress(f"fetch {what}", len(names), unit, small=True), time.monotonic()
    sums, sizes = dict[str, str](), list[int]()

    def volume() -> str:
        size = sum(sizes) / 1e6
        return f"{size:,.1f} MB, {size / max(time.monotonic() - begin, 1e-9):,.1f} MB/s"

    def count(ended: tuple[str, Callable[[], Fetched]]) -> None:
        name, result = ended
        sums[name], size = result()
        sizes.append(size)
        progress.add(1, volume)

    workers = min(downloads.per_host, len(names)) if is_remote(source) else 1
    if workers > 1:
        with closing(in_workers(one, names, workers, str, "fork")) as ended:  # with the log
            make_each(((name, future.result) for name, future in ended), count, itemgetter(0))
    else:
        make_each(((name, partial(one, name)) for name in names), count, itemgetter(0))
    here = f" ({sizes.count(0):,} were here)" if 0 in sizes else ""
    log.info("%s: %s %s, %s%s", what, f"{len(sums):,}", unit, volume(), here)
    return sums


def is_here(out: Path, location: str) -> bool:
    """Return whether a file matches its lock, and its lock the location, as `is_of` says."""
    if not (out.is_file() and lock_of(out).is_file()):
        return False
    lock = read_lock(out)
    return is_of(lock, location) and lock.sha256 == sha256_file(out)


def is_of(lock: Locked, location: str) -> bool:
    """Return whether a lock is of this location, and of what lies there now if that is a folder."""
    if lock.url != location or is_remote(location):
        return lock.url == location
    source = local_path(location)
    return not source.exists() or sha256_file(source) == lock.sha256


def fetch(
    location: str,
    out: Path,
    check: Check,
    locked: bool = True,
    downloads: Downloads = DOWNLOADS,
    brought: AbstractContextManager[Path] | None = None,
) -> Lock:
    """Fetch, check and move a file; return its lock. An `EmsError` leaves `out` unchanged."""
    with brought or bring(location, out, downloads) as path:
        lock = lock_entry(path, out, location, check, locked)
        with atomic_path(out) as temporary:
            os.replace(path, temporary)
        write_json(lock_of(out), lock)
    return lock


def bring(location: str, out: Path, downloads: Downloads) -> AbstractContextManager[Path]:
    """Copy or download `location` to a temporary file next to `out`, for the caller to move."""
    if is_remote(location):
        return download(location, out, downloads)
    return _copied(local_path(location), out)


@contextmanager
def _zipped(texts: dict[str, str], out: Path, downloads: Downloads) -> Iterator[Path]:
    """Bring texts (name -> location), and yield a zip of them next to `out`."""
    path = part_path(out)
    try:
        with ZipFile(path, "w") as archive:
            for name, location in texts.items():
                with bring(location, out.with_name(name), downloads) as text:
                    archive.writestr(ZipInfo(name), text.read_bytes(), ZIP_DEFLATED)
                    text.unlink()
        yield path
    finally:
        path.unlink(missing_ok=True)


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
            raise mistake("damaged at the source", text=text) from None
        raise Damaged(local_path(location), text.removeprefix(f"{location}: ")) from None
    lock = {"url": location, "bytes": path.stat().st_size, "sha256": sha256_file(path), **added}
    if locked and lock_of(out).exists():
        first = read_lock(out)
        if first.sha256 != lock["sha256"]:
            words = {"first": first, "sha256": lock["sha256"], "size": lock["bytes"]}
            raise mistake("source changed", location=location, **words, path=lock_of(out))
    return lock


@contextmanager
def _copied(source: Path, out: Path) -> Iterator[Path]:
    """Yield a copy of `source` next to `out`, which is removed unless the caller moves it."""
    check_readable(source)
    try:
        reader = open(source, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise mistake("no file at the source", source=source) from None
    except (PermissionError, IsADirectoryError) as error:
        raise EmsError(f"{source}: cannot be read ({error.strerror})") from None
    path = part_path(out)
    with reader, held(path) as writer:
        try:
            size = os.fstat(reader.fileno()).st_size
            progress = Progress(f"copy {source.name}", size, "bytes", small=True)
            writer.truncate(0)
            for block in progress.over(iter(lambda: reader.read(BLOCK), b""), len):
                write_all(writer, block, path)
            yield path
        finally:
            path.unlink(missing_ok=True)
