"""The settings that each stage reads, in one list, and their hash.

The hash goes into the rule's params and onto the command line. A job refuses to run if the file now
says something else.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError, mistake
from ems.base.files import EXPORTED, SUMS, sha256_file
from ems.base.provenance import digest
from ems.base.records import Json
from ems.base.schema import plain
from ems.config.experiment import Corpus, Experiment, pairs_of_part
from ems.config.plugins import benchmark as record_of
from ems.config.plugins import sets_of
from ems.config.systems import LOCATED, Trained
from ems.config.text import CleanSettings

DESCRIPTION = "model.json"  # has the SHA-256 of the model's other files, like SUMS in an export


def stage_settings(experiment: Experiment, stage: str, **wildcards: str) -> Json:
    """Return the settings that a job of `stage` reads; no other setting can change its output."""
    return {"stage": stage, **_STAGES[stage](experiment, **wildcards)}


def stage_hash(experiment: Experiment, stage: str, **wildcards: str) -> str:
    return digest(stage_settings(experiment, stage, **wildcards))


def _evalkeys(experiment: Experiment) -> Json:
    sets = {name: _evalset(experiment, name) for name in experiment.decontaminate.against}
    codes = {name: sorted(entry.pop("languages")) for name, entry in sets.items()}
    kept = experiment.clean.format_characters
    return {**plain(experiment.decontaminate), "evalsets": sets, "codes": codes, "format": kept}


def _evalset(experiment: Experiment, name: str) -> Json:
    """Return the settings that decide which sentences a set has: not its location or protocol."""
    evalset = experiment.evalsets[name]
    chosen = [key for key in ("dev", "documents") if getattr(evalset, key)]
    names = ("version", "languages", "part", *chosen)
    split = _split(experiment, record_of(name).corpus, evalset.part)
    return {"name": name, "split": split, **{key: getattr(evalset, key) for key in names}}


def _split(experiment: Experiment, corpus: str, part: str) -> Json:
    return plain(experiment.splits[corpus]) if part else {}


def _cleaning(experiment: Experiment, role: str, corpus: Corpus) -> Json:
    """Return the settings of cleaning that all pairs of a corpus share."""
    cleaning = experiment.cleaning(corpus)
    return {
        "role": role,
        "corpus": [corpus.label, corpus.version],
        "split": _split(experiment, corpus.name, corpus.part),
        **({"threshold": corpus.threshold} if corpus.mined else {}),
        **({"kind": corpus.kind} if corpus.documents else {}),
        "seed": experiment.seed,
        "clean": plain(cleaning),
        **filter_contents(cleaning),
        "decontaminate": plain(experiment.decontaminate),
    }


def _prepare_pair(experiment: Experiment, corpus: Corpus, pair: str) -> Json:
    files = corpus.files(pair)
    # for a pair with English, the name of the file says so already
    turned = [] if "en" in pair.split("-") else sorted(corpus.turned.intersection(files))
    return {
        "files": files,
        "max_pairs": corpus.cap(pair),
        **({"turned": turned} if turned else {}),
        "held_against": experiment.held_against(pair),
        "segmenters": [experiment.segmenters[code] for code in pair.split("-")],
    }


def _prepare(experiment: Experiment, label: str, version: str, part: str) -> Json:
    role, corpus = experiment.corpus(label, version)
    pairs = {pair: _prepare_pair(experiment, corpus, pair) for pair in pairs_of_part(corpus, part)}
    return {"common": _cleaning(experiment, role, corpus), "pairs": pairs}


def _multiway(experiment: Experiment) -> Json:
    joined = [[corpus.label, corpus.version, pair] for corpus, pair in experiment.joined()]
    return {**plain(experiment.multiway), "key": experiment.decontaminate.key, "joined": joined}


def _vocabulary(experiment: Experiment, vocabulary: str) -> Json:
    own = experiment.of_vocabulary(vocabulary)
    languages = list(own.languages)
    return {"vocabulary": plain(own.vocabulary), "seed": own.seed, "languages": languages}


def _train(experiment: Experiment, system: str) -> Json:
    own = experiment.of_system(system)
    settings = {key: plain(getattr(own.systems[system], key)) for key in Trained.model_fields}
    # these do not change the model: extra logs, and the name of a system (its settings count)
    for key in ("tensorboard", "start_from"):
        settings["train"].pop(key, None)
    return {
        "system": settings,
        **_start(experiment, system),
        "seed": experiment.seed,
        "languages": list(own.languages),
        "segmenters": own.segmenters,
        "format_characters": experiment.clean.format_characters,
    }


def _start(experiment: Experiment, system: str) -> Json:
    """Return the hash of the training that a system is initialised from."""
    start = experiment.systems[system].train.start_from
    return {"start": stage_hash(experiment, "train", system=start)} if start else {}


def _mine(experiment: Experiment, system: str) -> Json:
    settings = experiment.systems[system]
    train = ("corpus_share", "threads", "device")
    return {
        "mining": plain(settings.objectives.coherence.mining),
        "max_tokens": settings.model.max_tokens,
        "train": {key: getattr(settings.train, key) for key in train},
        **_start(experiment, system),
        "seed": experiment.seed,
        "languages": list(experiment.of_system(system).languages),
    }


def _fit(experiment: Experiment, system: str) -> Json:
    settings = experiment.systems[system]
    own: Json = {"ngrams": plain(settings.ngrams)}
    if settings.ngrams.idf:
        sampled = experiment.vocabularies[settings.vocabulary]
        drawn = {key: getattr(sampled.settings, key) for key in ("sample_lines", "temperature")}
        own |= {"text": drawn, "drawn_of": sorted(sampled.languages), "seed": experiment.seed}
    if settings.base_system:
        trained = stage_hash(experiment, "train", system=settings.base_system)
        own |= {"of": [settings.base_system, trained], "languages": list(settings.languages)}
    return own


def _bench(experiment: Experiment, system: str, benchmark: str) -> Json:
    settings = experiment.systems[system]
    own = _train(experiment, system) if settings.trained else {}
    own |= _fit(experiment, system) if settings.ngrams else {}
    if settings.kind in LOCATED:
        own = {LOCATED[settings.kind]: settings.place}
        own |= {"content": settings.content} if settings.content else {}
    narrowed = experiment.of_system(system)
    sets = {
        name: {**_evalset(experiment, name), "spoken": narrowed.spoken(name)}
        for name in sets_of(benchmark)
    }
    read: Json = {"kind": settings.kind, "system": own, "evalsets": sets}
    first = next(map(experiment.evalsets.get, sets), None)  # its protocol is the benchmark's
    if first and first.protocol:
        read["protocol"] = plain(first.protocol)
    if benchmark in experiment.probes:
        read |= {"probe": plain(experiment.probes[benchmark]), "seed": experiment.seed}
        if record_of(benchmark).family == "classification":  # its documents may be split
            read["documents"] = plain(experiment.documents)
    return read


def _tables(experiment: Experiment) -> Json:
    ordered = [
        [name, list(study.rows), list(study.columns)]  # a hash ignores the order of keys
        for name, study in (experiment.tables.studies or {}).items()
    ]
    return {
        "tables": plain(experiment.tables),
        **({"studies": ordered} if ordered else {}),
        "systems": experiment.shown,
        "ablated": experiment.ablated,
        "families": experiment.families,
        **({"sweep": [asdict(point) for point in experiment.sweep]} if experiment.sweep else {}),
    }


_STAGES = {
    "evalkeys": _evalkeys,
    "prepare": _prepare,
    "multiway": _multiway,
    "vocabulary": _vocabulary,
    "shards": lambda experiment: {},
    "mine": _mine,
    "train": _train,
    "fit": _fit,
    "bench": _bench,
    "tables": _tables,
}


def differences(old: Json, new: Json) -> list[str]:
    """Return "key: old -> new" for each changed setting."""
    before, after = _flat(old), _flat(new)
    return [
        f"{key}: {_shown(before.get(key))} -> {_shown(after.get(key))}"
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]


def _flat(settings: Json, prefix: str = "") -> Json:
    """Return key -> setting; the keys are as in the file of the experiment."""
    flat: Json = {}
    for key, value in settings.items():
        place = prefix if key in ("settings", "system") else f"{prefix}{key}."
        if isinstance(value, dict) and value:
            flat |= _flat(value, place)
        else:
            flat[place[:-1] or key] = value
    return flat


def _shown(value: Any) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def filter_contents(clean: CleanSettings) -> Json:
    """Return path -> SHA-256 of the files that filters read. Raises `EmsError` if one is absent."""
    paths = model_files("clean.similarity", clean.similarity.model) if clean.similarity else []
    for index, command in enumerate(clean.commands):
        paths.append(Path(command.filter))
        if not paths[-1].is_file():
            raise EmsError(f"clean.commands.{index}.filter: {paths[-1]}: no such file")
    return {"filters": {str(path): sha256_file(path) for path in paths}} if paths else {}


def model_files(key: str, model: str) -> list[Path]:
    """Return the files that identify the model in a folder. Raises `EmsError` if it has none."""
    for names in ((DESCRIPTION,), (EXPORTED, SUMS)):
        paths = [Path(model, name) for name in names]
        if all(path.is_file() for path in paths):
            return paths
    found = "neither file" if Path(model).is_dir() else "no such folder"
    words = {"found": found, "description": DESCRIPTION, "exported": EXPORTED}
    raise mistake("no model folder", key=key, model=model, **words)
