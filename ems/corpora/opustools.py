"""Use the package OpusTools: download OPUS's Moses zips, and read the table of OPUS's files.

OpusTools chooses the name of the file it downloads, so it gets a folder of its own. It prints its
failures and returns, or ends in a traceback: only an existing file counts as success. It waits for
a silent server forever, so sockets get a timeout.

`ems corpora update` creates ems/config/languages/opus.tsv.xz from its database (SQLite,
`opusdata.db.gz`). It omits files whose codes are not sorted (News-Commentary v16 has both en-cs and
cs-en), whose address does not match their name, or without a pair in a release that has counts.
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
from ems.base.texts import DAMAGE
from ems.config.file import OPUSTOOLS
from ems.corpora.download import Downloads
from ems.corpora.slots import slot

HOST = "https://object.pouta.csc.fi"
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
    """Yield the Moses zip at `location` in a temporary folder. Raises `EmsError` if it fails."""
    folder = out.with_name(f".{out.name}.{OPUSTOOLS}.ems.part")
    shutil.rmtree(folder, ignore_errors=True)  # left by a killed run
    folder.mkdir(parents=True)
    try:
        with slot(OPUSTOOLS, downloads.per_host, downloads.slots):
            printed = _get(location, folder, downloads.stall)
        files = sorted(folder.rglob("*.zip"))
        if len(files) != 1:
            raise EmsError(
                f"{location}: OpusTools downloaded {len(files)} files instead of one ({printed}); "
                "check the network, the corpus, its version and the language pair"
            )
        yield files[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _get(location: str, folder: Path, stall: float) -> str:
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
    except (Exception, SystemExit) as error:  # OpusTools catches nothing itself
        raise EmsError(
            f"{location}: OpusTools failed ({type(error).__name__}: {error}); check the network, "
            "or set `sources` in config.yaml to a host or a directory"
        ) from None
    finally:
        socket.setdefaulttimeout(timeout)
    lines = printed.getvalue().replace("\r", "\n").strip().split("\n")
    last = lines[-1].strip() or "it printed nothing"
    log.info("OpusTools: %s", last)
    return last


def opus_get() -> type:
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
    package = importlib.util.find_spec("opustools")
    path = Path(package.origin).parent / "opusdata.db.gz" if package and package.origin else None
    if path is None or not path.is_file():
        raise EmsError(
            "the package opustools with its database is not installed: pip install "
            "'.[pipeline]', or give the database, --db opusdata.db.gz"
        )
    return path


def update_table(database: Path, out: Path) -> int:
    """Write the table of all Moses zips to `out`; return the number of zips."""
    if not database.is_file():
        raise EmsError(f"{database}: no such file; expected opusdata.db.gz of OpusTools")
    rows, seconds = _read_database(database)
    releases: dict[tuple[str, str], dict[tuple[str, str], FileRow]] = {}
    for row in rows:
        releases.setdefault(row[:2], {})[row[2:4]] = row
    lines, count = [f"OpusTools\t{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"], 0
    for (corpus, version), files in releases.items():
        counted = [row for row in files.values() if row[4]]
        listed = counted or list(files.values())
        groups: dict[str, list[str]] = {}
        for _, _, first, second, _, _ in listed:
            groups.setdefault(first, []).append(second)
        names = " ".join(f"{first}:{','.join(others)}" for first, others in groups.items())
        pairs = " ".join(str(row[4]) for row in counted) or "?"
        sizes = " ".join(str(row[5]) for row in listed)
        lines.append("\t".join((corpus, version, names, pairs, sizes)))  # Books v1 de:en,fr 5 8 3 1
        count += len(listed)
    packed = lzma.compress(("\n".join(lines) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME)
    with atomic_path(out) as temporary:
        temporary.write_bytes(packed)
    return count


def _read_database(database: Path) -> tuple[list[FileRow], float]:
    """Return the rows of the Moses zips, and the time of the database (seconds since 1970)."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked, seconds = database, database.stat().st_mtime
        with open(database, "rb") as reader:
            start = reader.read(8)
        if start.startswith(b"\x1f\x8b"):
            unpacked, seconds = Path(folder) / "opus.db", int.from_bytes(start[4:], "little")
            log.info("%s: unpacking", database)
            try:
                with gzip.open(database) as packed, open(unpacked, "wb") as writer:
                    shutil.copyfileobj(packed, writer)
            except DAMAGE as error:
                problem = f"cannot be unpacked ({error})"
                raise EmsError(f"{database}: {problem}; fetch it again") from None
        address = f"{unpacked.resolve().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True)) as link:
                rows = link.execute(QUERY, (HOST,)).fetchall()
        except sqlite3.Error as error:
            raise EmsError(f"{database}: expected OpusTools' SQLite database ({error})") from None
    if not rows:
        raise EmsError(f"{database}: lists no Moses zips of OPUS; is it the whole database?")
    return rows, seconds
