"""Make ems/config/languages/opus.tsv.xz, the table of OPUS's files, from the database of OpusTools.

    python perf/opus_table.py [--db opusdata.db.gz] [--out FILE]

The database (SQLite, `opusdata.db.gz`) is that of the installed package unless --db names another.
The table omits files whose codes are not sorted (News-Commentary v16 has both en-cs and cs-en),
whose address does not match their name, or without a pair in a release that has counts.
"""

import argparse
import gzip
import importlib.util
import lzma
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import atomic_path
from ems.base.texts import DAMAGE

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "ems/config/languages/opus.tsv.xz"
HOST = "https://object.pouta.csc.fi"
QUERY = """
    SELECT corpus, version, source, target, CAST(alignment_pairs AS INTEGER), size FROM opusfile
    WHERE preprocessing = 'moses' AND source < target
      AND url = ? || '/OPUS-' || corpus || '/' || version || '/moses/' || source || '-' || target
        || '.txt.zip'
    ORDER BY corpus, latest = 'True', version, source, target
"""
FileRow = tuple[str, str, str, str, int, int]  # corpus, version, two codes, pairs, KB


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--db", type=Path, help="database (default: the installed one)")
    parser.add_argument("--out", type=Path, default=TABLE)
    options = parser.parse_args()
    try:
        count = update_table(options.db or packaged_database(), options.out)
    except EmsError as error:
        sys.exit(str(error))
    print(f"{options.out}: {count:,} files")


if __name__ == "__main__":
    main()
