"""Build an experiment from the checked values of its file: resolve names, report contradictions."""

from collections.abc import Collection, Iterable
from pathlib import Path

from ems.base.errors import EmsError, check, mistake
from ems.base.schema import plain
from ems.config import corpora as entry_names
from ems.config.benchmarks import DrawnProtocol, EvalsetEntry
from ems.config.corpora import KnownNames, build_corpora, check_languages, check_left, check_part
from ems.config.experiment import EMBEDDED, UNSEEN, EvalSet, Experiment
from ems.config.file import ExperimentFile, LanguageEntry
from ems.config.languages import Language, load_languages
from ems.config.plugins import benchmark, benchmarks, has_module, segmenters, sets_of
from ems.config.sweep import swept
from ems.config.systems import SHARED, Entries, build_systems, build_vocabularies, check_starts
from ems.config.tables import check_studies
from ems.config.text import CleanSettings, check_clean, check_vocabulary

AS_WRITTEN = ("seed", "splits", "decontaminate", "clean", "vocabulary", "tables", "export")
AS_WRITTEN += ("documents", "multiway")  # keys of the file that the experiment has unchanged


def build(name: str, file: ExperimentFile, sources: dict[str, str], written: Entries) -> Experiment:
    """Return the experiment of a file; `written` are its systems as in YAML. Raises `EmsError`."""
    systems = build_systems(file, written)
    sweep, added = swept(file.sweep, bool(file.validation), systems) if file.sweep else ((), {})
    languages = _languages(file.languages)
    sources, aligned = {**sources, **plain(file.sources)}, f"results/{name}/text/aligned"
    known = KnownNames(languages, sources, file.splits, aligned)
    corpora, validation = build_corpora(file, known)
    vocabularies = build_vocabularies(file, list(languages))
    systems |= added
    systems = {key: own.placed(f"systems.{key}", vocabularies) for key, own in systems.items()}
    each = {key: entry.each for key, entry in file.systems.items() if entry.each}
    experiment = Experiment(
        name=name,
        languages=languages,
        sources=sources,
        corpora=tuple(corpora),
        validation=tuple(validation),
        evalsets={key: _evalset(key, entry, known) for key, entry in file.evalsets.items()},
        segmenters=_segmenters(file.segmenters, languages),
        vocabularies=vocabularies,
        systems=systems,
        families={key: tuple(f"{key}-{own}" for own in names) for key, names in each.items()},
        benchmarks=tuple(file.benchmarks),
        probes=dict(file.probes),
        sweep=sweep,
        **{key: getattr(file, key) for key in AS_WRITTEN},
    )
    _check_names(experiment)
    _check_held_out(experiment)
    check_clean(file.clean)
    for key, vocabulary in vocabularies.items():
        path = "vocabulary" if key == SHARED else f"vocabularies.{key}"
        check_vocabulary(path, vocabulary.settings, vocabulary.languages)
        if key != SHARED and not experiment.pairs_of("train", key):
            raise mistake("no pair of a vocabulary", key=path, codes=vocabulary.languages)
    for key, system in systems.items():
        system.check(f"systems.{key}", bool(validation))
    check_starts(systems)
    _check_multiway(experiment)
    for key in systems:
        _check_scored(key, experiment.of_system(key))
        _check_learning(key, experiment)
    return experiment


def _languages(entries: list[str | LanguageEntry]) -> dict[str, Language]:
    known, languages = load_languages(), {}
    for entry in entries:
        if isinstance(entry, LanguageEntry):
            own = Language(entry.code, entry.tatoeba_v1, entry.flores200, entry.script)
        else:
            check_languages("languages", [entry], known)
            own = known[entry]
        if own.iso1 in languages:
            raise EmsError(f"languages: {own.iso1} is named twice")
        languages[own.iso1] = own
    if UNSEEN in languages:
        raise EmsError(f"languages: {UNSEEN} stands for all languages not listed; rename it")
    return languages


def _segmenters(named: dict[str, str], languages: Iterable[str]) -> dict[str, str]:
    check_languages("segmenters", set(named) - {"default"}, entry_names.with_table(languages))
    codes, others = (UNSEEN, *languages), named.get("default")
    usual = dict.fromkeys(codes, others) if others else segmenters().defaults(codes)
    return {code: named.get(code, usual[code]) for code in codes}


# --- evaluation sets


def _evalset(name: str, entry: EvalsetEntry, known: KnownNames) -> EvalSet:
    key, record, source = f"evalsets.{name}", benchmark(name), known.sources.get(name, "")
    for field, property_ in (("part", "parts"), ("dev", "dev"), ("protocol", "protocol")):
        if getattr(entry, field) not in (None, "", False) and not getattr(record, property_):
            names = [other for other, each in benchmarks().items() if getattr(each, property_)]
            raise EmsError(f"{key}.{field}: only {', '.join(names)} may set this; remove it")
    if record.parts:
        check_part(f"{key}.part", record.corpus, entry.part, known.splits)
        if entry.part and not known.splits[record.corpus].documents:
            raise EmsError(f"{key}.part: a benchmark can only be divided by document")
    drawn = entry.protocol if isinstance(entry.protocol, DrawnProtocol) else None
    mistakes = {
        "dev part": entry.dev and not (entry.path or source.endswith(".tar.gz")),
        "more queries than candidates": drawn and drawn.queries > drawn.candidates,
    }
    check(mistakes, key=key, name=name, record=record, drawn=drawn)
    languages = _codes(name, entry, known.languages)
    check_left(key, entry, languages, "none of the languages is in the benchmark")
    # used in place if a demo writes the set; otherwise fetched as from any source
    embedded = not entry.path and has_module(name, "demo") and source == EMBEDDED
    same = {key: getattr(entry, key) for key in ("version", "part", "dev", "protocol")}
    return EvalSet(languages=languages, path=entry.path or "", embedded=embedded, **same)


def _codes(name: str, entry: EvalsetEntry, languages: dict[str, Language]) -> dict[str, str]:
    """Return code in the benchmark -> language. `all` means the languages of the experiment and of
    the table, and what a set has of `unseen` ones: Tatoeba 112 in all. A list names languages of
    the experiment; in a set with `unseen` ones also languages of the table.
    """
    key, record = f"evalsets.{name}", benchmark(name)
    listed = bool(record.unseen) and isinstance(entry.languages, list)
    table = load_languages() if entry.languages == "all" or listed else {}
    known = {code: record.code_of(language) for code, language in {**table, **languages}.items()}
    # a language of the experiment replaces one of the table with the same code in the set
    taken = {known[code] for code in languages}
    codes = {c: own for c, own in known.items() if own and (c in languages or own not in taken)}
    chosen = entry_names.chosen_languages(key, entry, list(codes))
    seen = [code for code in codes if code in languages]
    if listed and chosen and not set(chosen) & set(seen):
        shown = seen or "none of the languages is in the benchmark"
        raise mistake("only unseen languages", key=key, found=list(map(repr, chosen)), seen=shown)
    of_set: dict[str, str] = {}
    for language in chosen:
        other = of_set.setdefault(codes[language], language)
        if other != language:
            words = {"other": other, "language": language, "code": codes[language]}
            raise mistake("two languages of a code", key=key, **words)
    others = record.unseen if entry.languages == "all" else ()
    return of_set | {code: UNSEEN for code in others if code not in codes.values()}


# --- what contradicts one another


def _check_names(experiment: Experiment) -> None:
    evalsets, systems = experiment.evalsets, experiment.systems
    for name in experiment.benchmarks:
        for evalset in sets_of(name):
            if evalset not in evalsets:
                missing = evalset if evalset == name else f"{name} reads {evalset}, which"
                raise EmsError(f"benchmarks: {missing} has no entry under evalsets")
    _check_named("decontaminate.against", experiment.decontaminate.against, evalsets, "evalsets")
    if experiment.decontaminate.validation and not experiment.validation:
        raise EmsError("decontaminate.validation: there is no `validation`; set it, or remove this")
    _check_filters(experiment.name, experiment.clean, {c.name for _, c in experiment.all_corpora()})
    for index, corpus in enumerate(experiment.corpora):
        key, known = f"corpora.{index}.vocabularies", experiment.vocabularies
        _check_named(key, corpus.vocabularies, known, "vocabularies")
    tables, names = experiment.tables, {*systems, *experiment.families}
    _check_named("tables.systems", tables.systems or [], names, "systems")
    _check_named("tables.ablation", tables.ablation or [], names, "systems")
    check_studies(tables, names)
    for name in experiment.export.systems:
        if name in systems and systems[name].base_system:
            raise mistake("export of a fused system", name=name, base=systems[name].base_system)
    trained = {name for name, system in systems.items() if system.trained}
    exported = experiment.export.systems
    _check_named("export.systems", exported, trained, "systems that are trained here")


def _check_filters(experiment: str, clean: CleanSettings, corpora: Collection[str]) -> None:
    named = {f"clean.commands.{index}": command for index, command in enumerate(clean.commands)}
    named |= {"clean.language": clean.language, "clean.similarity": clean.similarity}
    for key, part in named.items():
        _check_named(f"{key}.corpora", part.corpora if part else [], corpora, "corpora")
    model = clean.similarity.model if clean.similarity else ""
    if Path(model).parts[:2] == ("results", experiment):
        raise mistake("filter by itself", model=model)


def _check_named(key: str, names: Iterable[str], allowed: Collection[str], section: str) -> None:
    for name in names:
        if name not in allowed:
            raise EmsError(f"{key}: {name} has no entry under {section}")


def _check_held_out(experiment: Experiment) -> None:
    """Raise `EmsError` if a corpus, or a part of it, is also what a benchmark searches."""
    for name, evalset in experiment.evalsets.items():
        record = benchmark(name)
        for _, corpus in experiment.all_corpora():
            if corpus.name == record.corpus and record.drawn:
                raise mistake("search of a training corpus", name=name, corpus=corpus)
            if corpus.name == record.corpus and corpus.part == evalset.part:
                raise EmsError(f"evalsets.{name}.part: {corpus.label} is one of the corpora too")


def _check_scored(system: str, own: Experiment) -> None:
    """Raise `EmsError` for a system without pairs, or a benchmark without a language that it needs:
    one between languages needs two of the system's (`own` has no others).
    """
    languages = list(own.languages)
    pairs = (pair.split("-") for corpus in own.corpora for pair in corpus.pairs)
    if not any(own.languages.keys() >= set(pair) for pair in pairs):
        raise mistake("no pair of a system", system=system, languages=languages)
    for name in own.benchmarks:
        for evalset in sets_of(name):
            if not own.evalsets[evalset].languages:
                words = {"evalset": evalset, "languages": languages}
                raise mistake("set without a language", system=system, **words)
        needed = getattr(own.probes.get(name), "source", None) or benchmark(name).needed
        if needed and needed not in own.languages:
            words = {"needed": needed, "languages": languages}
            raise mistake("language of a benchmark", system=system, name=name, **words)
        required = benchmark(name).between
        if required is None:
            continue
        evalset = sets_of(name)[0]
        spoken = [language for language in own.spoken(evalset).values() if language != UNSEEN]
        if len(spoken) < 2 or (required and required not in spoken):
            expected = f"{required} and another" if required else "two"
            words = {"expected": expected, "evalset": evalset, "spoken": spoken}
            raise mistake("languages of a benchmark", system=system, name=name, **words)


def _check_learning(name: str, experiment: Experiment) -> None:
    system = experiment.systems[name]
    if system.trained:
        text, objectives = experiment.pairs_of("train", system.vocabulary), system.objectives
        needed = "documents" if objectives.documents else "pairs"
        if needed not in {corpus.kind for corpus, _ in text}:
            learn = "learn" if len(objectives.active) > 1 else "learns"
            words = {"active": " and ".join(objectives.active), "learn": learn, "needed": needed}
            raise mistake("nothing to learn from", name=name, **words)
        documented = {pair for corpus, pair in text if corpus.documents}
        read = [code for code in system.languages if code in documented]
        if objectives.coherence.weight and len(read) < 2:
            raise mistake("documents of one language", name=name, read=read or "no language")
    searched = system.base_system and system.ngrams.searched
    if searched and not experiment.fitted_on("validation", name):
        raise mistake("weight without validation", name=name)


def _check_multiway(experiment: Experiment) -> None:
    """Raise `EmsError` if further pairs cannot be made, or would not be decontaminated."""
    through = experiment.multiway.through
    if not through:
        return
    mistakes = {
        "through no language": through not in experiment.languages,
        "nothing to join": not experiment.multiway_pairs(),
        "scope of further pairs": experiment.decontaminate.scope != "any",
    }
    pairs = list(dict.fromkeys(pair for _, pair in experiment.joined()))
    check(mistakes, through=through, known=experiment.languages, pairs=pairs)
    for corpus in experiment.corpora:
        if corpus.vocabularies:
            words = {"label": corpus.label, "vocabularies": corpus.vocabularies}
            raise mistake("corpus not shared by all", **words)
