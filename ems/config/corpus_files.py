"""Which files of a corpus an entry of an experiment means: its language pairs and their codes.

Of a release of OPUS (ems/config/languages.py) an entry takes what is there: it needs no list
of languages, and a pair that it names must be there. Of any other corpus, and of one with a
`source` of its own, every pair that is named, or that the experiment's languages make, is expected
under its languages' own codes.
"""

from itertools import combinations, product
from typing import NamedTuple

from ems.base.errors import EmsError
from ems.config.corpus_entries import CorpusEntry
from ems.config.languages import OpusFile, load_languages, opus_codes, opus_files, other_codes

PAPER = "paper"  # the value of `codes` that means: what EMS used
ALL = "all"  # the value of `pairs` that means: every pair of the languages
ENGLISH = "en"
Pair = tuple[str, str]  # languages, sorted as strings


class Files(NamedTuple):
    """Language pair -> the names of its files in the corpus, and the names that have the pair's
    second language first ("cmn-en" of the pair "en-zh").
    """

    names: dict[str, tuple[str, ...]]
    turned: frozenset[str]


def pair_name(first: str, second: str) -> str:
    """Return the OPUS name of a language pair: codes sorted as strings ("de-en", "en-fr")."""
    return "-".join(sorted((first, second)))


def split_pair(key: str, pair: str, languages: list[str]) -> Pair:
    """Return the two languages that "de-fr" names, in its order.

    Raises `EmsError` unless these are two different ones of `languages`.
    """
    codes = pair.split("-")
    if len(codes) != 2 or codes[0] == codes[1]:
        raise EmsError(f"{key}: found {pair!r}, expected two languages, like de-fr")
    for code in codes:
        if code not in languages:
            raise EmsError(
                f"{key}: {pair} has {code!r}, but the languages here are {', '.join(languages)}"
            )
    return codes[0], codes[1]


def chosen_pairs(
    key: str, entry: CorpusEntry, chosen: list[str], languages: list[str]
) -> list[Pair]:
    """Return the pairs that an entry means: those of `pairs`, or all, or those with English of the
    languages `chosen` for it, of the experiment's `languages`.

    Raises `EmsError` for a pair that is named twice, and for keys that contradict one another.
    """
    if isinstance(entry.pairs, list):
        for name in sorted({"languages", "without"} & entry.model_fields_set):
            raise EmsError(f"{key}.{name}: `pairs` has the pairs already; leave one of them out")
        pairs = [_sorted(split_pair(f"{key}.pairs", pair, languages)) for pair in entry.pairs]
        for pair in pairs:
            if pairs.count(pair) > 1:
                raise EmsError(f"{key}.pairs: {pair_name(*pair)} is named twice")
        return pairs
    if entry.pairs == ALL or ENGLISH not in languages:
        return [_sorted(pair) for pair in combinations(chosen, 2)]
    return [_sorted((ENGLISH, code)) for code in chosen if code != ENGLISH]


def _sorted(pair: Pair) -> Pair:
    first, second = sorted(pair)
    return first, second


def pair_files(key: str, entry: CorpusEntry, pairs: list[Pair]) -> Files:
    """Return the files of those of `pairs` that the corpus has.

    `codes` may name any language of the table, so that an entry fits experiments with fewer.

    Raises `EmsError` for a pair that the entry names and the corpus lacks, for a code that it
    lacks, and for a file that two pairs would be made of.
    """
    known = {} if entry.source else opus_files(entry.name, entry.version)
    _check_codes(key, entry, known)
    files = {pair: _files(entry, pair, known) for pair in pairs}
    missing = [pair for pair in pairs if not files[pair]]
    named = entry.languages is not None or entry.pairs is not None
    if missing and (named or len(missing) == len(pairs)):
        raise EmsError(_lacks(key, entry, missing, known))
    _check_shared(key, files)
    turned = {name for found in files.values() for name, is_turned in found.items() if is_turned}
    names = {pair_name(*pair): tuple(found) for pair, found in files.items() if found}
    return Files(names, frozenset(turned))


def _files(entry: CorpusEntry, pair: Pair, known: dict[str, OpusFile]) -> dict[str, bool]:
    """Return the names of a pair's files, and whether its second language is first there."""
    codes = [_codes(entry, language, known) for language in pair]
    if not known:
        return _named(codes)
    more = [(*own, *_others(entry, code)) for own, code in zip(codes, pair, strict=True)]
    return _known(codes, known) or _known(more, known)


def _known(codes: list[tuple[str, ...]], known: dict[str, OpusFile]) -> dict[str, bool]:
    return {name: turned for name, turned in _named(codes).items() if name in known}


def _named(codes: list[tuple[str, ...]]) -> dict[str, bool]:
    return {pair_name(*both): both != tuple(sorted(both)) for both in product(*codes)}


def _others(entry: CorpusEntry, language: str) -> tuple[str, ...]:
    chosen = entry.codes == PAPER or language in entry.codes
    return () if chosen else other_codes(entry.name, language)


def _codes(entry: CorpusEntry, language: str, known: dict[str, OpusFile]) -> tuple[str, ...]:
    chosen = entry.codes
    if chosen != PAPER and language in chosen:
        return tuple(chosen[language])
    if not known:
        return (language,)
    return opus_codes(entry.name, language, paper=chosen == PAPER)


def _lacks(key: str, entry: CorpusEntry, missing: list[Pair], known: dict[str, OpusFile]) -> str:
    """Return the message for pairs that a corpus does not have."""
    used = " that EMS used (codes: paper)" if entry.codes == PAPER else ""
    if any(ENGLISH not in pair for pair in missing):
        names = ", ".join(pair_name(*pair) for pair in missing)
        return f"{key}.pairs: {entry.name} {entry.version} has no {names}{used}"
    others = [code for pair in missing for code in pair if code != ENGLISH]
    has = [
        code
        for code in load_languages()
        if code != ENGLISH and _files(entry, _sorted((ENGLISH, code)), known)
    ]
    return (
        f"{key}.languages: {entry.name} {entry.version} has no {', '.join(others)} "
        f"with English{used}; it has: {', '.join(has)}"
    )


def _check_codes(key: str, entry: CorpusEntry, known: dict[str, OpusFile]) -> None:
    chosen = entry.codes
    name = f"{entry.name} {entry.version}"
    if chosen == PAPER:
        if not known:
            raise EmsError(f"{key}.codes: found {PAPER}, but EMS used no {name}; leave it out")
        return
    for language, codes in chosen.items():
        for code in codes:
            if known and not any(code in file.split("-") for file in known):
                raise EmsError(
                    f"{key}.codes.{language}: {name} has no file {pair_name(ENGLISH, code)}; "
                    f"it has: {_with_english(known)}"
                )


def _with_english(known: dict[str, OpusFile]) -> str:
    return ", ".join(name for name in known if ENGLISH in name.split("-"))


def _check_shared(key: str, files: dict[Pair, dict[str, bool]]) -> None:
    owner: dict[str, Pair] = {}
    for pair, names in files.items():
        for name in names:
            other = owner.setdefault(name, pair)
            if other != pair:
                mine = next(code for code in pair if code not in other)
                theirs = next(code for code in other if code not in pair)
                raise EmsError(
                    f"{key}: the file {name} would be both {theirs} and {mine}; "
                    f"say which codes are whose, `codes: {{{mine}: [CODE]}}`"
                )


def own_files(key: str, entry: CorpusEntry, languages: list[str]) -> tuple[Files, dict[str, tuple]]:
    """Return the files of a corpus of `files`, named by the codes and in the order of its keys, and
    pair -> their paths.

    Raises `EmsError` for a pair that is there twice, and for a language with several codes.
    """
    names, paths, turned = {}, {}, set()
    for written, place in entry.files.items():
        first, second = split_pair(f"{key}.files", written, languages)
        pair = pair_name(first, second)
        if pair in names:
            raise EmsError(f"{key}.files: {pair} is named twice")
        codes = [_own_code(key, entry, code) for code in (first, second)]
        names[pair] = ("-".join(codes),)
        paths[pair] = (place,) if isinstance(place, str) else tuple(place)
        if first > second:
            turned |= {names[pair][0]}
    return Files(names, frozenset(turned)), paths


def _own_code(key: str, entry: CorpusEntry, language: str) -> str:
    codes = entry.codes.get(language, [language])
    if len(codes) > 1:
        raise EmsError(f"{key}.codes.{language}: a corpus of `files` has one code of a language")
    return codes[0]
