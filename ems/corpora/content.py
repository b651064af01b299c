"""Check that a file begins as its suffix promises and that it matches its lock."""

import re
from pathlib import Path

from ems.base.errors import LOCK, MANIFEST, Damaged, EmsError
from ems.base.files import read_json, read_table, sha256_file
from ems.base.progress import Progress
from ems.base.records import Below, Count, NonBlank, Record, only
from ems.corpora.probe import Probe

START = 512  # bytes that `check_start` looks at
MARKUP = {".html": "html", ".htm": "html", ".xml": "xml", ".tmx": "xml"}
PAGES = (b"<!doctype", b"<html", b"<?xml", b"<head", b"<body", b"<error")
WAY_OUT = "look at the address in a browser, or set `sources` to a mirror directory"


class Content(Record):
    bytes: Count
    sha256: NonBlank


class Locked(Content):
    url: NonBlank
    probe: Probe | None = None  # of text; locks before 2026-12 have none


UnitManifest = only("files", dict[Below, Content])


def lock_of(path: Path) -> Path:
    return path.with_name(path.name + LOCK)


def read_lock(path: Path) -> Locked:
    return read_json(lock_of(path), Locked, f"*{LOCK}")


def check_lock(path: Path) -> str:
    """Return the SHA-256 of a file. Raises `Damaged` if it is missing or differs from its lock."""
    if not path.is_file():
        raise Damaged(path, "no such file")
    sha256, lock = sha256_file(path), lock_of(path)
    if lock.is_file() and read_lock(path).sha256 != sha256:
        raise Damaged(path, f"its SHA-256 is not the one in {lock.name}")
    return sha256


def check_file(path: Path) -> str:
    """Return the SHA-256 of a file. Raises `Damaged` if it, or a file it lists, has changed."""
    if path.name.endswith(MANIFEST):
        for name, entry in read_json(path, UnitManifest).files.items():
            file = path.parent / name
            if not file.is_file():
                raise Damaged(file, "no such file")
            if file.stat().st_size != entry.bytes or sha256_file(file) != entry.sha256:
                raise Damaged(file, "not the file that its manifest lists")
    return check_lock(path)


def check_downloads(folder: Path) -> tuple[int, list[Damaged]]:
    """Return (number of locked downloads and units, errors of the changed ones) of a folder."""
    if not folder.is_dir():
        raise EmsError(f"{folder}: no such folder; name the folder `data` of config.yaml")
    locked = (path.with_name(path.name.removesuffix(LOCK)) for path in folder.rglob(f"*{LOCK}"))
    paths = sorted({*filter(Path.is_file, locked), *folder.rglob(f"*{MANIFEST}")})
    progress, damaged = Progress(f"check {folder}", len(paths), "downloads"), {}
    for path in progress.over(paths):
        try:
            check_file(path)
        except Damaged as error:
            damaged[error.path] = error  # report a file once, also if a manifest lists it
    return len(paths), list(damaged.values())


def check_start(start: bytes, name: str, location: str) -> None:
    """Raise `EmsError` if a file called `name` cannot begin like this, or is a web page."""
    suffix, rows = Path(name).suffix.lower(), read_table(Path(__file__).with_suffix(".tsv"))
    known = next((row for row in rows if row["suffix"] == suffix), None)
    letters = start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")  # UTF-16, BOMs
    if not start and known:
        problem = "nothing (it is empty)"
    elif letters.lower().startswith(PAGES) and suffix not in MARKUP:
        problem = f"a web page ({start[:40]!r}…)"
    elif known and not re.match(known["start"].encode(), start, re.DOTALL):
        problem = f"{start[:16]!r}"
    else:
        return
    expected = f"not {known['kind']}" if known else "expected a file"
    raise EmsError(f"{location}: {expected}, found {problem}; {WAY_OUT}")


def short(text: str, limit: int = 100) -> str:
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[:limit]}…"
