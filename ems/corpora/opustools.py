"""What the package OpusTools gives: a second way to OPUS's Moses zips, and the table of its files.

OpusTools asks the OPUS API for an address and downloads by itself, from a host that cannot be set,
to a file that it names itself: it gets a folder of its own. It prints its failures and returns, or
ends in a traceback, so only a file that is there counts as success, and its last line goes into the
error. It never gives up on a silent server, so sockets get a timeout while it runs.

`ems corpora update` makes ems/config/languages/opus.tsv.xz from its database, SQLite, the file
`opusdata.db.gz` in the package, packed or unpacked. Its table `opusfile` has a row per file; ours
are the Moses zips. Left out are files whose codes are not sorted (News-Commentary v16 has a stray
en-cs beside its cs-en), files at another address than their name says, and files without a pair in
a release that is counted. The newest release of a corpus stands behind the others.
"""

import contextlib
import gzip
import importlib.util
import io
import lzma
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import atomic_path
from ems.base.progress import log
from ems.config.file import OPUSTOOLS
from ems.corpora.download import Downloads
from ems.corpora.slots import slot

HOST = "https://object.pouta.csc.fi"
GZIP = b"\x1f\x8b"
QUERY = """
    SELECT corpus, version, source, target, CAST(alignment_pairs AS INTEGER), size FROM opusfile
    WHERE preprocessing = 'moses' AND source < target
      AND url = ? || '/OPUS-' || corpus || '/' || version || '/moses/' || source || '-' || target
        || '.txt.zip'
    ORDER BY corpus, latest = 'True', version, source, target
"""
FileRow = tuple[str, str, str, str, int, int]  # corpus, version, two codes, pairs, KB


@contextmanager
def moses_by_opustools(location: str, out: Path, downloads: Downloads) -> Iterator[Path]:
    """Yield the Moses zip at `location` (`opus_location`) in a temporary folder beside `out`.

    Raises `EmsError` if the package is absent, fails, or brings nothing.
    """
    folder = out.with_name(f".{out.name}.{OPUSTOOLS}")
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(parents=True)
    try:
        with slot(OPUSTOOLS, downloads.per_host, downloads.slots):
            printed = _get(location, folder, downloads.stall)
        files = sorted(folder.rglob("*.zip"))
        if len(files) != 1:
            raise EmsError(
                f"{location}: OpusTools brought {len(files)} files instead of one ({printed}); "
                "check the network, the corpus, its version and the pair"
            )
        yield files[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _get(location: str, folder: Path, stall: float) -> str:
    """Let OpusTools download into `folder`; return the last line that it printed."""
    get = opus_get()
    corpus, version, _, name = location.removeprefix(f"{OPUSTOOLS}:").split("/")
    first, second = name.removesuffix(".txt.zip").split("-")
    printed, timeout = io.StringIO(), socket.getdefaulttimeout()
    socket.setdefaulttimeout(stall)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            get(
                source=first,
                target=second,
                directory=corpus,
                release=version,
                preprocess="moses",
                download_dir=str(folder),
                suppress_prompts=True,
            ).get_files()
    except (Exception, SystemExit) as error:  # a library that lets anything through
        raise EmsError(
            f"{location}: OpusTools failed ({type(error).__name__}: {error}); check the network, "
            "or set `sources` in config.yaml to a host or a directory"
        ) from None
    finally:
        socket.setdefaulttimeout(timeout)
    lines = [line.strip() for line in printed.getvalue().replace("\r", "\n").split("\n")]
    last = next((line for line in reversed(lines) if line), "it printed nothing")
    log.info("OpusTools: %s", last)
    return last


def opus_get() -> type:
    """Return the downloader of the package. Raises `EmsError` if the package is absent."""
    try:
        from opustools import OpusGet
    except ImportError as error:
        raise EmsError(
            f"the source {OPUSTOOLS!r} needs the package opustools, which is not installed "
            f"({error}): pip install opustools, or set `sources` to a host or a directory"
        ) from None
    return OpusGet


# --- the table of OPUS's files


def packaged_database() -> Path:
    """Return the database of the package opustools. Raises `EmsError` if it is not installed."""
    package = importlib.util.find_spec("opustools")
    path = Path(package.origin).parent / "opusdata.db.gz" if package and package.origin else None
    if path is None or not path.is_file():
        raise EmsError(
            "the package opustools with its database is not installed: pip install "
            "'.[pipeline]', or give the database, --db opusdata.db.gz"
        )
    return path


def update_table(database: Path, out: Path) -> int:
    """Write the table of all Moses zips to `out`; return their number.

    Raises `EmsError` for a file that is no such database, or has no Moses zips.
    """
    if not database.is_file():
        raise EmsError(f"{database}: no such file; it is opusdata.db.gz of OpusTools")
    with tempfile.TemporaryDirectory() as folder:
        unpacked, day = _unpacked(database, Path(folder) / "opusdata.db")
        rows = _rows(database, unpacked)
    lines = [f"OpusTools\t{day}", *map(_line, _releases(rows))]
    count = sum(line.count(",") + line.count(":") for line in lines[1:])
    packed = lzma.compress(("\n".join(lines) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME)
    with atomic_path(out) as temporary:
        temporary.write_bytes(packed)
    return count


def _unpacked(database: Path, path: Path) -> tuple[Path, str]:
    """Return the database as SQLite wants it, at `path` if it was packed, and its day: the one in
    the header of the packed file, or that of the file.
    """
    with open(database, "rb") as reader:
        start = reader.read(8)
    seconds = database.stat().st_mtime
    if start.startswith(GZIP):
        seconds = int.from_bytes(start[4:], "little")
        log.info("%s: unpacking", database)
        try:
            with gzip.open(database) as reader, open(path, "wb") as writer:
                shutil.copyfileobj(reader, writer)
        except (EOFError, OSError) as error:
            raise EmsError(f"{database}: cannot be unpacked ({error}); fetch it again") from None
        database = path
    return database, f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def _rows(database: Path, unpacked: Path) -> list[FileRow]:
    try:
        with closing(sqlite3.connect(f"{unpacked.resolve().as_uri()}?mode=ro", uri=True)) as link:
            rows = link.execute(QUERY, (HOST,)).fetchall()
    except sqlite3.Error as error:
        raise EmsError(f"{database}: expected OpusTools' SQLite database ({error})") from None
    if not rows:
        raise EmsError(f"{database}: no Moses zips of OPUS in it; is it the whole database?")
    return rows


def _releases(rows: list[FileRow]) -> Iterator[list[FileRow]]:
    """Yield the files of each release in order; of one that is counted those that have a pair."""
    releases: dict[tuple[str, str], dict[tuple[str, str], FileRow]] = {}
    for row in rows:
        releases.setdefault(row[:2], {})[row[2:4]] = row
    for files in releases.values():
        counted = [row for row in files.values() if row[4]]
        yield counted or list(files.values())


def _line(files: list[FileRow]) -> str:
    """Return the line of a release: "Books\tv1\tde:en,fr\t51467 1582\t3948 115"."""
    groups: dict[str, list[str]] = {}
    for _, _, first, second, _, _ in files:
        groups.setdefault(first, []).append(second)
    names = " ".join(f"{first}:{','.join(seconds)}" for first, seconds in groups.items())
    pairs = " ".join(str(row[4]) for row in files) if files[0][4] else "?"
    return "\t".join((*files[0][:2], names, pairs, " ".join(str(row[5]) for row in files)))
