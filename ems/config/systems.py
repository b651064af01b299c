"""The systems and the vocabularies of an experiment: what an entry means, for which languages.

Notable choices:
- a vocabulary of `vocabularies` is the base `vocabulary` plus overrides, as a system is the base
  plus overrides; the base itself is that of all languages, SHARED, and is made only if a system
  uses it;
- a system has the languages of its vocabulary, or those of them that it names, in that order: their
  number and their order are what its heads see;
- `each` makes one system per vocabulary out of an entry, `ugt-fr`, `ugt-de`, ..., as the models of
  the Lightweight paper are one per language pair (section 4.1).
"""

from collections.abc import Sequence
from typing import Any

from ems.config.benchmarks import check_languages
from ems.config.experiment import SHARED, Experiment, Vocabulary
from ems.config.schema import merge
from ems.errors import EmsError

Entries = dict[str, dict[str, Any]]
# what a system says of an encoder that is not trained here, by kind
LOCATED = {"folder": "model", "sentence-transformers": "model", "command": "command"}


def expand(entries: Entries, vocabularies: Entries) -> Entries:
    """The entries of `systems` with one entry per vocabulary in place of each one with `each`.

    Raises `EmsError` for a vocabulary that is not there and for a name that is there twice.
    """
    expanded: Entries = {}
    for name, entry in entries.items():
        for own, overrides in _each(name, entry, vocabularies).items():
            if own in expanded or (own != name and own in entries):
                raise EmsError(f"systems.{name}.each: makes {own}, which is another system's name")
            expanded[own] = overrides
    return expanded


def families(entries: Entries) -> dict[str, tuple[str, ...]]:
    """The names of the systems that each entry with `each` stands for."""
    return {
        name: tuple(_member(name, vocabulary) for vocabulary in entry["each"])
        for name, entry in entries.items()
        if "each" in entry
    }


def _member(name: str, vocabulary: str) -> str:
    return f"{name}-{vocabulary}"


def _each(name: str, entry: dict[str, Any], vocabularies: Entries) -> Entries:
    if "each" not in entry:
        return {name: entry}
    common = {key: value for key, value in entry.items() if key != "each"}
    if {"vocabulary", "languages"} & set(common):
        raise EmsError(
            f"systems.{name}: `each` says which vocabularies there are, so take out `vocabulary` "
            "and `languages`"
        )
    each = entry["each"]
    overrides = each if isinstance(each, dict) else {key: {} for key in each}
    _check_there(f"systems.{name}.each", overrides, vocabularies)
    return {
        _member(name, key): merge(common, {**own, "vocabulary": key})
        for key, own in overrides.items()
    }


def _check_there(key: str, names: Any, vocabularies: Entries) -> None:
    for name in names:
        if name not in vocabularies:
            known = ", ".join(vocabularies) or "none"
            raise EmsError(f"{key}: {name} has no entry under vocabularies; there are: {known}")


def build_vocabularies(
    base: dict[str, Any], entries: Entries, languages: Sequence[str]
) -> dict[str, Vocabulary]:
    """The vocabulary of all languages, and those of `vocabularies`, by name.

    Raises `EmsError` for languages that the experiment does not have.
    """
    found = {SHARED: Vocabulary(tuple(languages), base)}
    for name, entry in entries.items():
        if name == SHARED:
            raise EmsError(f"vocabularies.{SHARED}: that is `vocabulary` itself; rename it")
        overrides = {key: value for key, value in entry.items() if key != "languages"}
        codes = _subset(f"vocabularies.{name}.languages", entry["languages"], languages)
        found[name] = Vocabulary(codes, merge(base, overrides))
    return found


def place(key: str, system: dict[str, Any], vocabularies: dict[str, Vocabulary]) -> dict[str, Any]:
    """The system with the name of its vocabulary and with its languages."""
    name = system.get("vocabulary", SHARED)
    _check_there(f"{key}.vocabulary", [name], vocabularies)
    known = vocabularies[name].languages
    codes = _subset(f"{key}.languages", system.get("languages", known), known)
    return {**system, "vocabulary": name, "languages": list(codes)}


def _subset(key: str, codes: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    for code in codes:
        if code not in known:
            raise EmsError(f"{key}: found {code!r}; the languages here are {', '.join(known)}")
    if "en" not in codes:
        raise EmsError(f"{key}: en is missing; every pair has English on one side")
    return tuple(codes)


def check_source(key: str, system: dict[str, Any]) -> None:
    """Raise `EmsError` unless a system says where its encoder comes from, as its kind needs it."""
    wanted = LOCATED.get(system["kind"])
    for name in ("model", "command"):
        found = isinstance(system.get(name), str)
        if name == wanted and not found:
            raise EmsError(f"{key}.{name}: expected text, as kind: {system['kind']} needs it")
        if found and name != wanted:
            raise EmsError(f"{key}.{name}: found text, but kind: {system['kind']} takes none")
    for field in ("{lines}", "{out}") if wanted == "command" else ():
        if field not in system["command"]:
            raise EmsError(
                f"{key}.command: expected {field} in it, found none; {{lines}} is the file that it "
                "reads, {out} the .npy that it writes"
            )


def check_systems(experiment: Experiment) -> None:
    """Raise `EmsError` for a system without a pair to train on, or without one to be scored on."""
    pairs = {pair for corpus in experiment.corpora for pair in corpus.pairs}
    for name, system in experiment.systems.items():
        own, codes = experiment.of_system(name), set(system["languages"])
        if not any(set(pair.split("-")) <= codes for pair in pairs):
            raise EmsError(
                f"systems.{name}: no corpus has a pair of its languages, {', '.join(own.languages)}"
            )
        check_languages(name, own)
