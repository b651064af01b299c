"""Which files of a corpus an entry of an experiment means: its languages and their codes.

Of a release of OPUS (ems/languages/opus.py) an entry takes what is there: it needs no list of
languages, and a language that it names must be there. Of any other corpus, and of one with a
`source` of its own, every language that is named, or is in the experiment, is expected under its
own code.
"""

from ems.corpora.settings import CorpusEntry
from ems.errors import EmsError
from ems.languages import load_languages
from ems.languages.opus import OpusFile, opus_codes, opus_files, other_codes

PAPER = "paper"  # the value of `codes` that means: what EMS used
Files = dict[str, tuple[str, ...]]


def pair_name(first: str, second: str) -> str:
    """Return the OPUS name of a language pair: codes sorted as strings ("de-en", "en-fr")."""
    return "-".join(sorted((first, second)))


def pair_files(key: str, entry: CorpusEntry, languages: list[str]) -> Files:
    """Return language pair -> the names of its files in the corpus, for those of `languages` it
    has.

    `codes` may name any language of the table, so that an entry fits experiments with fewer.

    Raises `EmsError` for a language that the entry names and the corpus lacks, for a code that it
    lacks, and for a file that two languages would be made of.
    """
    known = {} if entry.source else opus_files(entry.name, entry.version)
    _check_codes(key, entry, known)
    files = {code: _files(entry, code, known) for code in languages}
    missing = [code for code in languages if not files[code]]
    if missing and (entry.languages is not None or len(missing) == len(languages)):
        used = " that EMS used (codes: paper)" if entry.codes == PAPER else ""
        raise EmsError(
            f"{key}.languages: {entry.name} {entry.version} has no {', '.join(missing)} "
            f"with English{used}; it has: {', '.join(_has(entry, known))}"
        )
    _check_shared(key, files)
    return {pair_name("en", code): names for code, names in files.items() if names}


def _files(entry: CorpusEntry, language: str, known: dict[str, OpusFile]) -> tuple[str, ...]:
    names = tuple(pair_name("en", code) for code in _codes(entry, language, known))
    if not known:
        return names
    chosen = entry.codes == PAPER or language in entry.codes
    others = () if chosen else other_codes(entry.name, language)
    return tuple(name for name in names if name in known) or tuple(
        name for name in (pair_name("en", code) for code in others) if name in known
    )


def _codes(entry: CorpusEntry, language: str, known: dict[str, OpusFile]) -> tuple[str, ...]:
    chosen = entry.codes
    if chosen != PAPER and language in chosen:
        return tuple(chosen[language])
    if not known:
        return (language,)
    return opus_codes(entry.name, language, paper=chosen == PAPER)


def _has(entry: CorpusEntry, known: dict[str, OpusFile]) -> list[str]:
    """Return the languages of the table that a corpus has."""
    return [code for code in load_languages() if code != "en" and _files(entry, code, known)]


def _check_codes(key: str, entry: CorpusEntry, known: dict[str, OpusFile]) -> None:
    chosen = entry.codes
    name = f"{entry.name} {entry.version}"
    if chosen == PAPER:
        if not known:
            raise EmsError(f"{key}.codes: found {PAPER}, but EMS used no {name}; leave it out")
        return
    for language, codes in chosen.items():
        for code in codes:
            if known and pair_name("en", code) not in known:
                raise EmsError(
                    f"{key}.codes.{language}: {name} has no file {pair_name('en', code)}; "
                    f"it has: {_with_english(known)}"
                )


def _with_english(known: dict[str, OpusFile]) -> str:
    return ", ".join(name for name in known if "en" in name.split("-"))


def _check_shared(key: str, files: Files) -> None:
    owner: dict[str, str] = {}
    for language, names in files.items():
        for name in names:
            if name in owner:
                raise EmsError(
                    f"{key}: the file {name} would be both {owner[name]} and {language}; "
                    f"say which codes are whose, `codes: {{{language}: [CODE]}}`"
                )
            owner[name] = language
