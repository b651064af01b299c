"""Make ems/languages/opus.tsv from OpusTools' database: `ems corpora update --db FILE`.

The database is an SQLite file, `opusdata.db.gz` in OpusTools' wheel (unpack it first). Its table
`opusfile` has a row per file; ours are the Moses zips with English of the releases that the column
`counted` of catalogue.tsv names. A file whose codes are not sorted is left out: News-Commentary v16
has a stray en-cs (883 pairs) beside its cs-en.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from ems.corpora.catalogue import catalogue
from ems.errors import EmsError
from ems.files import write_text

HEADER = ("corpus", "version", "file", "pairs", "kilobytes")
QUERY = """
    SELECT source || '-' || target, alignment_pairs, size FROM opusfile
    WHERE corpus = ? AND version = ? AND preprocessing = 'moses' AND alignment_pairs > 0
      AND (source = 'en' OR target = 'en') AND source < target
    ORDER BY 1
"""


def update_facts(database: Path, out: Path) -> int:
    """Write the table of all counted releases to `out`; return the number of files.

    Raises `EmsError` for a file that is no such database, and for a release that it does not have.
    """
    if not database.is_file():
        raise EmsError(f"{database}: no such file; it is opusdata.db.gz of OpusTools, unpacked")
    rows = [HEADER]
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as link:
            for name, known in catalogue().items():
                if known.counted:
                    rows += _release(link, name, known.counted, database)
    except sqlite3.Error as error:
        raise EmsError(
            f"{database}: expected OpusTools' SQLite database ({error}); unpack opusdata.db.gz"
        ) from None
    write_text(out, "".join("\t".join(map(str, row)) + "\n" for row in rows))
    return len(rows) - 1


def _release(link: sqlite3.Connection, corpus: str, version: str, database: Path) -> list[tuple]:
    files = link.execute(QUERY, (corpus, version)).fetchall()
    if not files:
        raise EmsError(
            f"{database}: no Moses files of {corpus} {version} with English; is it the whole "
            "database, and is that the release's name there (the column counted of catalogue.tsv)?"
        )
    return [(corpus, version, *file) for file in files]
