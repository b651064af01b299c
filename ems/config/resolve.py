"""From the checked values of an experiment file to its types: names resolved, mistakes named."""

from collections.abc import Collection, Iterable
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.schema import plain
from ems.config.benchmarks import (
    DrawnProtocol,
    EvalsetEntry,
    by_code,
    check_sets,
    check_systems,
    known_codes,
)
from ems.config.corpora import (
    Known,
    build_corpora,
    check_languages,
    check_left,
    check_multiway,
    check_part,
    chosen_languages,
    with_table,
)
from ems.config.experiment import EMBEDDED, UNSEEN, Corpus, EvalSet, Experiment
from ems.config.file import ExperimentFile, LanguageEntry
from ems.config.languages import Language, load_languages, load_tatoeba_codes
from ems.config.objectives import check_learnable
from ems.config.plugins import benchmark, benchmarks, default_segmenters, has
from ems.config.sweep import swept
from ems.config.systems import (
    SHARED,
    Entries,
    SystemSettings,
    Vocabulary,
    build_systems,
    build_vocabularies,
    check_starts,
    families,
)
from ems.config.tables import TablesSettings, check_studies
from ems.config.text import CleanSettings, check_clean, check_vocabulary


def build(name: str, file: ExperimentFile, sources: dict[str, str], written: Entries) -> Experiment:
    """Return the experiment of a file, its systems as `written`. Raises `EmsError` that names a
    key.
    """
    systems = build_systems(file, written)
    sweep, added = swept(file.sweep, bool(file.validation), systems) if file.sweep else ((), {})
    systems |= added
    languages = _languages(file.languages)
    known = Known(languages, {**sources, **plain(file.sources)}, file.splits)
    corpora, validation = build_corpora(file, known)
    every = [*corpora, *validation]
    check_sets(file.benchmarks, file.evalsets)
    _check_named("decontaminate.against", file.decontaminate.against, file.evalsets, "evalsets")
    evalsets = {key: _evalset(key, entry, known) for key, entry in file.evalsets.items()}
    _check_held_out(every, evalsets)
    check_clean(file.clean)
    _check_filters(name, file.clean, {corpus.name for corpus in every})
    vocabularies = build_vocabularies(file, list(languages))
    _check_vocabularies(vocabularies)
    placed = {key: system.placed(f"systems.{key}", vocabularies) for key, system in systems.items()}
    _check_corpora(corpora, vocabularies)
    for key, system in placed.items():
        system.check(f"systems.{key}", bool(validation))
    check_starts(placed)
    groups = families(file.systems)
    _check_tables(file.tables, {*placed, *groups})
    _check_exported(file.export.systems, placed)
    check_languages("segmenters", set(file.segmenters) - {"default"}, with_table(languages))
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
        multiway=file.multiway,
    )
    if file.decontaminate.validation and not validation:
        raise EmsError("decontaminate.validation: there is no `validation`; set one of the two")
    check_multiway(experiment)
    _check_pairs(experiment)
    check_systems(experiment)
    _check_objectives(experiment)
    _check_fused(experiment)
    return experiment


def _check_filters(experiment: str, clean: CleanSettings, corpora: Collection[str]) -> None:
    """Raise `EmsError` for a filter of a corpus that is not there, or by a model that is trained on
    what it filters.
    """
    named = {f"clean.commands.{at}": each for at, each in enumerate(clean.commands)}
    named |= {"clean.language": clean.language, "clean.similarity": clean.similarity}
    for key, part in named.items():
        _check_named(f"{key}.corpora", part.corpora if part else [], corpora, "corpora")
    model = clean.similarity.model if clean.similarity else ""
    if Path(model).parts[:2] == ("results", experiment):
        raise EmsError(
            f"clean.similarity.model: {model} is trained on the text that it would filter; name "
            "the model of another experiment"
        )


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


def _check_fused(experiment: Experiment) -> None:
    """Raise `EmsError` for a fused system without pairs to weigh its n-grams on."""
    for key, system in experiment.systems.items():
        if system.of and system.ngrams.searched and not experiment.fitted_on("validation", key):
            raise EmsError(
                f"systems.{key}.ngrams: its weight is chosen on pairs of `validation`, which has "
                "none of its languages; set `validation`, or `weight` and `power` here"
            )


def _check_exported(names: list[str], systems: dict[str, SystemSettings]) -> None:
    """Raise `EmsError` for a system to export that is not trained here, or is fused."""
    for name in names:
        if name in systems and systems[name].of:
            raise EmsError(
                f"export.systems: {name} is of kind fused, which is not one model; export "
                f"{systems[name].of}"
            )
    trained = {name for name, system in systems.items() if system.trained}
    _check_named("export.systems", names, trained, "systems that are trained here")


def _languages(entries: list[str | LanguageEntry]) -> dict[str, Language]:
    known = load_languages()
    own = {
        entry.code: Language(entry.code, entry.tatoeba_v1, entry.flores200, entry.script)
        for entry in entries
        if isinstance(entry, LanguageEntry)
    }
    codes = [entry if isinstance(entry, str) else entry.code for entry in entries]
    check_languages("languages", set(codes) - set(own), known)
    for code in codes:
        if codes.count(code) > 1:
            raise EmsError(f"languages: {code} is named twice")
    if UNSEEN in codes:
        raise EmsError(f"languages: {UNSEEN} stands for all languages that are not here; rename it")
    return {code: own[code] if code in own else known[code] for code in codes}


def _check_named(key: str, names: Iterable[str], known: Collection[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise EmsError(f"{key}: {name} has no entry under {where}")


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


def _evalset(name: str, entry: EvalsetEntry, known: Known) -> EvalSet:
    key, record, source = f"evalsets.{name}", benchmark(name), known.sources.get(name, "")
    for field, of in (("part", "parts"), ("dev", "dev"), ("protocol", "protocol")):
        if getattr(entry, field) not in (None, "", False) and not getattr(record, of):
            those = ", ".join(other for other, each in benchmarks().items() if getattr(each, of))
            more = ", the benchmark that is a corpus too" if field == "part" else ""
            raise EmsError(f"{key}.{field}: only of {those}{more}")
    if record.parts:
        check_part(f"{key}.part", record.corpus, entry.part, known.splits)
        if entry.part and not known.splits[record.corpus].documents:
            raise EmsError(f"{key}.part: a benchmark is divided by document, not otherwise")
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
    check_left(key, entry, languages, "none of the languages is in the benchmark")
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
    chosen = chosen_languages(key, entry, list(codes), codes)
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
    usual = dict.fromkeys(codes, others) if others else default_segmenters(codes)
    return {code: named.get(code, usual[code]) for code in codes}
