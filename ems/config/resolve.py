"""From the checked values of an experiment file to its types: names resolved, mistakes named."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ems.bench.settings import DrawnProtocol
from ems.benchmarks import benchmark, benchmarks, has
from ems.config.benchmarks import check_sets, check_systems
from ems.config.codes import by_code, known_codes, unseen
from ems.config.experiment import (
    EMBEDDED,
    UNSEEN,
    Corpus,
    EvalSet,
    Experiment,
    Split,
)
from ems.config.file import ExperimentFile, LanguageEntry
from ems.config.opus import default_cap, pair_caps, pair_files
from ems.config.systems import SHARED, SystemSettings, build_vocabularies, families
from ems.corpora.settings import CorpusEntry, SplitEntry
from ems.errors import EmsError
from ems.evalsets.settings import EvalsetEntry
from ems.languages import Language, load_languages
from ems.segmenters.base import defaults
from ems.settings import Settings, plain
from ems.text.settings import check_clean, check_vocabulary

Languages = dict[str, Language]


def build(
    name: str, file: ExperimentFile, sources: dict[str, str], systems: dict[str, SystemSettings]
) -> Experiment:
    """The experiment of a file, its `systems` resolved. Raises `EmsError` that names a key."""
    languages = _languages(file.languages)
    sources = {**sources, **plain(file.sources)}
    splits = {key: _split(f"splits.{key}", entry) for key, entry in file.splits.items()}
    corpora = _corpora(file.corpora, languages, sources, splits)
    validation = file.validation and _corpus(
        "validation", file.validation, languages, sources, splits
    )
    _check_distinct(corpora, validation)
    evalsets = _evalsets(file, languages, splits, sources)
    _check_held_out([*corpora, *([validation] if validation else [])], evalsets)
    check_clean(file.clean)
    vocabularies = build_vocabularies(file, list(languages))
    for key, vocabulary in vocabularies.items():
        path = "vocabulary" if key == SHARED else f"vocabularies.{key}"
        check_vocabulary(path, vocabulary.settings, vocabulary.languages)
    placed = {key: system.placed(f"systems.{key}", vocabularies) for key, system in systems.items()}
    for key, system in placed.items():
        system.check(f"systems.{key}")
    for key in ("systems", "ablation"):
        shown = getattr(file.tables, key) or []
        _check_named(f"tables.{key}", shown, {*systems, *file.systems}, "systems")
    named = set(file.segmenters) - {"default"}
    _check_languages("segmenters", named, {**load_languages(), **languages})
    experiment = Experiment(
        name=name,
        seed=file.seed,
        languages=languages,
        sources=sources,
        splits=splits,
        corpora=corpora,
        validation=validation,
        evalsets=evalsets,
        decontaminate=file.decontaminate,
        clean=file.clean,
        segmenters=_segmenters(file.segmenters, languages),
        vocabulary=file.vocabulary,
        vocabularies=vocabularies,
        systems=placed,
        families=families(file.systems),
        benchmarks=tuple(file.benchmarks),
        tables=file.tables,
        probes=dict(file.probes),
        documents=file.documents,
    )
    check_systems(experiment)
    return experiment


def _languages(entries: list[str | LanguageEntry]) -> Languages:
    own = {entry.code: entry for entry in entries if isinstance(entry, LanguageEntry)}
    known = load_languages()
    codes = [entry if isinstance(entry, str) else entry.code for entry in entries]
    _check_languages("languages", set(codes) - set(own), known)
    for code in codes:
        if codes.count(code) > 1:
            raise EmsError(f"languages: {code} is named twice")
    if "en" not in codes:
        raise EmsError("languages: en is missing; every pair has English on one side")
    if UNSEEN in codes:
        raise EmsError(f"languages: {UNSEEN} stands for all languages that are not here; rename it")
    return {code: _own_language(own[code]) if code in own else known[code] for code in codes}


def _own_language(entry: LanguageEntry) -> Language:
    names = ("tatoeba_v1", "flores200", "script")
    return Language(entry.code, **{name: getattr(entry, name) for name in names})


def _check_languages(key: str, codes: Iterable[str], known: Collection[str]) -> None:
    for code in sorted(codes):
        if code not in known:
            raise EmsError(
                f"{key}: unknown language {code!r}; allowed: {', '.join(known)} "
                "(a language of your own is an entry `{code: xx, tatoeba_v1: xxx}`)"
            )


def _check_named(key: str, names: Iterable[str], known: Collection[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise EmsError(f"{key}: {name} has no entry under {where}")


def _split(key: str, entry: SplitEntry) -> Split:
    present = entry.model_fields_set
    by_position = bool({"first", "rest"} & present)
    for name in ("first", "rest") if by_position else ("documents", "parts"):
        if name not in present:
            raise EmsError(f"{key}.{name}: this key is missing")
    if by_position and {"documents", "parts"} & present:
        raise EmsError(f"{key}: by document (documents, parts) or by position (first, rest)?")
    if by_position and entry.rest in entry.first:
        raise EmsError(f"{key}.rest: {entry.rest} is one of the first parts already")
    if by_position:
        return Split(first=entry.first, rest=entry.rest)
    total = sum(entry.parts.values())
    if abs(total - 1) > 1e-9:
        raise EmsError(f"{key}.parts: the shares add up to {total:g}; they must add up to 1")
    return Split(entry.documents, entry.parts)


def _chosen(
    key: str,
    entry: CorpusEntry | EvalsetEntry,
    every: list[str],
    known: Mapping[str, object],
) -> list[str]:
    """`languages` of an entry (`every` if absent, or a word for all), less its `without`."""
    codes = entry.languages if isinstance(entry.languages, list) else every
    _check_languages(f"{key}.languages", codes, known)
    _check_languages(f"{key}.without", entry.without, {**load_languages(), **known})
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


def _corpora(
    entries: list[CorpusEntry],
    languages: Languages,
    sources: dict[str, str],
    splits: dict[str, Split],
) -> tuple[Corpus, ...]:
    """The corpora trained on. A `fallback` gives up the pairs that any other one has (IV-A)."""
    corpora = [
        _corpus(f"corpora.{at}", entry, languages, sources, splits)
        for at, entry in enumerate(entries)
    ]
    others = [c for c, entry in zip(corpora, entries, strict=True) if not entry.fallback]
    covered = {pair for corpus in others for pair in corpus.pairs}
    return tuple(
        corpus
        if corpus in others
        else replace(corpus, pairs=_uncovered(f"corpora.{at}", corpus, covered))
        for at, corpus in enumerate(corpora)
    )


def _uncovered(key: str, corpus: Corpus, covered: set[str]) -> tuple[str, ...]:
    pairs = tuple(pair for pair in corpus.pairs if pair not in covered)
    if not pairs:
        raise EmsError(
            f"{key}.fallback: every pair of {corpus.label} is in another corpus, so nothing of it "
            "would be used; take the entry out, or set fallback: false"
        )
    return pairs


def _corpus(
    key: str,
    entry: CorpusEntry,
    languages: Languages,
    sources: dict[str, str],
    splits: dict[str, Split],
) -> Corpus:
    codes = _chosen(key, entry, [code for code in languages if code != "en"], languages)
    codes = [code for code in codes if code != "en"]
    _check_left(key, entry, codes, "found only en; name the other side of each pair")
    files = pair_files(key, entry, codes)
    _check_part(f"{key}.part", entry.name, entry.part, splits)
    mined = _check_mined(key, entry)
    return Corpus(
        name=entry.name,
        version=entry.version,
        source=entry.source or sources["wikimatrix" if mined else "opus"],
        own=entry.source is not None,
        pairs=tuple(files),
        max_pairs=default_cap(entry),
        part=entry.part,
        variants={pair: names for pair, names in files.items() if names != (pair,)},
        caps=pair_caps(key, entry, list(languages)),
        threshold=entry.threshold,
    )


def _check_mined(key: str, entry: CorpusEntry) -> bool:
    """Whether the entry means LASER's mined file. Raises `EmsError` for one without threshold."""
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
        known = ", ".join(splits[corpus].names)
        where = f"splits.{corpus}" + ("" if splits[corpus].first else ".parts")
        raise EmsError(f"{key}: found {part!r}; allowed values: {known} ({where})")
    if not part and corpus in splits:
        raise EmsError(f"{key}: this key is missing; {corpus} is divided by splits.{corpus}")


def _check_distinct(corpora: tuple[Corpus, ...], validation: Corpus | None) -> None:
    every = [*corpora, *([validation] if validation else [])]
    names = [(item.label, item.version) for item in every]
    for name in names:
        if names.count(name) > 1:
            raise EmsError(f"corpora: {'/'.join(name)} is named twice (validation counts too)")
    first = {(item.name, item.version): item for item in reversed(every)}
    for item in every:
        for what in ("source", "threshold"):
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


def _evalsets(
    file: ExperimentFile,
    languages: Languages,
    splits: dict[str, Split],
    sources: dict[str, str],
) -> dict[str, EvalSet]:
    """The evaluation sets, in the order of the file."""
    entries = file.evalsets
    check_sets(file.benchmarks, entries)
    _check_named("decontaminate.against", file.decontaminate.against, entries, "evalsets")
    return {
        name: _evalset(name, entry, languages, splits, sources) for name, entry in entries.items()
    }


def _evalset(
    name: str,
    entry: EvalsetEntry,
    languages: Languages,
    splits: dict[str, Split],
    sources: dict[str, str],
) -> EvalSet:
    key, record = f"evalsets.{name}", benchmark(name)
    if entry.part and not record.parts:
        known = ", ".join(other for other, each in benchmarks().items() if each.parts)
        raise EmsError(f"{key}.part: only of {known}, the benchmark that is a corpus too")
    if record.parts:
        _check_part(f"{key}.part", record.corpus, entry.part, splits)
        if entry.part and splits[record.corpus].first:
            raise EmsError(f"{key}.part: a benchmark is divided by document, not by position")
    if entry.dev:
        _check_dev(key, name, entry, sources)
    if entry.protocol is not None and record.protocol is None:
        known = ", ".join(other for other, each in benchmarks().items() if each.protocol)
        raise EmsError(f"{key}.protocol: only of {known}")
    _check_protocol(f"{key}.protocol", entry.protocol)
    chosen = _codes(name, entry, languages)
    _check_left(key, entry, chosen, "none of the languages is in the benchmark")
    # in place, where a demo writes the set; else it is fetched from there as from any source
    embedded = not entry.path and has(name, "demo") and sources.get(name) == EMBEDDED
    return EvalSet(
        name=name,
        version=entry.version,
        languages=chosen,
        part=entry.part,
        path=entry.path or "",
        dev=entry.dev,
        protocol=entry.protocol,
        embedded=embedded,
    )


def _check_dev(key: str, name: str, entry: EvalsetEntry, sources: dict[str, str]) -> None:
    """Raise `EmsError` for a part of FLORES-200 that its source does not have."""
    if not benchmark(name).dev:
        known = ", ".join(other for other, each in benchmarks().items() if each.dev)
        raise EmsError(f"{key}.dev: only of {known}")
    if not (entry.path or sources.get(name, "").endswith(".tar.gz")):
        raise EmsError(
            f"{key}.dev: only the official archive has the dev part; set sources.{name} to "
            f"{benchmark(name).dev}, or {key}.path to the folder that it unpacks to"
        )


def _check_protocol(key: str, protocol: Settings | None) -> None:
    """Raise `EmsError` for more queries than there are sentences to draw them from."""
    if isinstance(protocol, DrawnProtocol) and protocol.queries > protocol.candidates:
        raise EmsError(
            f"{key}.queries: {protocol.queries:,} of {protocol.candidates:,} candidates cannot be "
            "drawn; lower it"
        )


def _codes(name: str, entry: EvalsetEntry, languages: Languages) -> dict[str, str]:
    """Code in the benchmark -> language, of those chosen. `all` are the experiment's and the
    table's; of Tatoeba also the languages that neither knows, 112 in all. A list is of the
    experiment's; of Tatoeba, which has a table for languages not trained on, of the table's too.
    """
    every = entry.languages == "all"
    listed = benchmark(name).unseen and isinstance(entry.languages, list)
    codes = known_codes(name, every or listed, languages)
    chosen = _chosen(f"evalsets.{name}", entry, list(codes), codes)
    if listed and chosen:
        _check_seen(f"evalsets.{name}", chosen, [code for code in codes if code in languages])
    return by_code(name, chosen, codes) | unseen(name, every, codes)


def _check_seen(key: str, chosen: list[str], seen: list[str]) -> None:
    """Raise `EmsError` when no language of a list is one that the experiment trains on."""
    if not set(chosen) & set(seen):
        raise EmsError(
            f"{key}.languages: found {', '.join(map(repr, chosen))}, not trained on; at least one "
            f"must be: {', '.join(seen) or 'none of the languages is in the benchmark'}"
        )


def _segmenters(named: dict[str, str], languages: Iterable[str]) -> dict[str, str]:
    """Return the segmenter of each language, and of those that are never trained on."""
    codes, others = (UNSEEN, *languages), named.get("default")
    usual = dict.fromkeys(codes, others) if others else defaults(codes)
    return {code: named.get(code, usual[code]) for code in codes}
