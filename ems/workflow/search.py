"""`ems corpora search`: languages by name or code, and their corpora in OPUS."""

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.base.records import Json
from ems.base.templates import rendered
from ems.config import languages
from ems.config.languages import NOTHING, load_languages, opus_files, opus_releases, standard
from ems.corpora import catalogue
from ems.corpora.catalogue import NOISE, catalogue_entry

PIVOT = "en"
SCRIPTS = {"Latn": "Latin", "Cyrl": "Cyrillic", "Arab": "Arabic", "Deva": "Devanagari"}


@dataclass(frozen=True)
class Named:
    """A language: its codes, its macrolanguage ('' for none) and its name."""

    code: str
    iso3: str
    macrolanguage: str
    flores200: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.code})"

    @property
    def language(self) -> languages.Language:
        if self.code in load_languages():
            return load_languages()[self.code]
        tatoeba = self.iso3 if self.iso3 in languages.load_tatoeba_codes() else ""
        script = self.flores200.partition("_")[2]
        return languages.Language(self.code, tatoeba, self.flores200, SCRIPTS.get(script, script))


@cache
def named_languages() -> dict[str, Named]:
    return {code: Named(**row) for code, row in languages.names_by_code().items()}


@cache
def _code_of_word() -> dict[str, str]:
    """Return lower-case name or code -> code of the language."""
    known = named_languages()
    words = {language.name.lower(): code for code, language in known.items()}
    return words | languages.other_codes_of_languages() | {code: code for code in known}


@cache
def _own_codes() -> dict[str, str]:
    return {standard(code): code for code in (*named_languages(), *load_languages())}


def _own(code: str) -> str:
    """Return the code in EMS of a code of OPUS or of the user: "zh" for "cmn", "tl" for "fil"."""
    return _own_codes().get(standard(code), code)


@cache
def _language_of_code() -> dict[tuple[str, str], str]:
    """Return (corpus, its code) -> language, from ems/config/languages/opus_codes.tsv."""
    rows = languages.opus_language_codes()
    own = {(corpus, language): "" for corpus, language, code in rows if code == NOTHING}
    return own | {(corpus, code): language for corpus, language, code in rows if code != NOTHING}


def find_language(word: str) -> Named:
    """Return the language of a name or code, "cym" or "zh_CN". Raises `EmsError` for others."""
    folded, words = word.strip().lower().replace("-", "_"), _code_of_word()
    code = words.get(folded) or words.get(_own(folded))
    code = code or words.get(re.sub("_[a-z]{2,8}$", "", folded))
    if code is None:
        names = {name for each in named_languages().values() for name in (str(each), each.name)}
        raise mistake("no such language", word=word, hint=catalogue.did_you_mean(word, names))
    return named_languages()[_own(code)]


@cache
def language_of(corpus: str, code: str) -> str:
    """Return a code's language in a corpus: "zh" for "zh_CN", '' if it means another there."""
    if (corpus, code) in _language_of_code():
        return _language_of_code()[corpus, code]
    return _own(code)


def relatives(language: Named) -> list[Named]:
    """Return the macrolanguage of a language, then its other members."""
    known, parent = named_languages(), language.macrolanguage
    family = {language.code, parent} - {""}
    others = [each for each in known.values() if each.macrolanguage in family and each != language]
    return [known[parent], *others] if parent in known else others


@dataclass(frozen=True)
class Offer:
    """The newest release with two languages, if possible without known defect; None: unknown."""

    corpus: str
    version: str
    files: tuple[str, ...]
    pairs: int | None
    kilobytes: int | None

    @property
    def noise(self) -> str:
        """The class of the corpus: a key of NOISE."""
        return catalogue_entry(self.corpus).noise

    @property
    def worth(self) -> float:
        """The estimated number of good pairs: all but the share of noise of the class."""
        return (self.pairs or 0) * (1 - catalogue.NOISE_SHARE[self.noise])

    @property
    def defect(self) -> catalogue.Defect | None:
        """The first known defect of its files that makes them bad."""
        found = catalogue.defects_of(self.corpus, self.version, self.files)
        return next((each for each in found if each.bad), None)


def offers(first: str, second: str) -> list[Offer]:
    """Return the corpora with a language pair, the cleanest and largest first."""
    found, classes = [], list(NOISE)
    for corpus, versions in opus_releases().items():
        known = ((version, opus_files(corpus, version)) for version in versions)
        offered = []
        for version, files in known:
            if names := tuple(languages.opus_pair(corpus, version, first, second)):
                whole = languages.summed(files[name] for name in names)
                offered.append(Offer(corpus, version, names, whole.pairs, whole.kilobytes))
        found += ([each for each in offered if not each.defect] or offered)[-1:]
    return sorted(found, key=lambda of: (classes.index(of.noise), -(of.pairs or 0), of.corpus))


@cache
def partners() -> defaultdict[str, Counter[str]]:
    """Return language -> language -> number of corpora with both in OPUS."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for corpus, versions in opus_releases().items():
        files = [file.split("-") for file in opus_files(corpus, versions[-1])]
        for pair in {tuple(language_of(corpus, code) for code in file) for file in files}:
            for first, second in (pair, pair[::-1]):
                counts[first][second] += 1
    return counts


def nearest(language: Named) -> str:
    """Return "; related languages in OPUS: ..." or ""."""
    near = [str(each) for each in relatives(language) if partners()[each.code]]
    return f"; related languages in OPUS: {', '.join(near)}" if near else ""


def search(first: Named, second: Named) -> list[Offer]:
    """Return `offers` of a language pair. Raises `EmsError` that names alternatives if none."""
    if first == second:
        raise EmsError(f"expected two languages, found {first} twice")
    if found := offers(first.code, second.code):
        return found
    counts = partners()[first.code]
    most = sorted(counts, key=lambda code: (-counts[code], code))[:8]
    others = f"; it has {first} with {', '.join(most)}" if most else ""
    words = {"date": languages.opus_date(), "others": others, "nearest": nearest(first)}
    raise mistake("no text of a pair", first=first, second=second, **words)


def search_text(first: str, second: str, as_json: bool, complete: bool) -> str:
    """Return the corpora of two languages as a table or JSON; `second` may be "" for English. JSON
    has null for unknown numbers. A table that is not `complete` sums up small corpora.
    """
    one, other = find_language(first), find_language(second or PIVOT)
    found = search(one, other)
    if as_json:
        return json.dumps([_entry(offer) for offer in found], indent=1, ensure_ascii=False) + "\n"
    counted = sum(offer.pairs or 0 for offer in found)
    least = -1 if complete else counted // 1000
    shown = [offer for offer in found if offer.pairs is None or offer.pairs > least]
    return rendered(
        Path(__file__).with_name("search.txt.jinja"),
        first=one,
        second=other,
        counted=counted,
        found=found,
        shown=shown,
        licence=catalogue.licence_of,
        classes=NOISE,
        date=languages.opus_date(),
        others=[code for code in partners()[one.code] if code != other.code],
        pivot=PIVOT,
    )


def _entry(offer: Offer) -> Json:
    return {
        "corpus": offer.corpus,
        "version": offer.version,
        "noise": offer.noise,
        "files": list(offer.files),
        "sentence_pairs": offer.pairs,
        "kilobytes": offer.kilobytes,
        "licence": catalogue_entry(offer.corpus).licence or None,
    }
