"""From the checked values of an experiment file to its types: names resolved, mistakes named."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from ems.bench.settings import DrawnProtocol
from ems.benchmarks import benchmark, benchmarks, has
from ems.config.benchmarks import check_sets, check_systems
from ems.config.codes import by_code, known_codes
from ems.config.experiment import EMBEDDED, UNSEEN, WIKIPEDIA, Corpus, EvalSet, Experiment
from ems.config.file import ExperimentFile, LanguageEntry
from ems.config.opus import PAPER, chosen_pairs, own_files, pair_files, pair_name, split_pair
from ems.config.studies import check_studies
from ems.config.sweep import swept
from ems.config.systems import (
    SHARED,
    Entries,
    Vocabulary,
    build_systems,
    build_vocabularies,
    check_starts,
    families,
)
from ems.corpora.settings import OWN_VERSION, CorpusEntry, Split
from ems.errors import EmsError
from ems.evalsets.settings import EvalsetEntry
from ems.languages import Language, load_languages, load_tatoeba_codes
from ems.objectives.settings import check_learnable
from ems.segmenters.base import defaults
from ems.settings import plain
from ems.tables.settings import TablesSettings
from ems.text.settings import check_clean, check_vocabulary


@dataclass(frozen=True)
class _Known:
    """What the entries of a file name: its languages, where data come from, divided corpora."""

    languages: dict[str, Language]
    sources: dict[str, str]
    splits: dict[str, Split]


def build(name: str, file: ExperimentFile, sources: dict[str, str], written: Entries) -> Experiment:
    """Return the experiment of a file, its systems as `written`. Raises `EmsError` that names a
    key.
    """
    systems = build_systems(file, written)
    sweep, added = swept(file.sweep, bool(file.validation), systems) if file.sweep else ((), {})
    systems |= added
    languages = _languages(file.languages)
    known = _Known(languages, {**sources, **plain(file.sources)}, file.splits)
    _check_splits(file)
    corpora = _corpora(file.corpora, known)
    validation = [_corpus(key, entry, known) for key, entry in _validation(file).items()]
    every = [*corpora, *validation]
    _check_distinct(every)
    check_sets(file.benchmarks, file.evalsets)
    _check_named("decontaminate.against", file.decontaminate.against, file.evalsets, "evalsets")
    evalsets = {key: _evalset(key, entry, known) for key, entry in file.evalsets.items()}
    _check_held_out(every, evalsets)
    check_clean(file.clean)
    vocabularies = build_vocabularies(file, list(languages))
    _check_vocabularies(vocabularies)
    placed = {key: system.placed(f"systems.{key}", vocabularies) for key, system in systems.items()}
    _check_corpora(corpora, vocabularies)
    for key, system in placed.items():
        system.check(f"systems.{key}", bool(validation))
    check_starts(placed)
    groups = families(file.systems)
    _check_tables(file.tables, {*placed, *groups})
    trained = {system for system, own in placed.items() if own.trained}
    _check_named("export.systems", file.export.systems, trained, "systems that are trained here")
    _check_languages("segmenters", set(file.segmenters) - {"default"}, _with_table(languages))
    experiment = Experiment(
        name=name,
        seed=file.seed,
        languages=languages,
        sources=known.sources,
        splits=file.splits,
        corpora=tuple(corpora),
        validation=tuple(validation),
        evalsets=evalsets,
        decontaminate=file.decontaminate,
        clean=file.clean,
        segmenters=_segmenters(file.segmenters, languages),
        vocabulary=file.vocabulary,
        vocabularies=vocabularies,
        systems=placed,
        families=groups,
        benchmarks=tuple(file.benchmarks),
        tables=file.tables,
        export=file.export,
        probes=dict(file.probes),
        documents=file.documents,
        sweep=sweep,
    )
    _check_pairs(experiment)
    check_systems(experiment)
    _check_objectives(experiment)
    return experiment


def _check_splits(file: ExperimentFile) -> None:
    entries = [*file.corpora, *_validation(file).values()]
    of_documents = {entry.name for entry in entries if entry.kind == "documents"}
    for key, split in file.splits.items():
        split.check(f"splits.{key}", key in of_documents)


def _check_vocabularies(vocabularies: dict[str, Vocabulary]) -> None:
    for key, vocabulary in vocabularies.items():
        path = "vocabulary" if key == SHARED else f"vocabularies.{key}"
        check_vocabulary(path, vocabulary.settings, vocabulary.languages)


def _check_corpora(corpora: list[Corpus], vocabularies: Collection[str]) -> None:
    for at, corpus in enumerate(corpora):
        path = f"corpora.{at}.vocabularies"
        _check_named(path, corpus.vocabularies, vocabularies, "vocabularies")


def _check_tables(tables: TablesSettings, names: Collection[str]) -> None:
    for key in ("systems", "ablation"):
        _check_named(f"tables.{key}", getattr(tables, key) or [], names, "systems")
    check_studies(tables, names)


def _check_pairs(experiment: Experiment) -> None:
    """Raise `EmsError` for a vocabulary without a corpus to be made of."""
    for key, vocabulary in experiment.vocabularies.items():
        if key != SHARED and not experiment.pairs_of("train", key):
            codes = ", ".join(vocabulary.languages)
            raise EmsError(f"vocabularies.{key}.languages: no corpus has a pair of {codes}")


def _check_objectives(experiment: Experiment) -> None:
    """Raise `EmsError` for a system without a corpus of its vocabulary to learn from."""
    for key, system in experiment.systems.items():
        if system.trained:
            given = experiment.pairs_of("train", system.vocabulary)
            kinds = {corpus.kind for corpus, _ in given}
            documented = {pair for corpus, pair in given if corpus.documents}
            read = [code for code in system.languages if code in documented]
            check_learnable(f"systems.{key}", system.objectives, kinds, read)


def _validation(file: ExperimentFile) -> dict[str, CorpusEntry]:
    """Return key -> entry of `validation`: of one corpus, of a list of them, or none."""
    given = file.validation
    if isinstance(given, list):
        return {f"validation.{at}": entry for at, entry in enumerate(given)}
    return {"validation": given} if given else {}


def _languages(entries: list[str | LanguageEntry]) -> dict[str, Language]:
    known = load_languages()
    own = {
        entry.code: Language(entry.code, entry.tatoeba_v1, entry.flores200, entry.script)
        for entry in entries
        if isinstance(entry, LanguageEntry)
    }
    codes = [entry if isinstance(entry, str) else entry.code for entry in entries]
    _check_languages("languages", set(codes) - set(own), known)
    for code in codes:
        if codes.count(code) > 1:
            raise EmsError(f"languages: {code} is named twice")
    if UNSEEN in codes:
        raise EmsError(f"languages: {UNSEEN} stands for all languages that are not here; rename it")
    return {code: own[code] if code in own else known[code] for code in codes}


def _check_languages(key: str, codes: Iterable[str], known: Collection[str]) -> None:
    for code in sorted(codes):
        if code not in known:
            raise EmsError(
                f"{key}: unknown language {code!r}; allowed: {', '.join(known)} "
                "(a language of your own is an entry `{code: xx, tatoeba_v1: xxx}`)"
            )


def _with_table(languages: Iterable[str]) -> list[str]:
    """Return the languages of the table, then these, each once."""
    return list(dict.fromkeys([*load_languages(), *languages]))


def _check_named(key: str, names: Iterable[str], known: Collection[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise EmsError(f"{key}: {name} has no entry under {where}")


def _chosen(
    key: str, entry: CorpusEntry | EvalsetEntry, every: list[str], known: Collection[str]
) -> list[str]:
    """`languages` of an entry (`every` if absent, or a word for all), less its `without`."""
    codes = entry.languages if isinstance(entry.languages, list) else every
    _check_languages(f"{key}.languages", codes, known)
    _check_languages(f"{key}.without", entry.without, _with_table(known))
    return [code for code in codes if code not in entry.without]


def _check_left(
    key: str, entry: CorpusEntry | EvalsetEntry, chosen: Collection[str], otherwise: str
) -> None:
    """Raise `EmsError` when no language is chosen, because of `without` or `otherwise`."""
    if not chosen and entry.without:
        names = ", ".join(entry.without)
        raise EmsError(f"{key}.without: no language is left without {names}; take one out of it")
    if not chosen:
        raise EmsError(f"{key}.languages: {otherwise}")


def _corpora(entries: list[CorpusEntry], known: _Known) -> list[Corpus]:
    """Return the corpora trained on. A `fallback` gives up the pairs that another has (IV-A)."""
    corpora = [_corpus(f"corpora.{at}", entry, known) for at, entry in enumerate(entries)]
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


def _corpus(key: str, entry: CorpusEntry, known: _Known) -> Corpus:
    _check_kind(key, entry)
    if entry.kind == "documents":
        return _of_documents(key, entry, known)
    named = _with_table(known.languages)
    if isinstance(entry.codes, dict):
        _check_languages(f"{key}.codes", entry.codes, named)
    if entry.files is None:
        files, paths = pair_files(key, entry, _pairs(key, entry, known)), {}
    else:
        files, paths = own_files(key, entry, list(known.languages))
    _check_cap(f"{key}.max_pairs", entry.max_pairs, named)
    _check_part(f"{key}.part", entry.name, entry.part, known.splits)
    if entry.files and entry.part and known.splits[entry.name].documents:
        raise EmsError(f"splits.{entry.name}: `files` are divided by position (first, rest)")
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


def _pairs(key: str, entry: CorpusEntry, known: _Known) -> list[tuple[str, str]]:
    """Return the language pairs that an entry means, of those of the experiment."""
    codes = _chosen(key, entry, list(known.languages), known.languages)
    pairs = chosen_pairs(key, entry, codes, list(known.languages))
    only = ", ".join(codes) or "none"
    _check_left(key, entry, pairs, f"found only {only}; name the other side of each pair")
    return pairs


def _of_documents(key: str, entry: CorpusEntry, known: _Known) -> Corpus:
    """Return a corpus of documents; its `codes` name the files of a language, and the wikis."""
    codes = _chosen(key, entry, list(known.languages), known.languages)
    _check_left(key, entry, codes, "found none; name the languages of the documents")
    named = _with_table(known.languages)
    _check_languages(f"{key}.codes", entry.codes, named)
    _check_cap(f"{key}.max_documents", entry.max_documents, named)
    _check_part(f"{key}.part", entry.name, entry.part, known.splits)
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
        _check_languages(key, set(cap) - {"default", *pairs}, named)
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


def _check_part(key: str, corpus: str, part: str, splits: dict[str, Split]) -> None:
    """Raise `EmsError` for a part that no split makes, and for a whole beside its own parts."""
    if part and corpus not in splits:
        raise EmsError(f"{key}: {part}, but splits does not say how {corpus} is divided")
    if part and part not in splits[corpus].names:
        allowed = ", ".join(splits[corpus].names)
        where = f"splits.{corpus}" + ("" if splits[corpus].first else ".parts")
        raise EmsError(f"{key}: found {part!r}; allowed values: {allowed} ({where})")
    if not part and corpus in splits:
        raise EmsError(f"{key}: this key is missing; {corpus} is divided by splits.{corpus}")


def _check_distinct(corpora: list[Corpus]) -> None:
    names = [(item.label, item.version) for item in corpora]
    for name in names:
        if names.count(name) > 1:
            raise EmsError(f"corpora: {'/'.join(name)} is named twice (validation counts too)")
    first = {(item.name, item.version): item for item in reversed(corpora)}
    for item in corpora:
        for what in ("source", "threshold", "kind", "paths"):
            if getattr(item, what) != getattr(first[item.name, item.version], what):
                raise EmsError(f"corpora: the parts of {item.name} must have the same {what}")


def _check_held_out(corpora: list[Corpus], evalsets: dict[str, EvalSet]) -> None:
    """Raise `EmsError` when the part of a corpus that is a benchmark is trained or selected on, or
    a corpus of which a benchmark draws its sentences.
    """
    for name, evalset in evalsets.items():
        record = benchmark(name)
        for corpus in (corpus for corpus in corpora if corpus.name == record.corpus):
            if record.drawn:
                raise EmsError(
                    f"evalsets.{name}: {corpus.name} is one of the corpora too, so that sentences "
                    "trained on would be searched; take one of the two out"
                )
            if corpus.part == evalset.part:
                raise EmsError(f"evalsets.{name}.part: {corpus.label} is one of the corpora too")


def _evalset(name: str, entry: EvalsetEntry, known: _Known) -> EvalSet:
    key, record, source = f"evalsets.{name}", benchmark(name), known.sources.get(name, "")
    for field, of in (("part", "parts"), ("dev", "dev"), ("protocol", "protocol")):
        if getattr(entry, field) not in (None, "", False) and not getattr(record, of):
            those = ", ".join(other for other, each in benchmarks().items() if getattr(each, of))
            more = ", the benchmark that is a corpus too" if field == "part" else ""
            raise EmsError(f"{key}.{field}: only of {those}{more}")
    if record.parts:
        _check_part(f"{key}.part", record.corpus, entry.part, known.splits)
        if entry.part and known.splits[record.corpus].first:
            raise EmsError(f"{key}.part: a benchmark is divided by document, not by position")
    if entry.dev and not (entry.path or source.endswith(".tar.gz")):
        raise EmsError(
            f"{key}.dev: only the official archive has the dev part; set sources.{name} to "
            f"{record.dev}, or {key}.path to the folder that it unpacks to"
        )
    drawn = entry.protocol if isinstance(entry.protocol, DrawnProtocol) else None
    if drawn and drawn.queries > drawn.candidates:
        raise EmsError(
            f"{key}.protocol.queries: {drawn.queries:,} of {drawn.candidates:,} candidates cannot "
            "be drawn; lower it"
        )
    languages = _codes(name, entry, known.languages)
    _check_left(key, entry, languages, "none of the languages is in the benchmark")
    return EvalSet(
        version=entry.version,
        languages=languages,
        part=entry.part,
        path=entry.path or "",
        dev=entry.dev,
        protocol=entry.protocol,
        # in place, where a demo writes the set; else it is fetched from there as from any source
        embedded=not entry.path and has(name, "demo") and source == EMBEDDED,
    )


def _codes(name: str, entry: EvalsetEntry, languages: dict[str, Language]) -> dict[str, str]:
    """Return code in the benchmark -> chosen language. `all` are the experiment's and the
    table's; of Tatoeba also the languages that neither knows, 112 in all. A list is of the
    experiment's; of Tatoeba, which has a table for languages not trained on, of the table's too.
    """
    key, every = f"evalsets.{name}", entry.languages == "all"
    listed = benchmark(name).unseen and isinstance(entry.languages, list)
    codes = known_codes(name, every or listed, languages)
    chosen = _chosen(key, entry, list(codes), codes)
    seen = [code for code in codes if code in languages]
    if listed and chosen and not set(chosen) & set(seen):
        raise EmsError(
            f"{key}.languages: found {', '.join(map(repr, chosen))}, not trained on; at least one "
            f"must be: {', '.join(seen) or 'none of the languages is in the benchmark'}"
        )
    others = load_tatoeba_codes() if every and benchmark(name).unseen else ()
    unseen = {code: UNSEEN for code in others if code not in codes.values()}
    return by_code(name, chosen, codes) | unseen


def _segmenters(named: dict[str, str], languages: Iterable[str]) -> dict[str, str]:
    """Return the segmenter of each language, and of all languages not trained on (UNSEEN)."""
    codes, others = (UNSEEN, *languages), named.get("default")
    usual = dict.fromkeys(codes, others) if others else defaults(codes)
    return {code: named.get(code, usual[code]) for code in codes}
