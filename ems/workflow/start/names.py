"""Languages by name or code: all of OPUS, FLORES-200 and Tatoeba.

names.tsv has the ISO 639-1 code, or the ISO 639-3 one where there is none, the macrolanguage, the
name (all by ISO 639-3, iso639-3.sil.org) and the code in FLORES-200 of those that
ems/config/languages/languages.tsv does not have.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.config.languages import Language, load_languages, load_tatoeba_codes
from ems.config.languages.opus import ANY, NOTHING, opus_language_codes
from ems.corpora.catalogue import did_you_mean

SCRIPTS = {"Latn": "Latin", "Cyrl": "Cyrillic", "Arab": "Arabic", "Deva": "Devanagari"}


@dataclass(frozen=True)
class Named:
    """A language: its code in experiments, ISO 639-3 code, macrolanguage ('' for none), code in
    FLORES-200 and name.
    """

    code: str
    iso3: str
    macrolanguage: str
    flores200: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.code})"

    @property
    def language(self) -> Language:
        """The language as an experiment has it."""
        if self.code in load_languages():
            return load_languages()[self.code]
        tatoeba = self.iso3 if self.iso3 in load_tatoeba_codes() else ""
        script = self.flores200.partition("_")[2]
        return Language(self.code, tatoeba, self.flores200, SCRIPTS.get(script, script))


@cache
def named_languages() -> dict[str, Named]:
    """Return all languages by their code."""
    rows = read_table(Path(__file__).with_name("names.tsv"))
    return {row["code"]: Named(**row) for row in rows}


@cache
def _by_word() -> dict[str, str]:
    """Return the code of each name and of each code that is used somewhere, in small letters."""
    words = {language.name.lower(): code for code, language in named_languages().items()}
    words |= {language.iso3: code for code, language in named_languages().items()}
    words |= {code: code for code in named_languages()}
    return words | {code.lower(): of for (corpus, code), of in _of_codes().items() if corpus == ANY}


@cache
def _of_codes() -> dict[tuple[str, str], str]:
    """Return (corpus, code of it) -> language, as ems/config/languages/opus_codes.tsv has it."""
    rows = opus_language_codes()
    own = {(corpus, language): "" for corpus, language, code in rows if code == NOTHING}
    return own | {(corpus, code): language for corpus, language, code in rows if code != NOTHING}


def find_language(word: str) -> Named:
    """Return the language of a name or code: "Welsh", "cy", "cym", "zh_CN", "pt-BR".

    Raises `EmsError` for an unknown one, with the nearest.
    """
    folded = word.strip().lower().replace("-", "_")
    words = _by_word()
    code = words.get(folded) or words.get(re.sub("_[a-z]{2,8}$", "", folded))
    if code is None:
        known = {str(language) for language in named_languages().values()}
        known |= {language.name for language in named_languages().values()}
        raise EmsError(
            f"unknown language {word!r}{did_you_mean(word, known)}; expected an English name or a "
            "code of ISO 639"
        )
    return named_languages()[code]


def language_of(corpus: str, code: str) -> str:
    """Return the language of a corpus's code: "zh" of "zh_CN"; the code itself if it is unknown,
    and '' for a code that means another language in this corpus.
    """
    for key in ((corpus, code), (ANY, code)):
        if key in _of_codes():
            return _of_codes()[key]
    return _by_word().get(code.partition("_")[0].lower(), code)


def relatives(language: Named) -> list[Named]:
    """Return the languages of the same macrolanguage, and that one itself, the nearest first."""
    known = named_languages()
    of = language.macrolanguage
    family = [known[of]] if of in known else []
    members = [each for each in known.values() if each.macrolanguage in (language.code, of or None)]
    return [*family, *(each for each in members if each != language)]
