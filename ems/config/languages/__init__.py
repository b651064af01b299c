"""The languages of the EMS papers, their codes elsewhere, and the files that OPUS has of them.

languages.tsv: the two-letter code (iso1) names a language in EMS; other columns are its codes in
benchmarks.

opus_codes.tsv lists the codes that differ from iso1, in the order in which the files are read. `-`:
the corpus has no text in the language, whatever its files are called (the "ku" of TED2020 is
another language). `*` stands for every corpus that has no line for the language and no file under
its own code. The column `paper` marks the codes that EMS evidently used, by the counts in its Table
I.

names.tsv has all languages of OPUS, FLORES-200 and Tatoeba: the ISO 639-1 code (else ISO 639-3),
the macrolanguage and the name (all by ISO 639-3, iso639-3.sil.org). A code in FLORES-200 is given
only for languages missing in languages.tsv. other_codes.tsv has the codes of ISO 639-1 that were
replaced, the bibliographic codes of ISO 639-2, and the individual languages that macrolanguages
mean most often. families.tsv has the codes of each language family, related families next to each
other; the large ones, such as Indo-European, by branch.

opus.tsv.xz (perf/opus_table.py) has every Moses zip of OPUS: a line per release, the newest of a
corpus last, with its language pairs, their sentence pairs (`?`: not counted) and their KB, rounded.
"""

import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from ems.base.files import read_table

HERE = Path(__file__).parent
TABLE = HERE / "opus.tsv.xz"
NOTHING, ANY = "-", "*"  # in opus_codes.tsv: no code, and every corpus
UNSEEN = "und"  # ISO 639-2 "undetermined": a language that was not trained on


@dataclass(frozen=True)
class Language:
    """One language: codes, script, and its pairs with English in EMS Table I."""

    iso1: str
    tatoeba_v1: str
    flores200: str = ""
    script: str = ""
    ems_pairs: str = "-"


@cache
def load_languages() -> dict[str, Language]:
    """Return all languages of the table by their iso1 code, in its order; `-` becomes ''."""
    languages = {}
    for row in read_table(HERE / "languages.tsv"):
        codes = {key: row[key].removeprefix("-") for key in ("tatoeba_v1", "flores200")}
        languages[row["iso1"]] = Language(**row | codes)
    return languages


@cache
def load_tatoeba_codes() -> tuple[str, ...]:
    """Return the codes of LASER's Tatoeba v1: 112 languages, 54 of which EMS never saw."""
    return tuple((HERE / "tatoeba_v1.txt").read_text(encoding="utf-8").split())


@dataclass(frozen=True)
class OpusFile:
    """One Moses zip of OPUS: its sentence pairs (None: not counted), and its size in KB."""

    pairs: int | None
    kilobytes: int


@cache
def _codes() -> dict[tuple[str, str], list[dict[str, str]]]:
    codes: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in read_table(HERE / "opus_codes.tsv"):
        codes.setdefault((row["corpus"], row["language"]), []).append(row)
    return codes


@cache
def _lines() -> tuple[str, dict[str, dict[str, str]]]:
    """Return the first line of the table, and corpus -> version -> the columns of its files."""
    head, *lines = lzma.decompress(TABLE.read_bytes()).decode().splitlines()
    releases: dict[str, dict[str, str]] = {}
    for line in lines:
        corpus, version, columns = line.split("\t", 2)
        releases.setdefault(corpus, {})[version] = columns
    return head, releases


@cache
def other_codes_of_languages() -> dict[str, str]:
    """Return lower-case code -> code in EMS: "deu", "ger", "iw" and "zh_cn", but not "de"."""
    codes = {row["iso3"]: row["code"] for row in read_table(HERE / "names.tsv")}
    for language in load_languages().values():
        for code in (language.tatoeba_v1, language.flores200.partition("_")[0]):
            codes |= {code: language.iso1} if code else {}
    codes |= {row["code"]: row["language"] for row in read_table(HERE / "other_codes.tsv")}
    opus = {code: own for corpus, own, code in opus_language_codes() if corpus == ANY}
    return codes | {code.lower(): own for code, own in opus.items()}


@cache
def language_names() -> dict[str, str]:
    """Return code -> English name."""
    return {row["code"]: row["name"] for row in read_table(HERE / "names.tsv")}


@cache
def language_families() -> dict[str, str]:
    """Return code -> language family ("Slavic"), relatives next to each other."""
    rows = read_table(HERE / "families.tsv")
    return {code: row["family"] for row in rows for code in row["codes"].split()}


@cache
def short_code(code: str) -> str:
    """Return the shortest BCP 47 code: "cmn", "zho_Hans" -> "zh", "zho_Hant" -> "zh-Hant"."""
    language, _, script = code.partition("_")
    short = other_codes_of_languages().get(language.lower(), language)
    main = {row["code"]: row["flores200"] for row in read_table(HERE / "names.tsv")}
    main |= {key: each.flores200 for key, each in load_languages().items()}
    return f"{short}-{script}" if script and code != main.get(short) else short


def code_among(known: Iterable[str], word: str) -> str | None:
    """Return the code of a language, if known under some code: "DE", "de-DE", "deu", "ger" -> "de".
    None: there is none. The script and the region count only if a known code has them.
    """

    def meaning(code: str) -> str:
        folded = code.strip().lower().replace("-", "_")
        return other_codes_of_languages().get(folded, folded)

    codes = {meaning(code): code for code in known} | {code: code for code in known}
    whole = meaning(word)
    return codes.get(word) or codes.get(whole) or codes.get(meaning(whole.partition("_")[0]))


def pair_name(first: str, second: str) -> str:
    """Return the OPUS name of a language pair: codes sorted as strings ("de-en", "en-fr")."""
    return "-".join(sorted((first, second)))


def file_names(codes: Iterable[Sequence[str]]) -> dict[str, bool]:
    """Return names of a pair's files by its languages' codes; true: the second comes first."""
    names = (("-".join(both), pair_name(*both)) for both in product(*codes))
    return {name: written != name for written, name in names}


def opus_date() -> str:
    """Return the date of the OPUS database that the table was made from."""
    return _lines()[0].split("\t")[1]


def opus_releases() -> dict[str, tuple[str, ...]]:
    """Return the versions of every OPUS corpus by its name, the newest last."""
    return {corpus: tuple(versions) for corpus, versions in _lines()[1].items()}


@cache
def opus_files(corpus: str, version: str) -> dict[str, OpusFile]:
    """Return the files of a release by name ("en-zh_cn"); empty if OPUS does not have it."""
    columns = _lines()[1].get(corpus, {}).get(version)
    if columns is None:
        return {}
    packed, *numbers = columns.split("\t")
    groups = (group.split(":") for group in packed.split(" "))  # "de:en,fr" is de-en and de-fr
    names = [f"{first}-{second}" for first, others in groups for second in others.split(",")]
    pairs, sizes = (column.split(" ") for column in numbers)
    counts = [None] * len(sizes) if pairs == ["?"] else map(int, pairs)
    files = zip(names, counts, map(int, sizes), strict=True)
    return {name: OpusFile(count, size) for name, count, size in files}


def opus_codes(corpus: str, language: str, paper: bool = False) -> tuple[str, ...]:
    """Return a language's codes in a corpus, in order; with `paper` only codes that EMS used."""
    rows = _codes().get((corpus, language), [{"code": language, "paper": "yes"}])
    codes = [row["code"] for row in rows if row["paper"] == "yes" or not paper]
    return tuple(code for code in codes if code != NOTHING)


def other_codes(corpus: str, language: str) -> tuple[str, ...]:
    """Return the fallback codes of a language in a corpus that lists none for it."""
    if (corpus, language) in _codes():
        return ()
    return tuple(row["code"] for row in _codes().get((ANY, language), ()))


def opus_pair(
    corpus: str,
    version: str,
    first: str,
    second: str,
    codes: Mapping[str, Sequence[str]] | None = None,
    paper: bool = False,
) -> dict[str, bool]:
    """Return a release's files of two languages; the value is true if the second one comes first.
    Files are looked up by the languages' `codes`, by default the codes of the table (with `paper`
    only codes that EMS used), and if there are none, also by `other_codes`.
    """
    known = opus_files(corpus, version)
    own, more = [], []
    for language in (first, second):
        named = (codes or {}).get(language)
        own.append(tuple(named or opus_codes(corpus, language, paper)))
        more.append(own[-1] + (() if named or paper else other_codes(corpus, language)))
    for each in (own, more):
        if there := {name: turned for name, turned in file_names(each).items() if name in known}:
            return there
    return {}


def opus_language_codes() -> list[tuple[str, str, str]]:
    return [(*key, row["code"]) for key, rows in _codes().items() for row in rows]
