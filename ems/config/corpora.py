"""The corpora of an experiment: which pairs and files an entry means, with its mistakes named."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from ems.base.errors import EmsError
from ems.config.benchmarks import EvalsetEntry
from ems.config.corpus_entries import OWN_VERSION, CorpusEntry, Split
from ems.config.corpus_files import (
    PAPER,
    chosen_pairs,
    own_files,
    pair_files,
    pair_name,
    split_pair,
)
from ems.config.experiment import MULTIWAY, WIKIPEDIA, Corpus, Experiment
from ems.config.languages import Language, load_languages

SHOWN = 5  # language pairs in an error


@dataclass(frozen=True)
class Known:
    """What the entries of a file name: its languages, where data come from, divided corpora."""

    languages: dict[str, Language]
    sources: dict[str, str]
    splits: dict[str, Split]


def training_corpora(entries: list[CorpusEntry], known: Known) -> list[Corpus]:
    """Return the corpora trained on. A `fallback` gives up the pairs that another has (IV-A)."""
    corpora = [one_corpus(f"corpora.{at}", entry, known) for at, entry in enumerate(entries)]
    others = [c for c, entry in zip(corpora, entries, strict=True) if not entry.fallback]
    covered = {pair for corpus in others for pair in corpus.pairs}
    for at, entry in enumerate(entries):
        if entry.fallback:
            corpora[at] = _uncovered(f"corpora.{at}", corpora[at], covered)
    return corpora


def _uncovered(key: str, corpus: Corpus, covered: set[str]) -> Corpus:
    pairs = tuple(pair for pair in corpus.pairs if pair not in covered)
    if not pairs:
        raise EmsError(
            f"{key}.fallback: every pair of {corpus.label} is in another corpus, so nothing of it "
            "would be used; take the entry out, or set fallback: false"
        )
    return replace(corpus, pairs=pairs)


def one_corpus(key: str, entry: CorpusEntry, known: Known) -> Corpus:
    _check_kind(key, entry)
    if entry.kind == "documents":
        return _of_documents(key, entry, known)
    named = with_table(known.languages)
    if isinstance(entry.codes, dict):
        check_languages(f"{key}.codes", entry.codes, named)
    if entry.files is None:
        files, paths = pair_files(key, entry, _pairs(key, entry, known)), {}
    else:
        files, paths = own_files(key, entry, list(known.languages))
    _check_cap(f"{key}.max_pairs", entry.max_pairs, named)
    check_part(f"{key}.part", entry.name, entry.part, known.splits)
    if entry.part:
        _check_split(key, entry, known.splits[entry.name], files.names)
    mined = _check_mined(key, entry)
    return Corpus(
        name=entry.name,
        version=entry.version or OWN_VERSION,
        source=entry.source or ("" if paths else known.sources["wikimatrix" if mined else "opus"]),
        own=entry.source is not None or bool(paths),
        pairs=tuple(files.names),
        max_pairs=_by_pair(entry.max_pairs),
        part=entry.part,
        variants={pair: names for pair, names in files.names.items() if names != (pair,)},
        turned=files.turned,
        paths=paths,
        threshold=entry.threshold,
        vocabularies=tuple(entry.vocabularies),
    )


def _check_split(key: str, entry: CorpusEntry, split: Split, pairs: Iterable[str]) -> None:
    """Raise `EmsError` for pairs that are not divided as `split` says."""
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


def _pairs(key: str, entry: CorpusEntry, known: Known) -> list[tuple[str, str]]:
    """Return the language pairs that an entry means, of those of the experiment."""
    codes = chosen_languages(key, entry, list(known.languages), known.languages)
    pairs = chosen_pairs(key, entry, codes, list(known.languages))
    only = ", ".join(codes) or "none"
    check_left(key, entry, pairs, f"found only {only}; name the other side of each pair")
    return pairs


def _of_documents(key: str, entry: CorpusEntry, known: Known) -> Corpus:
    """Return a corpus of documents; its `codes` name the files of a language, and the wikis."""
    codes = chosen_languages(key, entry, list(known.languages), known.languages)
    check_left(key, entry, codes, "found none; name the languages of the documents")
    named = with_table(known.languages)
    check_languages(f"{key}.codes", entry.codes, named)
    _check_cap(f"{key}.max_documents", entry.max_documents, named)
    check_part(f"{key}.part", entry.name, entry.part, known.splits)
    own = entry.source or entry.path
    shared = "wikipedia" if entry.name == WIKIPEDIA else "documents"
    if not own and shared not in known.sources:
        raise EmsError(
            f"{key}: set sources.{shared} to where {entry.name} lies, or give it a source or a path"
        )
    return Corpus(
        name=entry.name,
        version=entry.version,
        source=own or known.sources[shared],
        own=own is not None,
        pairs=tuple(codes),
        max_pairs=entry.max_documents,
        part=entry.part,
        variants={code: tuple(entry.codes[code]) for code in codes if code in entry.codes},
        kind=entry.kind,
        path=entry.path or "",
        vocabularies=tuple(entry.vocabularies),
    )


def _check_kind(key: str, entry: CorpusEntry) -> None:
    """Raise `EmsError` for a key of the other kind of corpora, and for two places of one."""
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


def _check_cap(key: str, cap: int | dict[str, int] | None, named: Collection[str]) -> None:
    if isinstance(cap, dict):
        pairs = [name for name in cap if "-" in name]
        check_languages(key, set(cap) - {"default", *pairs}, named)
        for pair in pairs:
            split_pair(key, pair, list(named))


def _by_pair(cap: int | dict[str, int] | None) -> int | dict[str, int] | None:
    """Return the caps with the codes of pairs sorted."""
    if not isinstance(cap, dict):
        return cap
    return {pair_name(*name.split("-")) if "-" in name else name: cap[name] for name in cap}


def _check_mined(key: str, entry: CorpusEntry) -> bool:
    """Return whether the entry means LASER's mined file. Raises `EmsError` for one without
    threshold.
    """
    mined = entry.format == "mined"
    if mined and entry.name != "WikiMatrix":
        raise EmsError(f"{key}.format: mined is the format of WikiMatrix alone")
    if mined and entry.threshold is None:
        raise EmsError(f"{key}.threshold: this key is missing; a mined pair needs a least score")
    if entry.threshold is not None and not mined:
        raise EmsError(f"{key}.threshold: only pairs of `format: mined` have scores")
    return mined


def check_multiway(experiment: Experiment) -> None:
    """Raise `EmsError` for further pairs that cannot be made, or that could not be trusted."""
    through = experiment.multiway.through
    if not through:
        return
    if through not in experiment.languages:
        known = ", ".join(experiment.languages)
        raise EmsError(f"multiway.through: found {through!r}, but the languages here are {known}")
    if not experiment.multiway_pairs():
        pairs = ", ".join(dict.fromkeys(pair for _, pair in experiment.joined())) or "none"
        raise EmsError(
            f"multiway.through: expected corpora of {through} with two other languages, found "
            f"{pairs}; take multiway out"
        )
    if experiment.decontaminate.scope != "any":
        raise EmsError(
            "multiway: a further pair was never compared with the evaluation sentences of its own "
            "pair; set decontaminate.scope: any"
        )
    for corpus in experiment.corpora:
        if corpus.vocabularies:
            raise EmsError(
                f"multiway: {corpus.label} is for the vocabularies {', '.join(corpus.vocabularies)}"
                " alone, and further pairs are made of the corpora that all share; take one out"
            )


def check_distinct(corpora: list[Corpus]) -> None:
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
    key: str, entry: CorpusEntry | EvalsetEntry, every: list[str], known: Collection[str]
) -> list[str]:
    """`languages` of an entry (`every` if absent, or a word for all), less its `without`."""
    codes = entry.languages if isinstance(entry.languages, list) else every
    check_languages(f"{key}.languages", codes, known)
    check_languages(f"{key}.without", entry.without, with_table(known))
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
