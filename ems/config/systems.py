"""The systems and the vocabularies of an experiment: what an entry means, for which languages.

A system has the languages of its vocabulary, or those of them that it names, in that order: their
number and their order are what its heads see. `each` makes one system per vocabulary out of an
entry, `ugt-fr`, `ugt-de`, ..., as the models of the Lightweight paper are one per language pair
(section 4.1).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ems.base.errors import EmsError
from ems.base.schema import Json, Settings, checked, merge, plain, with_fields
from ems.config.file import ExperimentFile, SystemEntry
from ems.config.model import EncoderSettings, NgramSettings
from ems.config.objectives import Objectives, check_objectives, objectives_model
from ems.config.text import VocabularySettings
from ems.config.train import TrainSettings, check_train

SHARED = "shared"  # the vocabulary of all languages, of the systems that name no other one
ENCODER = "encoder"  # the kind that the experiment trains itself
CHAR_NGRAM, FUSED = OF_NGRAMS = "char-ngram", "fused"
Entries = dict[str, Json]  # as they are written, by name
# the key that says where an encoder that is not trained here comes from, by kind
LOCATED = {"folder": "model", "sentence-transformers": "model", "command": "command"}


@dataclass(frozen=True)
class Vocabulary:
    """A subword vocabulary and the languages that it is made of and for, in their order."""

    languages: tuple[str, ...]
    settings: VocabularySettings


class Trained(Settings):
    """The three parts of a system that say how it is trained."""

    model: EncoderSettings
    objectives: Objectives
    train: TrainSettings


@cache
def trained_model() -> type[Trained]:
    """Return the model of these parts, with the objectives of the project."""
    return with_fields(Trained, "Trained", objectives=objectives_model())


@dataclass(frozen=True)
class SystemSettings:
    """A system: its encoder, what it is trained with, its vocabulary and languages.

    `place` is the model or command of an encoder that is not trained here, `content` the hash of
    its files where nothing else says which model it is; `of` is the system that a fused one embeds
    with.
    """

    kind: str = ENCODER
    vocabulary: str = SHARED
    languages: tuple[str, ...] = ()
    model: EncoderSettings | None = None
    objectives: Objectives | None = None
    train: TrainSettings | None = None
    place: str = ""
    content: str = ""
    of: str = ""
    ngrams: NgramSettings | None = None

    @property
    def trained(self) -> bool:
        """True if the experiment trains the encoder itself."""
        return self.kind == ENCODER

    @property
    def fitted(self) -> bool:
        """True if it has a model folder that is counted or chosen from text, without training."""
        return self.kind == FUSED or (self.kind == CHAR_NGRAM and self.ngrams.idf)

    def overridden(self, overrides: Json) -> "SystemSettings":
        """Return the system with other settings. Raises `EmsError` when they are not allowed."""
        parts = {key: plain(getattr(self, key)) for key in Trained.model_fields}
        return replace(self, **dict(checked(trained_model(), merge(parts, overrides))))

    def placed(self, key: str, vocabularies: dict[str, Vocabulary]) -> "SystemSettings":
        """Return the system with its languages. Raises `EmsError` if its vocabulary lacks one."""
        _check_there(f"{key}.vocabulary", [self.vocabulary], vocabularies)
        known = vocabularies[self.vocabulary].languages
        codes = _subset(f"{key}.languages", self.languages or known, known)
        return replace(self, languages=codes)

    def check(self, key: str, validated: bool) -> None:
        """Raise `EmsError` for settings that contradict one another, or the lack of validation."""
        ngrams = self.ngrams
        if ngrams and ngrams.least > ngrams.most:
            raise EmsError(
                f"{key}.ngrams.least: {ngrams.least} is more than {key}.ngrams.most: {ngrams.most}"
            )
        for name in ("weight", "power") if self.kind == CHAR_NGRAM else ():
            if getattr(ngrams, name) is not None:
                raise EmsError(f"{key}.ngrams.{name}: only of kind: fused; take it out")
        if not self.trained:
            return
        self.model.check(key)
        check_train(key, self.train, validated)
        check_objectives(key, self.objectives, self.model, self.train)


def build_systems(file: ExperimentFile, written: Entries) -> dict[str, SystemSettings]:
    """Return the systems of a file: its base plus the overrides of each entry as `written`."""
    base = {key: plain(getattr(file, key)) for key in Trained.model_fields}
    systems: dict[str, SystemSettings] = {}
    for name, entry in written.items():
        for own, overrides in _expanded(name, entry, file.vocabularies):
            if own in systems or (own != name and own in written):
                key = "iterations" if "iterations" in entry else "each"
                raise EmsError(f"systems.{name}.{key}: makes {own}, which is another system's name")
            systems[own] = _system(f"systems.{own}", base, overrides)
    for name, system in systems.items():
        if start := system.train.start_from:
            train = system.train.model_copy(update={"start_from": _member(start, system, systems)})
            systems[name] = replace(system, train=train)
    return {name: _fused(f"systems.{name}", system, systems) for name, system in systems.items()}


def _expanded(name: str, entry: Json, vocabularies: Collection[str]) -> Iterator[tuple[str, Json]]:
    """Yield the systems of an entry: one for each vocabulary of `each`, and its iterations."""
    count = entry.get("iterations")
    if count and entry.get("kind", ENCODER) != ENCODER:
        raise EmsError(f"systems.{name}.iterations: {name} is not trained here; leave it out")
    common = {key: value for key, value in entry.items() if key not in ("each", "iterations")}
    systems = {name: common}
    if "each" in entry:
        if {"vocabulary", "languages"} & set(common):
            raise EmsError(
                f"systems.{name}: `each` says which vocabularies there are, so take out "
                "`vocabulary` and `languages`"
            )
        each = entry["each"]
        each = each if isinstance(each, dict) else {key: {} for key in each}
        _check_there(f"systems.{name}.each", each, vocabularies)
        systems = {
            f"{name}-{key}": merge(common, {**own, "vocabulary": key}) for key, own in each.items()
        }
    for own, overrides in systems.items():
        if count is None:
            yield own, overrides
            continue
        for at in range(1, count + 1):
            start = {"train": {"start_from": f"{own}-{at - 1}"}} if at > 1 else {}
            yield f"{own}-{at}", merge(overrides, start)


def _member(name: str, system: SystemSettings, systems: Collection[str]) -> str:
    """Return the system that `name` means: of an entry with `each`, that of the same vocabulary."""
    own = f"{name}-{system.vocabulary}"
    return own if name not in systems and own in systems else name


def _fused(key: str, system: SystemSettings, systems: dict[str, SystemSettings]) -> SystemSettings:
    """Return a fused system with what it has of the trained one; another system as it is."""
    if system.kind != FUSED:
        return system
    name = _member(system.of, system, systems)
    if name not in systems or not systems[name].trained:
        known = ", ".join(other for other, of in systems.items() if of.trained) or "none"
        found = f"of kind {systems[name].kind}" if name in systems else "no system"
        raise EmsError(
            f"{key}.of: {name} is {found}; expected one that is trained here, of: {known}"
        )
    of = systems[name]
    if system.vocabulary not in (SHARED, of.vocabulary):
        raise EmsError(
            f"{key}: {name} has the vocabulary {of.vocabulary}, but this system "
            f"{system.vocabulary}; leave that out"
        )
    if of.languages and (missing := set(system.languages) - set(of.languages)):
        raise EmsError(f"{key}: {name} does not know {', '.join(sorted(missing))}; leave it out")
    shared = {part: getattr(of, part) for part in ("vocabulary", *Trained.model_fields)}
    return replace(system, of=name, languages=system.languages or of.languages, **shared)


def check_starts(systems: dict[str, SystemSettings]) -> None:
    """Raise `EmsError` for a `train.start_from` in a circle, or whose weights do not fit."""
    trained = {name: system for name, system in systems.items() if system.trained}
    starts = {name: of.train.start_from for name, of in trained.items() if of.train.start_from}
    for name, start in starts.items():
        if start not in trained or start == name:
            there = ", ".join(each for each in trained if each != name) or "none"
            raise EmsError(
                f"systems.{name}.train.start_from: {start} is no other system that is trained "
                f"here; there: {there}"
            )
        _check_fitting(f"systems.{name}.train.start_from", systems[name], systems[start])
        path = [name]
        while start := starts.get(path[-1]):
            if start in path:
                circle = " from ".join([*path, start])
                raise EmsError(
                    f"systems.{name}.train.start_from: a circle, {circle}; change one of them"
                )
            path.append(start)


def _check_fitting(key: str, system: SystemSettings, start: SystemSettings) -> None:
    name = system.train.start_from
    values = [("vocabulary", system.vocabulary, start.vocabulary)]
    sizes = ("layers", "width", "heads", "feed_forward", "max_tokens", "activation")
    for size in (*sizes, "positions", "table", "ngrams"):
        values.append((f"model.{size}", getattr(system.model, size), getattr(start.model, size)))
    for what, own, other in values:
        if own != other:
            raise EmsError(f"{key}: {name} has {what} {other}, but this system {own}; say the same")
    if missing := set(system.languages) - set(start.languages):
        raise EmsError(f"{key}: {name} does not know {', '.join(sorted(missing))}; leave it out")


def _system(key: str, base: Json, overrides: Json) -> SystemSettings:
    entry = checked(SystemEntry, overrides, key)
    located = LOCATED.get(entry.kind)
    _check_source(key, entry, located)
    parts = {part: overrides.get(part) for part in Trained.model_fields}
    own = {part: value for part, value in parts.items() if isinstance(value, dict)}  # no place
    return SystemSettings(
        kind=entry.kind,
        vocabulary=entry.vocabulary or SHARED,
        languages=tuple(entry.languages or ()),
        place=getattr(entry, located) if located else "",
        of=entry.of or "",
        ngrams=entry.ngrams if entry.kind in OF_NGRAMS else None,
        **dict(checked(trained_model(), merge(base, own))),
    )


def _check_there(key: str, names: Iterable[str], vocabularies: Collection[str]) -> None:
    for name in names:
        if name not in vocabularies:
            known = ", ".join(vocabularies) or "none"
            raise EmsError(f"{key}: {name} has no entry under vocabularies; there are: {known}")


def build_vocabularies(file: ExperimentFile, languages: Sequence[str]) -> dict[str, Vocabulary]:
    """Return the vocabulary of all languages, and those of `vocabularies`, by name."""
    _subset("vocabulary.characters", file.vocabulary.characters, languages)
    vocabularies = {SHARED: Vocabulary(tuple(languages), file.vocabulary)}
    for name, entry in file.vocabularies.items():
        if name == SHARED:
            raise EmsError(f"vocabularies.{SHARED}: that is `vocabulary` itself; rename it")
        codes = _subset(f"vocabularies.{name}.languages", entry.languages, languages)
        overrides = entry.model_dump(exclude_unset=True, exclude={"languages"})
        settings = VocabularySettings(**merge(plain(file.vocabulary), overrides))
        vocabularies[name] = Vocabulary(codes, settings)
    return vocabularies


def _subset(key: str, codes: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    for code in codes:
        if code not in known:
            raise EmsError(f"{key}: found {code!r}; the languages here are {', '.join(known)}")
    return tuple(codes)


def _check_source(key: str, entry: SystemEntry, located: str | None) -> None:
    for name in ("model", "command"):
        given = isinstance(getattr(entry, name), str)
        if name == located and not given:
            raise EmsError(f"{key}.{name}: expected text, as kind: {entry.kind} needs it")
        if given and name != located:
            raise EmsError(f"{key}.{name}: found text, but kind: {entry.kind} takes none")
    if (entry.kind == FUSED) != (entry.of is not None):
        if entry.kind == FUSED:
            raise EmsError(f"{key}.of: expected the name of a system, as kind: {FUSED} needs it")
        raise EmsError(f"{key}.of: found {entry.of!r}, but kind: {entry.kind} takes none")
    if "ngrams" in entry.model_fields_set and entry.kind not in OF_NGRAMS:
        raise EmsError(f"{key}.ngrams: kind: {entry.kind} has none; take them out")
    for field in ("{lines}", "{out}") if located == "command" else ():
        if field not in entry.command:
            raise EmsError(
                f"{key}.command: expected {field} in it, found none; {{lines}} is the file that it "
                "reads, {out} the .npy that it writes"
            )
