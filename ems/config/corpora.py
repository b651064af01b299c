"""Resolve the corpora of an experiment: which language pairs and files each entry means.

For an OPUS release, an entry takes the pairs that exist; it needs no list of languages, but pairs
that it names must exist. For any other corpus, and for one with its own `source`, every pair that
is named, or that the experiment's languages make, is expected under the languages' own codes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from ems.base.errors import EmsError, check, mistake
from ems.config import languages as language_table
from ems.config.benchmarks import EvalsetEntry
from ems.config.corpus_entries import CorpusEntry, Split, TranslatedDocuments
from ems.config.experiment import MULTIWAY, WIKIPEDIA, Corpus
from ems.config.file import ExperimentFile
from ems.config.languages import OpusFile, file_names, load_languages, opus_pair, pair_name

PAPER = "paper"  # the value of `codes` for the codes that EMS used
ENGLISH = "en"
NTREX = "NTREX"
OWN_VERSION = "own"  # default version of a corpus with `files`
SHOWN = 5  # language pairs in an error
PairFiles = dict[str, dict[str, bool]]  # pair -> its files; True if they have it reversed


@dataclass(frozen=True)
class KnownNames:
    """Names that entries refer to: languages, sources of data, divided corpora."""

    languages: dict[str, language_table.Language]
    sources: dict[str, str]
    splits: dict[str, Split]
    aligned: str  # folder of the pairs that are aligned from documents


def build_corpora(file: ExperimentFile, known: KnownNames) -> tuple[list[Corpus], list[Corpus]]:
    """Return (training, validation); a `fallback` lacks the pairs of the others (EMS v2 IV-A)."""
    held_out = file.validation
    entries = {"validation": held_out} if isinstance(held_out, CorpusEntry) else {}
    if isinstance(held_out, list):
        entries = {f"validation.{index}": entry for index, entry in enumerate(held_out)}
    documented = [e.name for e in [*file.corpora, *entries.values()] if e.kind == "documents"]
    for name, split in file.splits.items():
        split.check(f"splits.{name}", name in documented)
    corpora = [_corpus(f"corpora.{at}", entry, known) for at, entry in enumerate(file.corpora)]
    both = zip(corpora, file.corpora, strict=True)
    covered = {pair for corpus, entry in both if not entry.fallback for pair in corpus.pairs}
    for index, entry in enumerate(file.corpora):
        pairs = tuple(pair for pair in corpora[index].pairs if pair not in covered)
        if entry.fallback and not pairs:
            raise mistake("useless fallback", index=index, corpus=corpora[index])
        if entry.fallback:
            corpora[index] = replace(corpora[index], pairs=pairs)
    validation = [_corpus(key, entry, known) for key, entry in entries.items()]
    _check_distinct([*corpora, *validation])
    return corpora, validation


def _corpus(key: str, entry: CorpusEntry, known: KnownNames) -> Corpus:
    _check_keys(key, entry)
    languages = list(known.languages)
    named = with_table(languages)
    if isinstance(entry.codes, dict):
        check_languages(f"{key}.codes", entry.codes, named)
    check_part(f"{key}.part", entry.name, entry.part, known.splits)
    documents, version = entry.kind == "documents", entry.version or OWN_VERSION
    paths = {
        pair_name(*pair.split("-")): (paths,) if isinstance(paths, str) else tuple(paths)
        for pair, paths in (entry.files or {}).items()
    }
    if translated := entry.documents:
        files = {pair: {pair: False} for pair in _pairs(key, entry, languages)}
        place = f"{known.aligned}/{entry.name}/{version}"
        paths = {pair: (f"{place}/{pair}.jsonl",) for pair in files}
        if isinstance(translated, str):
            translated = TranslatedDocuments(folder=translated)
    elif entry.files:
        files = _own_files(key, entry, languages)
    elif documents:
        codes = chosen_languages(key, entry, languages)
        check_left(key, entry, codes, "found none; list the languages of the documents")
        files = {code: dict.fromkeys(entry.codes.get(code, [code]), False) for code in codes}
    else:
        files = _of_pairs(key, entry, languages)
    if entry.part and not documents:
        _check_split(key, entry, known.splits[entry.name], files)
    cap = "max_documents" if documents else "max_pairs"
    same = {key: getattr(entry, key) for key in ("name", "part", "threshold", "kind", "accept")}
    return Corpus(
        version=version,
        source=_source(key, entry, known),
        custom=bool(entry.source or entry.path or paths),
        pairs=tuple(files),
        max_pairs=_caps(f"{key}.{cap}", getattr(entry, cap), named),
        variants={pair: tuple(names) for pair, names in files.items() if [*names] != [pair]},
        turned=frozenset(n for names in files.values() for n, turned in names.items() if turned),
        paths=paths,
        aligned=translated,
        path=entry.path or "",
        vocabularies=tuple(entry.vocabularies),
        **same,
    )


def _check_keys(key: str, entry: CorpusEntry) -> None:
    for_pairs = {"max_pairs", "format", "threshold", "fallback", "files", "pairs", "documents"}
    excluded = for_pairs if entry.kind == "documents" else {"path", "max_documents"}
    for name in sorted(excluded & entry.model_fields_set):
        raise EmsError(f"{key}.{name}: a corpus of `kind: {entry.kind}` has no such key")
    replaced = {"source", "pairs", "languages", "without", "format", "threshold"}
    replaced = replaced if entry.files else {"source", "format", "threshold", "codes", "path"}
    own = "files" if entry.files else "documents" if entry.documents else ""
    for name in sorted(replaced & entry.model_fields_set) if own else ():
        raise EmsError(f"{key}.{name}: `{own}` says where each pair is; remove this key")
    paper, documents = entry.codes == PAPER, entry.kind == "documents"
    mined, threshold = entry.format == "mined", entry.threshold is not None
    mistakes = {
        "files and documents": entry.files and entry.documents,
        "no version": entry.version is None and not own,
        "codes of files": entry.files and paper,
        "codes of documents": documents and paper,
        "source and path": entry.source and entry.path,
        "mined but not WikiMatrix": mined and entry.name != "WikiMatrix",
        "mined without a threshold": mined and not threshold,
        "threshold of no scores": threshold and not mined,
    }
    check(mistakes, key=key, paper=PAPER)


def _source(key: str, entry: CorpusEntry, known: KnownNames) -> str:
    custom = entry.source or entry.path
    if custom or entry.files or entry.documents:
        return custom or ""
    if entry.kind == "pairs":
        mined = entry.format == "mined"
        return known.sources["wikimatrix" if mined else host_of(entry.name, known.sources)]
    shared = "wikipedia" if entry.name == WIKIPEDIA else "documents"
    if shared not in known.sources:
        raise mistake("no source", key=key, shared=shared, name=entry.name)
    return known.sources[shared]


def host_of(corpus: str, sources: Mapping[str, str]) -> str:
    """Return the key of `sources` for pairs of a corpus: OPUS's hosts have no NTREX."""
    own = corpus == NTREX and "://" in sources["opus"] and NTREX.lower() in sources
    return NTREX.lower() if own else "opus"


def _caps(key: str, cap: int | dict[str, int] | None, named: list[str]) -> dict | int | None:
    if not isinstance(cap, dict):
        return cap
    check_languages(key, {name for name in cap if "-" not in name} - {"default"}, named)
    pairs = {name: _split_pair(key, name, named) for name in cap if "-" in name}
    return {pairs.get(name, name): most for name, most in cap.items()}


def _check_split(key: str, entry: CorpusEntry, split: Split, pairs: Iterable[str]) -> None:
    section = f"splits.{entry.name}"
    code = split.sentences
    missing = [pair for pair in pairs if code and code not in pair.split("-")][:SHOWN]
    mistakes = {"documents of files": entry.files and split.documents, "no such side": missing}
    check(mistakes, key=key, section=section, code=code, missing=missing)


# --- the files of an entry


def _own_files(key: str, entry: CorpusEntry, languages: list[str]) -> PairFiles:
    """Return the files of an entry with `files`, each named by codes in the order of its key."""
    files: PairFiles = {}
    for written in entry.files:
        pair = _split_pair(f"{key}.files", written, languages)
        if pair in files:
            raise EmsError(f"{key}.files: {pair} is named twice")
        codes = {code: entry.codes.get(code, [code]) for code in written.split("-")}
        if several := [code for code, own in codes.items() if len(own) > 1]:
            raise EmsError(f"{key}.codes.{several[0]}: with `files`, give one code per language")
        files[pair] = {"-".join(own for (own,) in codes.values()): written != pair}
    return files


def _of_pairs(key: str, entry: CorpusEntry, languages: list[str]) -> PairFiles:
    """Return the files of the language pairs of an entry, of the pairs that the corpus has. `codes`
    may name any language of the table, so that an entry also fits experiments with fewer.
    """
    pairs = _pairs(key, entry, languages)
    release = {} if entry.source else language_table.opus_files(entry.name, entry.version)
    _check_codes(key, entry, release)
    files = {pair: _files(entry, pair, release) for pair in pairs}
    missing = [pair for pair in pairs if not files[pair]]
    named = entry.languages is not None or entry.pairs is not None
    if missing and (named or len(missing) == len(pairs)):
        raise EmsError(_absent(key, entry, missing, release))
    owner: dict[str, str] = {}
    for pair, names in files.items():
        for name in names:
            if (other := owner.setdefault(name, pair)) != pair:
                mine = next(code for code in pair.split("-") if code not in other.split("-"))
                theirs = next(code for code in other.split("-") if code not in pair.split("-"))
                raise mistake("file of two pairs", key=key, name=name, theirs=theirs, mine=mine)
    return {pair: names for pair, names in files.items() if names}


def _pairs(key: str, entry: CorpusEntry, languages: list[str]) -> list[str]:
    """Return the pairs in `pairs`, or all pairs of the entry's languages, or all with English."""
    if isinstance(entry.pairs, list):
        for name in sorted({"languages", "without"} & entry.model_fields_set):
            raise EmsError(f"{key}.{name}: `pairs` lists the pairs already; remove one of the two")
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
    check_left(key, entry, pairs, f"found only {only}; add the other language of each pair")
    return pairs


def _split_pair(key: str, pair: str, languages: list[str]) -> str:
    """Return the sorted name of a pair of two `languages`: "de-fr" for "fr-de"."""
    codes = pair.split("-")
    if len(codes) != 2 or codes[0] == codes[1]:
        raise EmsError(f"{key}: found {pair!r}, expected two languages, like de-fr")
    for code in codes:
        if code not in languages:
            raise mistake("pair of no language", key=key, pair=pair, code=code, known=languages)
    return pair_name(*codes)


def _files(entry: CorpusEntry, pair: str, release: dict[str, OpusFile]) -> dict[str, bool]:
    paper = entry.codes == PAPER
    codes = {} if paper else entry.codes
    if release:
        return opus_pair(entry.name, entry.version, *pair.split("-"), codes=codes, paper=paper)
    return file_names(codes.get(language, [language]) for language in pair.split("-"))


def _absent(key: str, entry: CorpusEntry, missing: list[str], release: dict[str, OpusFile]) -> str:
    used = " that EMS used (codes: paper)" if entry.codes == PAPER else ""
    if any(ENGLISH not in pair.split("-") for pair in missing):
        return f"{key}.pairs: {entry.name} {entry.version} has no {', '.join(missing)}{used}"
    others = [code for pair in missing for code in pair.split("-") if code != ENGLISH]
    languages = [code for code in load_languages() if code != ENGLISH]
    present = [code for code in languages if _files(entry, pair_name(ENGLISH, code), release)]
    lacks = f"{entry.name} {entry.version} has no {', '.join(others)} with English{used}"
    return f"{key}.languages: {lacks}; it has: {', '.join(present)}"


def _check_codes(key: str, entry: CorpusEntry, release: dict[str, OpusFile]) -> None:
    name = f"{entry.name} {entry.version}"
    if entry.codes == PAPER:
        if not release:
            raise EmsError(f"{key}.codes: found {PAPER}, but EMS used no {name}; remove it")
        return
    for language, codes in entry.codes.items():
        for code in codes:
            if release and not any(code in file.split("-") for file in release):
                english = [file for file in release if ENGLISH in file.split("-")]
                words = {"language": language, "name": name, "english": english}
                raise mistake("no such file", key=key, file=pair_name(ENGLISH, code), **words)


def _check_distinct(corpora: list[Corpus]) -> None:
    if MULTIWAY in {item.name for item in corpora}:
        raise EmsError(f"corpora: {MULTIWAY} is the name of the pairs of `multiway`; rename it")
    names = [(item.label, item.version) for item in corpora]
    for name in names:
        if names.count(name) > 1:
            raise EmsError(f"corpora: {'/'.join(name)} is listed twice (validation counts too)")
    first = {(item.name, item.version): item for item in reversed(corpora)}
    for item in corpora:
        for what in ("source", "threshold", "kind", "paths"):
            if getattr(item, what) != getattr(first[item.name, item.version], what):
                raise EmsError(f"corpora: the parts of {item.name} must have the same {what}")


# --- names that entries use


def check_languages(key: str, codes: Iterable[str], allowed: Collection[str]) -> None:
    for code in sorted(codes):
        if code not in allowed:
            own = language_table.code_among(allowed, code)
            hint = f" (here it is {own})" if own else ""
            raise mistake("unknown language", key=key, code=code, hint=hint, allowed=list(allowed))


def with_table(languages: Iterable[str]) -> list[str]:
    """Return the languages of the table, followed by these, without repetition."""
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
    """Raise `EmsError` if no language is chosen, with the cause: `without` or `otherwise`."""
    if not chosen and entry.without:
        raise mistake("no language left", key=key, names=entry.without)
    if not chosen:
        raise EmsError(f"{key}.languages: {otherwise}")


def check_part(key: str, corpus: str, part: str, splits: dict[str, Split]) -> None:
    """Raise `EmsError` for an unknown part, or a whole corpus that `splits` divides."""
    if part and corpus not in splits:
        raise EmsError(f"{key}: {part}, but splits does not say how {corpus} is divided")
    if part and part not in splits[corpus].names:
        words = {"corpus": corpus, "parts": "" if splits[corpus].first else ".parts"}
        raise mistake("no such part", key=key, part=part, allowed=splits[corpus].names, **words)
    if not part and corpus in splits:
        raise EmsError(f"{key}: this key is missing; {corpus} is divided by splits.{corpus}")
