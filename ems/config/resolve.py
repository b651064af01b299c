"""From the checked values of an experiment file to its types: names resolved, mistakes named."""

from dataclasses import replace
from typing import Any

from ems.config.experiment import NTREX, UNSEEN, Corpus, EvalSet, Experiment, Split
from ems.errors import EmsError
from ems.languages import Language, load_languages, load_tatoeba_codes


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
    evalsets = _evalsets(value, languages, splits)
    _check_held_out([*corpora, *([validation] if validation else [])], evalsets)
    for key, system in systems.items():
        _check_system(f"systems.{key}", system)
    _check_named("tables.systems", value["tables"].get("systems", []), systems, "systems")
    named = set(value["segmenters"]) - {"default"}
    _check_languages("segmenters", named, {**load_languages(), **languages})
    return Experiment(
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
        systems=systems,
        benchmarks=tuple(value["benchmarks"]),
        tables=value["tables"],
    )


def pair_name(first: str, second: str) -> str:
    """The OPUS name of a language pair: codes sorted as strings ("de-en", "en-fr")."""
    return "-".join(sorted((first, second)))


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
    pairs = tuple(pair_name("en", code) for code in codes if code != "en")
    if not pairs:
        raise EmsError(f"{key}.languages: found only en; name the other side of each pair")
    part = entry.get("part", "")
    _check_part(f"{key}.part", entry["name"], part, splits)
    return Corpus(
        name=entry["name"],
        version=entry["version"],
        source=entry.get("source", sources["opus"]),
        own="source" in entry,
        pairs=pairs,
        max_pairs=entry.get("max_pairs"),
        part=part,
    )


def _check_part(key: str, corpus: str, part: str, splits: dict[str, Split]) -> None:
    """Raise `EmsError` for a part that no split makes, and for a whole beside its own parts."""
    if part and corpus not in splits:
        raise EmsError(f"{key}: {part}, but splits does not say how {corpus} is divided")
    if part and part not in splits[corpus].parts:
        known = ", ".join(splits[corpus].parts)
        raise EmsError(f"{key}: found {part!r}; allowed values: {known} (splits.{corpus}.parts)")
    if not part and corpus in splits:
        raise EmsError(f"{key}: this key is missing; {corpus} is divided by splits.{corpus}")


def _check_distinct(corpora: tuple[Corpus, ...], validation: Corpus | None) -> None:
    every = [*corpora, *([validation] if validation else [])]
    names = [(item.label, item.version) for item in every]
    for name in names:
        if names.count(name) > 1:
            raise EmsError(f"corpora: {'/'.join(name)} is named twice (validation counts too)")
    sources = {(item.name, item.version): item.source for item in every}
    for item in every:
        if item.source != sources[item.name, item.version]:
            raise EmsError(f"corpora: the parts of {item.name} must have the same source")


def _check_held_out(corpora: list[Corpus], evalsets: dict[str, EvalSet]) -> None:
    """Raise `EmsError` when the part of NTREX that is the benchmark is trained or selected on."""
    held_out = evalsets.get("ntrex")
    for corpus in corpora if held_out else []:
        if (corpus.name, corpus.part) == (NTREX, held_out.part):
            raise EmsError(f"evalsets.ntrex.part: {corpus.label} is one of the corpora too")


def _check_system(key: str, system: dict[str, Any]) -> None:
    model, objectives = system["model"], system["objectives"]
    if "steps" not in system["train"]:
        raise EmsError("train.steps: this key is missing")
    if model["width"] % model["heads"]:
        raise EmsError(
            f"{key}: model.width {model['width']} is no multiple of model.heads {model['heads']}"
        )
    if not any(objectives[name]["weight"] for name in objectives):
        raise EmsError(f"{key}: every objective has weight 0; nothing would be learnt")


def _evalsets(
    value: dict[str, Any], languages: dict[str, Language], splits: dict[str, Split]
) -> dict[str, EvalSet]:
    entries = value["evalsets"]
    for key, names in (
        ("benchmarks", value["benchmarks"]),
        ("decontaminate.against", value["decontaminate"]["against"]),
    ):
        _check_named(key, names, entries, "evalsets")
    return {name: _evalset(name, entry, languages, splits) for name, entry in entries.items()}


def _evalset(
    name: str, entry: dict[str, Any], languages: dict[str, Language], splits: dict[str, Split]
) -> EvalSet:
    key = f"evalsets.{name}"
    part = entry.get("part", "")
    if part and name != "ntrex":
        raise EmsError(f"{key}.part: only of ntrex, the benchmark that is a corpus too")
    if name == "ntrex":
        _check_part(f"{key}.part", NTREX, part, splits)
    chosen = _codes(name, entry, languages)
    if not chosen:
        raise EmsError(f"{key}.languages: none of the languages is in the benchmark")
    return EvalSet(name, entry["version"], dict(chosen), part)


def _codes(
    name: str, entry: dict[str, Any], languages: dict[str, Language]
) -> list[tuple[str, str]]:
    """(code in the benchmark, language) of those chosen. `all` are the experiment's and the
    table's; of Tatoeba also the languages that neither knows, 112 in all.
    """
    every = entry["languages"] == "all"
    known = {**load_languages(), **languages} if every else languages
    own = {code: _code(name, language) for code, language in known.items()}
    own = {code: of_set for code, of_set in own.items() if of_set}
    chosen = [(own[c], c) for c in _chosen(f"evalsets.{name}", entry, list(own), own)]
    if name != "tatoeba" or not every:
        return chosen
    return chosen + [(code, UNSEEN) for code in load_tatoeba_codes() if code not in own.values()]


def _code(name: str, language: Language) -> str:
    """The code of a language in a benchmark; '' if it is not there, as English in translations."""
    if name in ("tatoeba", "ntrex") and language.iso1 == "en":
        return ""
    codes = {"tatoeba": language.tatoeba_v1, "ntrex": language.iso1}
    return codes.get(name, language.flores200)  # SIB-200 uses FLORES-200's


def _segmenters(named: dict[str, str], languages: dict[str, Language]) -> dict[str, str]:
    """The segmenter of each language; of one never seen it is the default, or the papers'."""
    return {
        UNSEEN: named.get("default", "moses"),
        **{
            code: named.get(code, named.get("default", language.segmenter))
            for code, language in languages.items()
        },
    }
