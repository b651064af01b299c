"""`ems corpora update`: make the table of OPUS's files again, from what OPUS publishes now.

Its API (`API`) is asked for one corpus at a time; answers to an interrupted update are kept. A
clone of its git repository (https://github.com/Helsinki-NLP/OPUS) has info.yaml and statistics.yaml
in corpus/CORPUS/VERSION. They count alignments, which may be more than the lines of a Moses zip,
and have no sizes of the zips, so what the table knows of a file stays. Tables in overlaps/ there
compare the different pairs of two releases.
"""

import lzma
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import yaml

from ems.base.errors import mistake
from ems.base.files import atomic_path, read_json, read_table
from ems.base.progress import Progress, log
from ems.base.records import NonBlank, Record
from ems.base.templates import rendered
from ems.config import languages
from ems.config.languages import OpusFile, opus_files, opus_releases
from ems.corpora import catalogue
from ems.corpora.download import Downloads
from ems.corpora.fetch import Fetched, fetch, fetch_each, is_here
from ems.corpora.locations import is_remote

API = "https://opus.nlpl.eu/opusapi/"
WANTED = ("info.yaml", "statistics.yaml")
LEAST = 10  # percent; smaller overlaps are left out
MOST_GONE = 0.5  # share of the files that may be gone from one table to the next
Number = Annotated[Any, lambda value: str(value or 0).isdecimal(), "a number or ''"]
Files = dict[str, OpusFile]  # by name


class _Answer(Record):
    corpora: list["_Zip"]


class _Zip(Record):
    corpus: NonBlank
    version: NonBlank
    source: NonBlank
    target: NonBlank
    url: NonBlank
    latest: str
    alignment_pairs: Number
    size: Number  # KiB, the table has KB


class OpusRelease(NamedTuple):
    """A release of a corpus. `rank` orders the releases of a corpus, the newest last."""

    corpus: str
    rank: Any
    version: str
    files: Files


def packed(releases: Iterable[OpusRelease], source: str, date: str) -> bytes:
    """Return the content of opus.tsv.xz, which omits files without a pair."""
    lines = [f"{source}\t{date}"]
    for corpus, _, version, files in sorted(releases, key=lambda each: each[:3]):
        names = sorted(name.split("-") for name, file in files.items() if file.pairs != 0)
        groups = groupby(names, key=lambda codes: codes[0])
        joined = (f"{first}:{','.join(last for _, last in both)}" for first, both in groups)
        columns = [corpus, version, " ".join(joined)]
        for key in ("pairs", "kilobytes"):
            numbers = [getattr(files["-".join(codes)], key) for codes in names]
            known = any(number is not None for number in numbers)
            shown = [languages.UNKNOWN if number is None else str(number) for number in numbers]
            columns.append(" ".join(shown) if known else languages.UNKNOWN)
        if names:
            lines.append("\t".join(columns))  # Books v1 de:en,fr en:fr 5 8 3 1 ? 2
    return _compressed(lines)


def packed_overlaps(rows: Iterable[tuple[str, str, str, float]]) -> bytes:
    """Return the content of overlaps.tsv.xz from rows of language pair, corpus, another one, and
    the percentage of its pairs in the other: the largest of any releases, if it is LEAST or more.
    """
    pairs: dict[str, dict[tuple[str, str], float]] = {}
    for pair, corpus, other, percent in rows:
        if corpus != other and percent >= LEAST:
            known = pairs.setdefault(pair, {})
            known[corpus, other] = max(percent, known.get((corpus, other), 0))
    lines = []
    for pair, known in sorted(pairs.items()):
        shares = (f"{corpus}:{other}:{known[corpus, other]:.0f}" for corpus, other in sorted(known))
        lines.append(f"{pair}\t{' '.join(shares)}")
    return _compressed(lines)


def _compressed(lines: list[str]) -> bytes:
    return lzma.compress(("\n".join(lines) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME)


def update(place: str, downloads: Downloads) -> str:
    """Write the table from an API, or the folder of a clone; return the changes. Raises
    `EmsError`, and keeps the old table, if one of them does not answer or fit.
    """
    out, date = languages.UPDATED, f"{datetime.now(UTC):%Y-%m-%d}"
    kept = out.with_name(f"update.{date}.part")  # answers of another day may be out of date
    asked = is_remote(place)
    releases = list(_of_api(place, kept, downloads) if asked else _of_clone(place))
    old = {
        (corpus, version): opus_files(corpus, version)
        for corpus, versions in opus_releases().items()
        for version in versions
    }
    new = {(corpus, version): files for corpus, _, version, files in releases}
    gone = sum(name not in new.get(key, ()) for key, files in old.items() for name in files)
    if not releases or gone > MOST_GONE * sum(map(len, old.values())):
        raise mistake("table shrinks", place=place, files=sum(map(len, new.values())), gone=gone)
    made = {out: packed(releases, place, date)}
    if not asked and (overlaps := list(_overlaps_of_clone(place))):
        made[catalogue.UPDATED] = packed_overlaps(overlaps)
    for path, content in made.items():
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    if asked:
        for folder in out.parent.glob("update.*.part"):
            shutil.rmtree(folder)
    languages.forget()
    catalogue.overlaps.cache_clear()
    now = {key: files for key in new if (files := opus_files(*key))}
    changed = {key: _changes(old[key], now[key]) for key in now if key in old}
    return rendered(
        Path(__file__).with_name("update.txt.jinja"),
        out=out,
        place=place,
        date=date,
        new={key: files for key, files in now.items() if key not in old},
        gone={key: files for key, files in old.items() if key not in now},
        changed={key: counts for key, counts in changed.items() if any(counts)},
        files=sum(map(len, now.values())),
    )


def _changes(old: Files, new: Files) -> tuple[int, int, int]:
    """Return the numbers of files that are new, gone, and have another count."""
    other = sum(new[name].pairs != file.pairs for name, file in old.items() if name in new)
    return len(new.keys() - old), len(old.keys() - new), other


# --- OPUS's API


def _of_api(api: str, kept: Path, downloads: Downloads) -> Iterator[OpusRelease]:
    listed = kept / "corpora.json"
    schema = dict[str, list[NonBlank]]
    fetch(f"{api}?corpora=True", listed, partial(_check, schema), False, downloads)
    names = sorted(set(read_json(listed, schema)["corpora"]))
    one = partial(_ask, api, kept, downloads)
    fetch_each("OPUS's API", "corpora", names, one, api, downloads)
    elsewhere = 0
    for name in names:
        answer = read_json(_path(kept, name), _Answer)
        releases: dict[str, tuple[bool, Files]] = {}
        for each in answer.corpora:
            file = f"{each.source}-{each.target}"
            if not each.url.endswith(f"/OPUS-{name}/{each.version}/moses/{file}.txt.zip"):
                elsewhere += 1
                continue
            _, files = releases.setdefault(each.version, (each.latest == "True", {}))
            size = _number(each.size)
            files[file] = OpusFile(_number(each.alignment_pairs), size and round(1.024 * size))
        for version, (latest, files) in releases.items():
            yield OpusRelease(name, (latest, version), version, files)
    if elsewhere:
        log.warning("%s: %s files lie at another address and are left out", api, f"{elsewhere:,}")


def _path(kept: Path, corpus: str) -> Path:
    return kept / f"{quote(corpus, safe='')}.corpus.json"


def _ask(api: str, kept: Path, downloads: Downloads, corpus: str) -> Fetched:
    """Fetch the answer about a corpus, unless an interrupted update has it."""
    location, path = f"{api}?corpus={quote(corpus)}&preprocessing=moses", _path(kept, corpus)
    if is_here(path, location):
        return "", 0
    return "", fetch(location, path, partial(_check, _Answer), False, downloads)["bytes"]


def _number(value: Any) -> int | None:
    return None if value in ("", None) else int(value)


def _check(schema: Any, path: Path) -> dict[str, int]:
    """Raise `Damaged` for an answer of another form than that of 2026."""
    read_json(path, schema)
    return {}


# --- a clone of OPUS's git repository


def _of_clone(place: str) -> Iterator[OpusRelease]:
    paths = sorted(Path(place).glob("corpus/*/*/statistics.yaml"))
    if not paths:
        raise mistake("no statistics", place=place)
    for path in Progress(f"read {place}", len(paths), "releases").over(paths):
        corpus, version = path.parent.parent.name, path.parent.name
        info, statistics = (_mapping(path.with_name(name)) for name in WANTED)
        known, files = opus_files(corpus, version), {}
        for name, numbers in statistics.get("bitexts", {}).items():
            before = known.get(name, OpusFile(None, None))
            files[name] = OpusFile(before.pairs or numbers.get("alignments"), before.kilobytes)
        if files:
            day = _day(path, info.get("release date", ""))
            yield OpusRelease(corpus, (day, version), version, files)


def _overlaps_of_clone(place: str) -> Iterator[tuple[str, str, str, float]]:
    for path in sorted(Path(place).glob("corpus/*/*/overlaps/*-*.tsv")):
        try:
            for row in read_table(path) if "en" in path.stem.split("-") else ():
                yield path.stem, row["corpus A"], row["corpus B"], float(row["A∩B/A"])
        except (KeyError, TypeError, ValueError) as error:
            raise mistake("no such statistics", path=path, problem=repr(error)) from None


def _mapping(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise mistake("no such statistics", path=path, problem=str(error).splitlines()[0]) from None
    if not isinstance(content, dict):
        raise mistake("no such statistics", path=path, problem=f"found {type(content).__name__}")
    return content


def _day(path: Path, text: str) -> datetime:
    """Parse "Sat Jan 10 03:40:49 EET 2026" without its zone."""
    words = text.split()
    try:
        return datetime.strptime(" ".join(words[:4] + words[5:]), "%a %b %d %H:%M:%S %Y")
    except ValueError as error:
        raise mistake("no such statistics", path=path.with_name(WANTED[0]), problem=error) from None
