"""Make the packed tables of OPUS's files and of the overlaps of its corpora from collected facts.

    python perf/opus_table.py DIRECTORY DATE [--out FILE]

The directory has pairs.tsv.xz (corpus, version, pair, pairs, bytes; `?` or nothing: unknown),
releases.tsv (corpus, version, latest) and overlaps.tsv.xz (pair, corpus_a, corpus_b, percent_of_a),
as collected by hand on DATE. They become ems/config/languages/opus.tsv.xz, or FILE, and
ems/corpora/overlaps.tsv.xz, or overlaps.tsv.xz in FILE's folder. `ems corpora update` makes the
same tables from what OPUS itself publishes.
"""

import argparse
import csv
import lzma
import sys
from operator import itemgetter
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import atomic_path, read_table
from ems.config.languages import OpusFile
from ems.corpora.update import Files, OpusRelease, packed, packed_overlaps

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "ems/config/languages/opus.tsv.xz"
OVERLAPS = ROOT / "ems/corpora/overlaps.tsv.xz"
EMPTY = 8  # KB; a smaller zip that alone is not counted holds only its README and licence
ELSEWHERE = ("ELRC-416-Swedish_Social_Secur",)  # its zips lie under another name


def releases_of(folder: Path) -> list[OpusRelease]:
    """Return the releases whose files are in pairs.tsv.xz."""
    try:
        rows = read_table(folder / "releases.tsv")
        latest = {(row["corpus"], row["version"]): row["latest"] == "yes" for row in rows}
        files: dict[tuple[str, str], Files] = {}
        with lzma.open(folder / "pairs.tsv.xz", "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                of_release = files.setdefault((row["corpus"], row["version"]), {})
                size = None if row["bytes"] in ("", "?") else int(row["bytes"])
                pairs = None if row["pairs"] == "?" else int(row["pairs"])
                of_release[row["pair"]] = OpusFile(pairs, size and max(1, round(size / 1000)))
    except (OSError, KeyError, ValueError) as error:
        raise EmsError(f"{folder}: expected pairs.tsv.xz and releases.tsv ({error})") from None
    for own in files.values():
        counted = any(file.pairs for file in own.values())
        for name, file in own.items():
            if counted and file.pairs is None and file.kilobytes and file.kilobytes < EMPTY:
                own[name] = OpusFile(0, file.kilobytes)
    return [
        OpusRelease(corpus, (latest.get((corpus, version), False), version), version, own)
        for (corpus, version), own in files.items()
        if corpus not in ELSEWHERE
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("date", help="like 2026-06-24")
    parser.add_argument("--out", type=Path, default=TABLE)
    options = parser.parse_args()
    try:
        releases = releases_of(options.folder)
    except EmsError as error:
        sys.exit(str(error))
    with lzma.open(options.folder / "overlaps.tsv.xz", "rt", encoding="utf-8") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        columns = map(itemgetter("pair", "corpus_a", "corpus_b", "percent_of_a"), rows)
        overlaps = packed_overlaps((*row[:3], float(row[3])) for row in columns)
    place = OVERLAPS if options.out == TABLE else options.out.with_name(OVERLAPS.name)
    made = {options.out: packed(releases, "collected", options.date), place: overlaps}
    for path, content in made.items():
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    print(f"{options.out}: {sum(len(each.files) for each in releases):,} files")


if __name__ == "__main__":
    main()
