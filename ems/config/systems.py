"""Build the systems and vocabularies of an experiment from their entries.

A system has the languages of its vocabulary, or some of them, in the order that it names: their
number and order determine its heads. `each` makes one system per vocabulary, `ugt-fr`, `ugt-de`,
..., as the Lightweight paper has one model per language pair (section 4.1).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ems.base.errors import EmsError, check, mistake
from ems.base.records import Json
from ems.base.schema import Settings, checked, merge, plain, with_fields
from ems.config.file import ExperimentFile, SystemEntry
from ems.config.model import EncoderSettings, NgramSettings
from ems.config.objectives import Objectives, check_objectives, objectives_model
from ems.config.text import VocabularySettings
from ems.config.train import TrainSettings, check_train

SHARED = "shared"  # the vocabulary of all languages, the default of a system
ENCODER = "encoder"  # the kind of system that the experiment trains
CHAR_NGRAM, FUSED = WITH_NGRAMS = "char-ngram", "fused"
Entries = dict[str, Json]  # name -> entry, as in the YAML
# kind of an external encoder -> the key that gives its location
LOCATED = {"folder": "model", "sentence-transformers": "model", "command": "command"}


@dataclass(frozen=True)
class Vocabulary:
    """A subword vocabulary and the languages that it is made from and for, in order."""

    languages: tuple[str, ...]
    settings: VocabularySettings


class Trained(Settings):
    """The three sections of a system that define its training."""

    model: EncoderSettings
    objectives: Objectives
    train: TrainSettings


@cache
def trained_model() -> type[Trained]:
    return with_fields(Trained, "Trained", objectives=objectives_model())


@dataclass(frozen=True)
class SystemSettings:
    """A system. `place` is the model or command of an external encoder, `content` the hash of its
    files if nothing else identifies it; a fused system uses the embedding of `base_system`.
    """

    kind: str = ENCODER
    vocabulary: str = SHARED
    languages: tuple[str, ...] = ()
    model: EncoderSettings | None = None
    objectives: Objectives | None = None
    train: TrainSettings | None = None
    place: str = ""
    content: str = ""
    base_system: str = ""
    ngrams: NgramSettings | None = None

    @property
    def trained(self) -> bool:
        return self.kind == ENCODER

    @property
    def fitted(self) -> bool:
        """True if the model folder is counted or chosen from text, without training."""
        return self.kind == FUSED or (self.kind == CHAR_NGRAM and self.ngrams.idf)

    def overridden(self, overrides: Json) -> "SystemSettings":
        """Return the system with `overrides` applied. Raises `EmsError` if they are not allowed."""
        parts = {key: plain(getattr(self, key)) for key in Trained.model_fields}
        return replace(self, **dict(checked(trained_model(), merge(parts, overrides))))

    def placed(self, key: str, vocabularies: dict[str, Vocabulary]) -> "SystemSettings":
        """Return the system with its languages. Raises `EmsError` if its vocabulary lacks one."""
        _check_vocabularies(f"{key}.vocabulary", [self.vocabulary], vocabularies)
        known = vocabularies[self.vocabulary].languages
        codes = _subset(f"{key}.languages", self.languages or known, known)
        return replace(self, languages=codes)

    def check(self, key: str, validated: bool) -> None:
        """Raise `EmsError` if settings contradict each other or need a validation corpus."""
        ngrams = self.ngrams
        if ngrams and ngrams.least > ngrams.most:
            raise mistake("lengths of n-grams", key=key, ngrams=ngrams)
        for name in ("weight", "power") if self.kind == CHAR_NGRAM else ():
            if getattr(ngrams, name) is not None:
                raise EmsError(f"{key}.ngrams.{name}: only for kind: fused; remove it")
        if not self.trained:
            return
        self.model.check(key)
        check_train(key, self.train, validated)
        check_objectives(key, self.objectives, self.model, self.train)


def build_systems(file: ExperimentFile, written: Entries) -> dict[str, SystemSettings]:
    """Return the systems of a file: its base plus the overrides of each entry in `written`."""
    base = {key: plain(getattr(file, key)) for key in Trained.model_fields}
    systems: dict[str, SystemSettings] = {}
    for name, entry in written.items():
        for member, overrides in _expanded(name, entry, file.vocabularies):
            if member in systems or (member != name and member in written):
                key = "iterations" if "iterations" in entry else "each"
                raise EmsError(f"systems.{name}.{key}: makes {member}, another system's name")
            systems[member] = _system(f"systems.{member}", base, overrides)
    for name, system in systems.items():
        if start := system.train.start_from:
            train = system.train.model_copy(update={"start_from": _member(start, system, systems)})
            systems[name] = replace(system, train=train)
    return {name: _fused(f"systems.{name}", system, systems) for name, system in systems.items()}


def _expanded(name: str, entry: Json, vocabularies: Collection[str]) -> Iterator[tuple[str, Json]]:
    count = entry.get("iterations")
    if count and entry.get("kind", ENCODER) != ENCODER:
        raise EmsError(f"systems.{name}.iterations: {name} is not trained; remove it")
    common = {key: value for key, value in entry.items() if key not in ("each", "iterations")}
    systems = {name: common}
    if "each" in entry:
        if {"vocabulary", "languages"} & set(common):
            raise mistake("each with vocabulary", name=name)
        each = entry["each"]
        each = each if isinstance(each, dict) else {key: {} for key in each}
        _check_vocabularies(f"systems.{name}.each", each, vocabularies)
        systems = {
            f"{name}-{key}": merge(common, {**own, "vocabulary": key}) for key, own in each.items()
        }
    for member, overrides in systems.items():
        if count is None:
            yield member, overrides
            continue
        for number in range(1, count + 1):
            start = {"train": {"start_from": f"{member}-{number - 1}"}} if number > 1 else {}
            yield f"{member}-{number}", merge(overrides, start)


def _member(name: str, system: SystemSettings, systems: Collection[str]) -> str:
    """Return the system that `name` means: of an entry with `each`, by the same vocabulary."""
    member = f"{name}-{system.vocabulary}"
    return member if name not in systems and member in systems else name


def _fused(key: str, system: SystemSettings, systems: dict[str, SystemSettings]) -> SystemSettings:
    """Fill a fused system from the trained system that it uses; return other systems unchanged."""
    if system.kind != FUSED:
        return system
    name = _member(system.base_system, system, systems)
    if name not in systems or not systems[name].trained:
        allowed = [other for other, each in systems.items() if each.trained]
        found = f"of kind {systems[name].kind}" if name in systems else "no system"
        raise mistake("of no trained system", key=key, name=name, found=found, allowed=allowed)
    base = systems[name]
    if system.vocabulary not in (SHARED, base.vocabulary):
        raise mistake("two vocabularies", key=key, name=name, base=base, system=system)
    if base.languages and (missing := set(system.languages) - set(base.languages)):
        raise mistake("languages of the base", key=key, name=name, missing=sorted(missing))
    shared = {part: getattr(base, part) for part in ("vocabulary", *Trained.model_fields)}
    languages = system.languages or base.languages
    return replace(system, base_system=name, languages=languages, **shared)


def check_starts(systems: dict[str, SystemSettings]) -> None:
    """Raise `EmsError` for a `train.start_from` in a circle, or with weights that do not fit."""
    trained = {name: system for name, system in systems.items() if system.trained}
    starts = {n: each.train.start_from for n, each in trained.items() if each.train.start_from}
    for name, start in starts.items():
        if start not in trained or start == name:
            allowed = [other for other in trained if other != name]
            raise mistake("start of no system", name=name, start=start, allowed=allowed)
        _check_fitting(f"systems.{name}.train.start_from", systems[name], systems[start])
        path = [name]
        while start := starts.get(path[-1]):
            if start in path:
                raise mistake("circle of starts", name=name, circle=" from ".join([*path, start]))
            path.append(start)


def _check_fitting(key: str, system: SystemSettings, start: SystemSettings) -> None:
    name = system.train.start_from
    values = [("vocabulary", system.vocabulary, start.vocabulary)]
    sizes = ("layers", "width", "heads", "feed_forward", "max_tokens", "activation")
    for size in (*sizes, "positions", "table", "ngrams"):
        values.append((f"model.{size}", getattr(system.model, size), getattr(start.model, size)))
    for setting, own, other in values:
        if own != other:
            words = {"setting": setting, "other": other, "own": own}
            raise mistake("start with other sizes", key=key, name=name, **words)
    if missing := set(system.languages) - set(start.languages):
        raise mistake("languages of the base", key=key, name=name, missing=sorted(missing))


def _system(key: str, base: Json, overrides: Json) -> SystemSettings:
    entry = checked(SystemEntry, overrides, key)
    located = LOCATED.get(entry.kind)
    _check_source(key, entry, located)
    parts = {part: overrides.get(part) for part in Trained.model_fields}
    sections = {part: value for part, value in parts.items() if isinstance(value, dict)}
    return SystemSettings(
        kind=entry.kind,
        vocabulary=entry.vocabulary or SHARED,
        languages=tuple(entry.languages or ()),
        place=getattr(entry, located) if located else "",
        base_system=entry.of or "",
        ngrams=entry.ngrams if entry.kind in WITH_NGRAMS else None,
        **dict(checked(trained_model(), merge(base, sections))),
    )


def _check_vocabularies(key: str, names: Iterable[str], vocabularies: Collection[str]) -> None:
    for name in names:
        if name not in vocabularies:
            raise mistake("no such vocabulary", key=key, name=name, allowed=list(vocabularies))


def build_vocabularies(file: ExperimentFile, languages: Sequence[str]) -> dict[str, Vocabulary]:
    _subset("vocabulary.characters", file.vocabulary.characters, languages)
    vocabularies = {SHARED: Vocabulary(tuple(languages), file.vocabulary)}
    for name, entry in file.vocabularies.items():
        if name == SHARED:
            raise EmsError(f"vocabularies.{SHARED}: this name means `vocabulary`; rename it")
        codes = _subset(f"vocabularies.{name}.languages", entry.languages, languages)
        overrides = entry.model_dump(exclude_unset=True, exclude={"languages"})
        settings = VocabularySettings(**merge(plain(file.vocabulary), overrides))
        vocabularies[name] = Vocabulary(codes, settings)
    return vocabularies


def _subset(key: str, codes: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    for code in codes:
        if code not in allowed:
            raise EmsError(f"{key}: found {code!r}; the languages here are {', '.join(allowed)}")
    return tuple(codes)


def _check_source(key: str, entry: SystemEntry, located: str | None) -> None:
    for name in ("model", "command"):
        is_text = isinstance(getattr(entry, name), str)
        if name == located and not is_text:
            raise EmsError(f"{key}.{name}: expected text, as kind: {entry.kind} needs it")
        if is_text and name != located:
            raise EmsError(f"{key}.{name}: found text, but kind: {entry.kind} takes none")
    fused, ngrams = entry.kind == FUSED, "ngrams" in entry.model_fields_set
    mistakes = {
        "fused of nothing": fused and entry.of is None,
        "of without fused": entry.of is not None and not fused,
        "n-grams of no use": ngrams and entry.kind not in WITH_NGRAMS,
    }
    check(mistakes, key=key, entry=entry)
    for field in ("{lines}", "{out}") if located == "command" else ():
        if field not in entry.command:
            raise mistake("command without a file", key=key, field=field)
