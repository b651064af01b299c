"""From the checked values of an experiment file to its types: names resolved, mistakes named."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ems.benchmarks import benchmark, benchmarks, has, settings_of
from ems.config.benchmarks import check_sets
from ems.config.codes import by_code, known_codes, unseen
from ems.config.contradictions import (
    check_clean,
    check_protocol,
    check_schedule,
    check_vocabulary,
)
from ems.config.experiment import (
    EMBEDDED,
    UNSEEN,
    Corpus,
    EvalSet,
    Experiment,
    Split,
)
from ems.config.objectives import check_objectives
from ems.config.opus import default_cap, pair_caps, pair_files
from ems.config.systems import (
    LOCATED,
    build_vocabularies,
    check_source,
    check_systems,
    families,
    place,
)
from ems.errors import EmsError
from ems.languages import Language, load_languages
from ems.segmenters.base import default_for


def build(
    name: str, value: dict[str, Any], site: dict[str, Any], systems: dict[str, dict[str, Any]]
) -> Experiment:
    """The experiment of a checked `value` with its defaults. Raises `EmsError` that names a key."""
    languages = _languages(value["languages"])
    sources = {**site["sources"], **value["sources"]}
    splits = {key: _split(f"splits.{key}", entry) for key, entry in value["splits"].items()}
    corpora = _corpora(value, languages, sources, splits)
    validation = value["validation"] and _corpus(
        "validation", value["validation"], languages, sources, splits
    )
    _check_distinct(corpora, validation)
    evalsets = _evalsets(value, languages, splits, sources)
    _check_held_out([*corpora, *([validation] if validation else [])], evalsets)
    check_clean(value["clean"])
    vocabularies = build_vocabularies(value["vocabulary"], value["vocabularies"], list(languages))
    for key, vocabulary in vocabularies.items():
        check_vocabulary(key, vocabulary)
    placed = {key: place(f"systems.{key}", system, vocabularies) for key, system in systems.items()}
    for key, system in placed.items():
        _check_system(f"systems.{key}", system)
    for key in ("systems", "ablation"):
        shown, known = value["tables"].get(key, []), {*systems, *value["systems"]}
        _check_named(f"tables.{key}", shown, known, "systems")
    named = set(value["segmenters"]) - {"default"}
    _check_languages("segmenters", named, {**load_languages(), **languages})
    experiment = Experiment(
        name=name,
        seed=value["seed"],
        languages=languages,
        sources=sources,
        splits=splits,
        corpora=corpora,
        validation=validation,
        evalsets=evalsets,
        decontaminate=value["decontaminate"],
        clean=value["clean"],
        segmenters=_segmenters(value["segmenters"], languages),
        vocabulary=value["vocabulary"],
        vocabularies=vocabularies,
        systems=placed,
        families=families(value["systems"]),
        benchmarks=tuple(value["benchmarks"]),
        tables=value["tables"],
        probes=value["probes"],
        documents=value["documents"],
    )
    check_systems(experiment)
    return experiment


def _languages(entries: list[str | dict[str, str]]) -> dict[str, Language]:
    own = {entry["code"]: entry for entry in entries if isinstance(entry, dict)}
    known = load_languages()
    codes = [entry if isinstance(entry, str) else entry["code"] for entry in entries]
    _check_languages("languages", set(codes) - set(own), known)
    for code in codes:
        if codes.count(code) > 1:
            raise EmsError(f"languages: {code} is named twice")
    if "en" not in codes:
        raise EmsError("languages: en is missing; every pair has English on one side")
    if UNSEEN in codes:
        raise EmsError(f"languages: {UNSEEN} stands for all languages that are not here; rename it")
    return {code: _own_language(own[code]) if code in own else known[code] for code in codes}


def _own_language(entry: dict[str, str]) -> Language:
    names = ("tatoeba_v1", "flores200", "script")
    return Language(entry["code"], **{name: entry.get(name, "") for name in names})


def _check_languages(key: str, codes: Any, known: dict[str, Any]) -> None:
    for code in sorted(codes):
        if code not in known:
            raise EmsError(
                f"{key}: unknown language {code!r}; allowed: {', '.join(known)} "
                "(a language of your own is an entry `{code: xx, tatoeba_v1: xxx}`)"
            )


def _check_named(key: str, names: list[str], known: Any, where: str) -> None:
    for name in names:
        if name not in known:
            raise EmsError(f"{key}: {name} has no entry under {where}")


def _split(key: str, entry: dict[str, Any]) -> Split:
    by_position = bool({"first", "rest"} & set(entry))
    for name in ("first", "rest") if by_position else ("documents", "parts"):
        if name not in entry:
            raise EmsError(f"{key}.{name}: this key is missing")
    if by_position and {"documents", "parts"} & set(entry):
        raise EmsError(f"{key}: by document (documents, parts) or by position (first, rest)?")
    if by_position and entry["rest"] in entry["first"]:
        raise EmsError(f"{key}.rest: {entry['rest']} is one of the first parts already")
    if by_position:
        return Split(first=dict(entry["first"]), rest=entry["rest"])
    total = sum(entry["parts"].values())
    if abs(total - 1) > 1e-9:
        raise EmsError(f"{key}.parts: the shares add up to {total:g}; they must add up to 1")
    return Split(entry["documents"], dict(entry["parts"]))


def _chosen(key: str, entry: dict[str, Any], all_: list[str], known: dict[str, Any]) -> list[str]:
    """`languages` of an entry (all_ if absent, or a word for all), less those of its `without`."""
    without = entry.get("without", [])
    codes = entry.get("languages", all_)
    codes = all_ if isinstance(codes, str) else codes
    _check_languages(f"{key}.languages", codes, known)
    _check_languages(f"{key}.without", without, {**load_languages(), **known})
    return [code for code in codes if code not in without]


def _check_left(key: str, entry: dict[str, Any], chosen: Any, otherwise: str) -> None:
    """Raise `EmsError` when no language is chosen, because of `without` or `otherwise`."""
    if not chosen and entry.get("without"):
        names = ", ".join(entry["without"])
        raise EmsError(f"{key}.without: no language is left without {names}; take one out of it")
    if not chosen:
        raise EmsError(f"{key}.languages: {otherwise}")


def _corpora(
    value: dict[str, Any],
    languages: dict[str, Language],
    sources: dict[str, str],
    splits: dict[str, Split],
) -> tuple[Corpus, ...]:
    """The corpora trained on. A `fallback` gives up the pairs that any other one has (IV-A)."""
    entries = [(f"corpora.{at}", entry) for at, entry in enumerate(value["corpora"])]
    corpora = [_corpus(key, entry, languages, sources, splits) for key, entry in entries]
    others = [
        c for c, (_, entry) in zip(corpora, entries, strict=True) if not entry.get("fallback")
    ]
    covered = {pair for corpus in others for pair in corpus.pairs}
    return tuple(
        corpus if corpus in others else replace(corpus, pairs=_uncovered(key, corpus, covered))
        for corpus, (key, _) in zip(corpora, entries, strict=True)
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
    entry: dict[str, Any],
    languages: dict[str, Language],
    sources: dict[str, str],
    splits: dict[str, Split],
) -> Corpus:
    codes = _chosen(key, entry, [code for code in languages if code != "en"], languages)
    codes = [code for code in codes if code != "en"]
    _check_left(key, entry, codes, "found only en; name the other side of each pair")
    files = pair_files(key, entry, codes)
    part = entry.get("part", "")
    _check_part(f"{key}.part", entry["name"], part, splits)
    mined = _check_mined(key, entry)
    return Corpus(
        name=entry["name"],
        version=entry["version"],
        source=entry.get("source", sources["wikimatrix" if mined else "opus"]),
        own="source" in entry,
        pairs=tuple(files),
        max_pairs=default_cap(entry),
        part=part,
        variants={pair: names for pair, names in files.items() if names != (pair,)},
        caps=pair_caps(key, entry, list(languages)),
        threshold=entry.get("threshold"),
    )


def _check_mined(key: str, entry: dict[str, Any]) -> bool:
    """Whether the entry means LASER's mined file. Raises `EmsError` for one without threshold."""
    mined = entry.get("format") == "mined"
    if mined and entry["name"] != "WikiMatrix":
        raise EmsError(f"{key}.format: mined is the format of WikiMatrix alone")
    if mined and "threshold" not in entry:
        raise EmsError(f"{key}.threshold: this key is missing; a mined pair needs a least score")
    if "threshold" in entry and not mined:
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


def _check_system(key: str, system: dict[str, Any]) -> None:
    check_source(key, system)
    if system["kind"] in LOCATED:
        return
    model = system["model"]
    if "steps" not in system["train"]:
        raise EmsError("train.steps: this key is missing")
    if model["width"] % model["heads"]:
        raise EmsError(
            f"{key}: model.width {model['width']} is no multiple of model.heads {model['heads']}"
        )
    check_schedule(key, system["train"])
    check_objectives(key, system)


def _evalsets(
    value: dict[str, Any],
    languages: dict[str, Language],
    splits: dict[str, Split],
    sources: dict[str, str],
) -> dict[str, EvalSet]:
    entries = value["evalsets"]
    check_sets(value["benchmarks"], entries)
    against = value["decontaminate"]["against"]
    _check_named("decontaminate.against", against, entries, "evalsets")
    return {
        name: _evalset(name, entry, languages, splits, sources) for name, entry in entries.items()
    }


def _evalset(
    name: str,
    entry: dict[str, Any],
    languages: dict[str, Language],
    splits: dict[str, Split],
    sources: dict[str, str],
) -> EvalSet:
    key = f"evalsets.{name}"
    part, record = entry.get("part", ""), benchmark(name)
    if part and not record.parts:
        known = ", ".join(other for other, each in benchmarks().items() if each.parts)
        raise EmsError(f"{key}.part: only of {known}, the benchmark that is a corpus too")
    if record.parts:
        _check_part(f"{key}.part", record.corpus, part, splits)
        if part and splits[record.corpus].first:
            raise EmsError(f"{key}.part: a benchmark is divided by document, not by position")
    if entry.get("dev"):
        _check_dev(key, name, entry, sources)
    if "protocol" in entry and "protocol" not in settings_of(name):
        known = ", ".join(other for other in benchmarks() if "protocol" in settings_of(other))
        raise EmsError(f"{key}.protocol: only of {known}")
    check_protocol(f"{key}.protocol", entry.get("protocol", {}))
    chosen = _codes(name, entry, languages)
    _check_left(key, entry, chosen, "none of the languages is in the benchmark")
    kept = {what: entry[what] for what in ("path", "dev", "protocol") if what in entry}
    # in place, where a demo writes the set; else it is fetched from there as from any source
    embedded = "path" not in entry and has(name, "demo") and sources.get(name) == EMBEDDED
    return EvalSet(name, entry["version"], chosen, part, embedded=embedded, **kept)


def _check_dev(key: str, name: str, entry: dict[str, Any], sources: dict[str, str]) -> None:
    """Raise `EmsError` for a part of FLORES-200 that its source does not have."""
    if not benchmark(name).dev:
        known = ", ".join(other for other, each in benchmarks().items() if each.dev)
        raise EmsError(f"{key}.dev: only of {known}")
    if not ("path" in entry or sources.get(name, "").endswith(".tar.gz")):
        raise EmsError(
            f"{key}.dev: only the official archive has the dev part; set sources.flores200 to "
            f"https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz, or {key}.path to the "
            "folder that it unpacks to"
        )


def _codes(name: str, entry: dict[str, Any], languages: dict[str, Language]) -> dict[str, str]:
    """Code in the benchmark -> language, of those chosen. `all` are the experiment's and the
    table's; of Tatoeba also the languages that neither knows, 112 in all. A list is of the
    experiment's; of Tatoeba, which has a table for languages not trained on, of the table's too.
    """
    every = entry["languages"] == "all"
    listed = benchmark(name).unseen and not isinstance(entry["languages"], str)
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
    return {
        code: named.get(code) or named.get("default") or default_for(code)
        for code in (UNSEEN, *languages)
    }
