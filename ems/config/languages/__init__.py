"""The languages of the EMS papers, their codes elsewhere, and the files that OPUS has of them.

languages.tsv: the two-letter code (iso1) names a language in EMS; other columns are its codes in
benchmarks.

OPUS writes a language in several ways ("zh", "zh_CN", "cmn_Hant"). `means` reads such codes with
the package langcodes (BCP 47, CLDR). opus_codes.tsv has exceptions: the codes of a language
in a corpus, in the order in which the files are read. `-`: the corpus has no text in the
language, whatever its files are called (the "ku" of TED2020 is another language). `*`: the meaning
of a code of OPUS that is no BCP 47. The column `paper` marks the codes that EMS evidently used, by
the counts in its Table I.

names.tsv has all languages of OPUS, FLORES-200 and Tatoeba: the ISO 639-1 code (else ISO 639-3),
the macrolanguage and the name (all by ISO 639-3, iso639-3.sil.org). A code in FLORES-200 is given
only for languages missing in languages.tsv. other_codes.tsv has the codes of ISO 639-1 that were
replaced, the bibliographic codes of ISO 639-2, and the individual languages that macrolanguages
mean most often. families.tsv has the codes of each language family, related families next to each
other; the large ones, such as Indo-European, by branch.

opus.tsv.xz (perf/opus_table.py) has every Moses zip of OPUS: a line per release, the newest of a
corpus last, with its language pairs, their sentence pairs and their KB, rounded (`?`: unknown). A
newer table that `ems corpora update` wrote (`UPDATED`) replaces it.
"""

import lzma
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from ems.base.errors import mistake
from ems.base.files import read_table

HERE = Path(__file__).parent
TABLE = HERE / "opus.tsv.xz"
_DATA = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # also homeless
UPDATED = Path(_DATA, "ems", TABLE.name)
UNKNOWN = "?"  # in the table: no count, or no size
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
    """One Moses zip of OPUS: its sentence pairs and its size in KB; None: unknown."""

    pairs: int | None
    kilobytes: int | None


@cache
def _codes() -> dict[tuple[str, str], list[dict[str, str]]]:
    codes: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in read_table(HERE / "opus_codes.tsv"):
        codes.setdefault((row["corpus"], row["language"]), []).append(row)
    return codes


def read_packed(path: Path) -> str:
    """Return the text of a compressed table. Raises `EmsError` for a damaged one."""
    try:
        return lzma.decompress(path.read_bytes()).decode()
    except (lzma.LZMAError, ValueError) as error:
        raise mistake("table of OPUS", path=path, error=error) from None


@cache
def _lines() -> tuple[list[str], dict[str, dict[str, str]]]:
    """Return (source, date), and corpus -> version -> columns, of the newer table."""
    tables = list(map(read_packed, filter(Path.is_file, (TABLE, UPDATED))))
    head, *lines = max(tables, key=lambda text: text.partition("\n")[0].split("\t")[1]).splitlines()
    releases: dict[str, dict[str, str]] = {}
    for line in lines:
        corpus, version, columns = line.split("\t", 2)
        releases.setdefault(corpus, {})[version] = columns
    return head.split("\t"), releases


@cache
def names_by_code() -> dict[str, dict[str, str]]:
    """Return code -> row of names.tsv."""
    return {row["code"]: row for row in read_table(HERE / "names.tsv")}


@cache
def other_codes_of_languages() -> dict[str, str]:
    """Return lower-case code -> code in EMS: "deu", "ger", "iw" and "zh_cn", but not "de"."""
    codes = {row["iso3"]: code for code, row in names_by_code().items()}
    for language in load_languages().values():
        for code in (language.tatoeba_v1, language.flores200.partition("_")[0]):
            codes |= {code: language.iso1} if code else {}
    return codes | {row["code"]: row["language"] for row in read_table(HERE / "other_codes.tsv")}


@cache
def language_names() -> dict[str, str]:
    """Return code -> English name."""
    return {code: row["name"] for code, row in names_by_code().items()}


@cache
def language_families() -> dict[str, str]:
    """Return code -> language family ("Slavic"), relatives next to each other."""
    rows = read_table(HERE / "families.tsv")
    return {code: row["family"] for row in rows for code in row["codes"].split()}


def family_of(code: str) -> str:
    """Return the family of a language, or of a region's ("pt_BR")."""
    return language_families().get(code.partition("_")[0], "Other")


@cache
def flores_codes() -> dict[str, str]:
    """Return code -> code in FLORES-200 of all languages, with the script; '' for none."""
    named = {code: row["flores200"] for code, row in names_by_code().items()}
    return named | {code: language.flores200 for code, language in load_languages().items()}


@cache
def short_code(code: str) -> str:
    """Return the shortest BCP 47 code: "cmn", "zho_Hans" -> "zh", "zho_Hant" -> "zh-Hant"."""
    language, _, script = code.partition("_")
    short = other_codes_of_languages().get(language.lower(), language)
    return f"{short}-{script}" if script and code != flores_codes().get(short) else short


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
    """Return the day of the facts in the table of OPUS's files."""
    return _lines()[0][1]


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
    counts = [
        [None if number == UNKNOWN else int(number) for number in column.split(" ")]
        if column != UNKNOWN
        else [None] * len(names)
        for column in numbers
    ]
    return {name: OpusFile(*both) for name, *both in zip(names, *counts, strict=True)}


def forget() -> None:
    """Read the table of OPUS's files anew, after an update."""
    for each in (_lines, opus_files, _codes_of_release):
        each.cache_clear()


@cache
def _codes_of_release(corpus: str, version: str) -> tuple[str, ...]:
    return tuple(sorted({code for file in opus_files(corpus, version) for code in file.split("-")}))


@cache
def _tag(code: str) -> Any:
    """Return a code as a tag of BCP 47, its language by ISO 639-1 where CLDR says so."""
    from langcodes import Language, LanguageTagError  # no part of a model that is used alone

    known = {own: meant for corpus, meant, own in opus_language_codes() if corpus == ANY}
    try:
        tag = Language.get(known.get(code, code), normalize=False)
    except LanguageTagError:
        return Language(code)
    wider = Language.get(str(tag)).prefer_macrolanguage()
    same = (wider.script, wider.territory) == (tag.script, tag.territory)
    return wider if same else tag  # prs is fa-AF, sh is sr-Latn


def standard(code: str) -> str:
    """Return the language of a code of OPUS: "cmn_Hant" -> "zh"."""
    return _tag(code).language or code


@cache
def means(code: str, language: str) -> bool:
    """Return whether a code of OPUS means a language: "zh_TW" means "zh", "zh_Hant" and "zh_TW"."""
    tag, asked = _tag(code), _tag(language)
    if tag.language != asked.language or not tag.is_valid():
        return code == language
    script = tag.maximize().script if asked.script else None
    return (script, asked.territory and tag.territory) == (asked.script, asked.territory)


def summed(files: Iterable[OpusFile | None]) -> OpusFile:
    """Return the sums of files; None if a number, or a file, is unknown."""
    known = [file or OpusFile(None, None) for file in files]
    counts, sizes = [file.pairs for file in known], [file.kilobytes for file in known]
    return OpusFile(*(None if None in each else sum(each) for each in (counts, sizes)))


def opus_codes(corpus: str, version: str, language: str, paper: bool = False) -> tuple[str, ...]:
    """Return a language's codes in a release, in order; with `paper` only codes that EMS used."""
    if rows := _codes().get((corpus, language), ()):
        codes = [row["code"] for row in rows if row["paper"] == "yes" or not paper]
        return tuple(code for code in codes if code != NOTHING)
    others = () if paper else _codes_of_release(corpus, version)
    return (language, *(code for code in others if code != language and means(code, language)))


def opus_pair(
    corpus: str,
    version: str,
    first: str,
    second: str,
    codes: Mapping[str, Sequence[str]] | None = None,
    paper: bool = False,
) -> dict[str, bool]:
    """Return a release's files of two languages; the value is true if the second one comes first.
    Files are looked up by the languages' `codes`, by default `opus_codes` (with `paper` only codes
    that EMS used). The codes of a few files are not sorted; a sorted one comes before its mirror.
    """
    own = [
        tuple((codes or {}).get(language) or opus_codes(corpus, version, language, paper))
        for language in (first, second)
    ]
    known, names = opus_files(corpus, version), {}
    for name, turned in file_names(own).items():
        mirror = "-".join(name.split("-")[::-1])
        names |= {name: turned} if name in known else {mirror: not turned}
    return {name: turned for name, turned in names.items() if name in known}


def opus_language_codes() -> list[tuple[str, str, str]]:
    return [(*key, row["code"]) for key, rows in _codes().items() for row in rows]
