"""The corpora of an experiment: which pairs and files an entry means, with its mistakes named.

Of a release of OPUS an entry takes what is there: it needs no list of languages, and a pair that it
names must be there. Of any other corpus, and of one with a `source` of its own, every pair that is
named, or that the experiment's languages make, is expected under its languages' own codes.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from ems.base.errors import EmsError
from ems.config.benchmarks import EvalsetEntry
from ems.config.corpus_entries import CorpusEntry, Split
from ems.config.experiment import MULTIWAY, WIKIPEDIA, Corpus
from ems.config.file import ExperimentFile
from ems.config.languages import (
    Language,
    OpusFile,
    file_names,
    load_languages,
    opus_files,
    opus_pair,
    pair_name,
)

PAPER = "paper"  # the value of `codes` that means: what EMS used
ENGLISH = "en"
OWN_VERSION = "own"  # of a corpus of `files` that names none
SHOWN = 5  # language pairs in an error
PairFiles = dict[str, dict[str, bool]]  # pair -> its files; True if reversed there


@dataclass(frozen=True)
class KnownNames:
    """What the entries of a file name: its languages, where data come from, divided corpora."""

    languages: dict[str, Language]
    sources: dict[str, str]
    splits: dict[str, Split]


def build_corpora(file: ExperimentFile, known: KnownNames) -> tuple[list[Corpus], list[Corpus]]:
    """Return the corpora to train on and those of `validation`. Raises `EmsError` that names a key.

    A `fallback` gives up the pairs that another training corpus has (EMS v2 IV-A).
    """
    given = file.validation
    held_out = {"validation": given} if isinstance(given, CorpusEntry) else {}
    if isinstance(given, list):
        held_out = {f"validation.{at}": entry for at, entry in enumerate(given)}
    documented = [e.name for e in [*file.corpora, *held_out.values()] if e.kind == "documents"]
    for name, split in file.splits.items():
        split.check(f"splits.{name}", name in documented)
    corpora = [_corpus(f"corpora.{at}", entry, known) for at, entry in enumerate(file.corpora)]
    taken = zip(corpora, file.corpora, strict=True)
    covered = {pair for corpus, entry in taken if not entry.fallback for pair in corpus.pairs}
    for at, entry in enumerate(file.corpora):
        pairs = tuple(pair for pair in corpora[at].pairs if pair not in covered)
        if entry.fallback and not pairs:
            raise EmsError(
                f"corpora.{at}.fallback: every pair of {corpora[at].label} is in another corpus, "
                "so nothing of it would be used; take the entry out, or set fallback: false"
            )
        if entry.fallback:
            corpora[at] = replace(corpora[at], pairs=pairs)
    validation = [_corpus(key, entry, known) for key, entry in held_out.items()]
    _check_distinct([*corpora, *validation])
    return corpora, validation


def _corpus(key: str, entry: CorpusEntry, known: KnownNames) -> Corpus:
    _check_keys(key, entry)
    languages = list(known.languages)
    named = with_table(languages)
    if isinstance(entry.codes, dict):
        check_languages(f"{key}.codes", entry.codes, named)
    check_part(f"{key}.part", entry.name, entry.part, known.splits)
    documents = entry.kind == "documents"
    if entry.files:
        files = _own_files(key, entry, languages)
    elif documents:
        codes = chosen_languages(key, entry, languages)
        check_left(key, entry, codes, "found none; name the languages of the documents")
        files = {code: dict.fromkeys(entry.codes.get(code, [code]), False) for code in codes}
    else:
        files = _of_pairs(key, entry, languages)
    if entry.part and not documents:
        _check_split(key, entry, known.splits[entry.name], files)
    cap = "max_documents" if documents else "max_pairs"
    return Corpus(
        name=entry.name,
        version=entry.version or OWN_VERSION,
        source=_source(key, entry, known),
        own=bool(entry.source or entry.path or entry.files),
        pairs=tuple(files),
        max_pairs=_caps(f"{key}.{cap}", getattr(entry, cap), named),
        part=entry.part,
        variants={pair: tuple(names) for pair, names in files.items() if [*names] != [pair]},
        turned=frozenset(n for names in files.values() for n, turned in names.items() if turned),
        paths={
            pair_name(*pair.split("-")): (paths,) if isinstance(paths, str) else tuple(paths)
            for pair, paths in (entry.files or {}).items()
        },
        threshold=entry.threshold,
        kind=entry.kind,
        path=entry.path or "",
        vocabularies=tuple(entry.vocabularies),
    )


def _check_keys(key: str, entry: CorpusEntry) -> None:
    of_pairs = {"max_pairs", "format", "threshold", "fallback", "files", "pairs"}
    others = of_pairs if entry.kind == "documents" else {"path", "max_documents"}
    for name in sorted(others & entry.model_fields_set):
        raise EmsError(f"{key}.{name}: a corpus of `kind: {entry.kind}` has no such key")
    elsewhere = {"source", "pairs", "languages", "without", "format", "threshold"}
    for name in sorted(elsewhere & entry.model_fields_set) if entry.files else ():
        raise EmsError(f"{key}.{name}: `files` says where each pair lies; leave this key out")
    if entry.version is None and not entry.files:
        raise EmsError(f"{key}.version: this key is missing")
    if entry.files and entry.codes == PAPER:
        raise EmsError(f"{key}.codes: found {PAPER}, but these files are yours; leave it out")
    if entry.kind == "documents" and entry.codes == PAPER:
        raise EmsError(f"{key}.codes: found {PAPER}, but EMS used no documents; leave it out")
    if entry.source and entry.path:
        raise EmsError(f"{key}.path: give the source or the path of a corpus, not both")
    mined = entry.format == "mined"
    if mined and entry.name != "WikiMatrix":
        raise EmsError(f"{key}.format: mined is the format of WikiMatrix alone")
    if mined and entry.threshold is None:
        raise EmsError(f"{key}.threshold: this key is missing; a mined pair needs a least score")
    if entry.threshold is not None and not mined:
        raise EmsError(f"{key}.threshold: only pairs of `format: mined` have scores")


def _source(key: str, entry: CorpusEntry, known: KnownNames) -> str:
    own = entry.source or entry.path
    if own or entry.files:
        return own or ""
    if entry.kind == "pairs":
        return known.sources["wikimatrix" if entry.format == "mined" else "opus"]
    shared = "wikipedia" if entry.name == WIKIPEDIA else "documents"
    if shared not in known.sources:
        raise EmsError(
            f"{key}: set sources.{shared} to where {entry.name} lies, or give it a source or a path"
        )
    return known.sources[shared]


def _caps(key: str, cap: int | dict[str, int] | None, named: list[str]) -> dict | int | None:
    """Return the caps with the codes of pairs sorted."""
    if not isinstance(cap, dict):
        return cap
    check_languages(key, {name for name in cap if "-" not in name} - {"default"}, named)
    return {
        _split_pair(key, name, named) if "-" in name else name: most for name, most in cap.items()
    }


def _check_split(key: str, entry: CorpusEntry, split: Split, pairs: Iterable[str]) -> None:
    where = f"splits.{entry.name}"
    if entry.files and split.documents:
        raise EmsError(
            f"{where}: `files` are divided by sentence (sentences, parts) or by position (first, "
            "rest)"
        )
    code = split.sentences
    without = [pair for pair in pairs if code and code not in pair.split("-")]
    if without:
        raise EmsError(
            f"{key}.part: {where} divides by the sentence in {code}, and there is none in "
            f"{', '.join(without[:SHOWN])}; leave out pairs without {code}, or divide by position "
            "(first, rest)"
        )


# --- the files of an entry


def _own_files(key: str, entry: CorpusEntry, languages: list[str]) -> PairFiles:
    """Return the files of a corpus of `files`, named by the codes and in the order of its keys."""
    files: PairFiles = {}
    for written in entry.files:
        pair = _split_pair(f"{key}.files", written, languages)
        if pair in files:
            raise EmsError(f"{key}.files: {pair} is named twice")
        codes: list[str] = []
        for code in written.split("-"):
            own = entry.codes.get(code, [code])
            if len(own) > 1:
                raise EmsError(f"{key}.codes.{code}: a corpus of `files` has one code a language")
            codes += own
        files[pair] = {"-".join(codes): written != pair}
    return files


def _of_pairs(key: str, entry: CorpusEntry, languages: list[str]) -> PairFiles:
    """Return the files of the pairs that an entry means, of those that the corpus has.

    `codes` may name any language of the table, so that an entry fits experiments with fewer.
    """
    pairs = _pairs(key, entry, languages)
    there = {} if entry.source else opus_files(entry.name, entry.version)
    _check_codes(key, entry, there)
    files = {pair: _files(entry, pair, there) for pair in pairs}
    missing = [pair for pair in pairs if not files[pair]]
    named = entry.languages is not None or entry.pairs is not None
    if missing and (named or len(missing) == len(pairs)):
        raise EmsError(_lacks(key, entry, missing, there))
    owner: dict[str, str] = {}
    for pair, names in files.items():
        for name in names:
            other = owner.setdefault(name, pair)
            if other != pair:
                mine = next(code for code in pair.split("-") if code not in other.split("-"))
                theirs = next(code for code in other.split("-") if code not in pair.split("-"))
                raise EmsError(
                    f"{key}: the file {name} would be both {theirs} and {mine}; "
                    f"say which codes are whose, `codes: {{{mine}: [CODE]}}`"
                )
    return {pair: names for pair, names in files.items() if names}


def _pairs(key: str, entry: CorpusEntry, languages: list[str]) -> list[str]:
    """Return the pairs of `pairs`, or all of the languages of the entry, or those with English."""
    if isinstance(entry.pairs, list):
        for name in sorted({"languages", "without"} & entry.model_fields_set):
            raise EmsError(f"{key}.{name}: `pairs` has the pairs already; leave one of them out")
        pairs = [_split_pair(f"{key}.pairs", pair, languages) for pair in entry.pairs]
        for pair in pairs:
            if pairs.count(pair) > 1:
                raise EmsError(f"{key}.pairs: {pair} is named twice")
        return pairs
    codes = chosen_languages(key, entry, languages)
    if entry.pairs == "all" or ENGLISH not in languages:
        pairs = [pair_name(*pair) for pair in combinations(codes, 2)]
    else:
        pairs = [pair_name(ENGLISH, code) for code in codes if code != ENGLISH]
    only = ", ".join(codes) or "none"
    check_left(key, entry, pairs, f"found only {only}; name the other side of each pair")
    return pairs


def _split_pair(key: str, pair: str, languages: list[str]) -> str:
    """Return the name of the pair of two of `languages` that "fr-de" means, "de-fr"."""
    codes = pair.split("-")
    if len(codes) != 2 or codes[0] == codes[1]:
        raise EmsError(f"{key}: found {pair!r}, expected two languages, like de-fr")
    for code in codes:
        if code not in languages:
            raise EmsError(
                f"{key}: {pair} has {code!r}, but the languages here are {', '.join(languages)}"
            )
    return pair_name(*codes)


def _files(entry: CorpusEntry, pair: str, known: dict[str, OpusFile]) -> dict[str, bool]:
    """Return the names of a pair's files, True if its second language is first there."""
    codes = {} if entry.codes == PAPER else entry.codes
    if known:
        paper = entry.codes == PAPER
        return opus_pair(entry.name, entry.version, *pair.split("-"), codes=codes, paper=paper)
    return file_names(codes.get(language, [language]) for language in pair.split("-"))


def _lacks(key: str, entry: CorpusEntry, missing: list[str], known: dict[str, OpusFile]) -> str:
    used = " that EMS used (codes: paper)" if entry.codes == PAPER else ""
    if any(ENGLISH not in pair.split("-") for pair in missing):
        return f"{key}.pairs: {entry.name} {entry.version} has no {', '.join(missing)}{used}"
    others = [code for pair in missing for code in pair.split("-") if code != ENGLISH]
    languages = [code for code in load_languages() if code != ENGLISH]
    has = [code for code in languages if _files(entry, pair_name(ENGLISH, code), known)]
    return (
        f"{key}.languages: {entry.name} {entry.version} has no {', '.join(others)} "
        f"with English{used}; it has: {', '.join(has)}"
    )


def _check_codes(key: str, entry: CorpusEntry, known: dict[str, OpusFile]) -> None:
    name = f"{entry.name} {entry.version}"
    if entry.codes == PAPER:
        if not known:
            raise EmsError(f"{key}.codes: found {PAPER}, but EMS used no {name}; leave it out")
        return
    for language, codes in entry.codes.items():
        for code in codes:
            if known and not any(code in file.split("-") for file in known):
                english = ", ".join(file for file in known if ENGLISH in file.split("-"))
                raise EmsError(
                    f"{key}.codes.{language}: {name} has no file {pair_name(ENGLISH, code)}; "
                    f"it has: {english}"
                )


# --- the corpora together


def _check_distinct(corpora: list[Corpus]) -> None:
    if MULTIWAY in {item.name for item in corpora}:
        raise EmsError(f"corpora: {MULTIWAY} is the name of the pairs that `multiway` makes")
    names = [(item.label, item.version) for item in corpora]
    for name in names:
        if names.count(name) > 1:
            raise EmsError(f"corpora: {'/'.join(name)} is named twice (validation counts too)")
    first = {(item.name, item.version): item for item in reversed(corpora)}
    for item in corpora:
        for what in ("source", "threshold", "kind", "paths"):
            if getattr(item, what) != getattr(first[item.name, item.version], what):
                raise EmsError(f"corpora: the parts of {item.name} must have the same {what}")


# --- names that entries use


def check_languages(key: str, codes: Iterable[str], known: Collection[str]) -> None:
    for code in sorted(codes):
        if code not in known:
            raise EmsError(
                f"{key}: unknown language {code!r}; allowed: {', '.join(known)} "
                "(a language of your own is an entry `{code: xx, tatoeba_v1: xxx}`)"
            )


def with_table(languages: Iterable[str]) -> list[str]:
    """Return the languages of the table, then these, each once."""
    return list(dict.fromkeys([*load_languages(), *languages]))


def chosen_languages(
    key: str, entry: CorpusEntry | EvalsetEntry, languages: list[str]
) -> list[str]:
    """Return the codes of an entry: its list, or else all `languages`, minus its `without`."""
    codes = entry.languages if isinstance(entry.languages, list) else languages
    check_languages(f"{key}.languages", codes, languages)
    check_languages(f"{key}.without", entry.without, with_table(languages))
    return [code for code in codes if code not in entry.without]


def check_left(
    key: str, entry: CorpusEntry | EvalsetEntry, chosen: Collection[str], otherwise: str
) -> None:
    """Raise `EmsError` when no language is chosen, because of `without` or `otherwise`."""
    if not chosen and entry.without:
        names = ", ".join(entry.without)
        raise EmsError(f"{key}.without: no language is left without {names}; take one out of it")
    if not chosen:
        raise EmsError(f"{key}.languages: {otherwise}")


def check_part(key: str, corpus: str, part: str, splits: dict[str, Split]) -> None:
    """Raise `EmsError` for a part that no split makes, and for a whole beside its own parts."""
    if part and corpus not in splits:
        raise EmsError(f"{key}: {part}, but splits does not say how {corpus} is divided")
    if part and part not in splits[corpus].names:
        allowed = ", ".join(splits[corpus].names)
        where = f"splits.{corpus}" + ("" if splits[corpus].first else ".parts")
        raise EmsError(f"{key}: found {part!r}; allowed values: {allowed} ({where})")
    if not part and corpus in splits:
        raise EmsError(f"{key}: this key is missing; {corpus} is divided by splits.{corpus}")
