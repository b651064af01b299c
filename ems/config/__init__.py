"""The typed view of an experiment: configs/<name>.yaml and the site settings of config.yaml.

Notable choices:
- an experiment file is complete: nothing of another one can leak in, because each process reads
  just this one file, by name (Snakemake's own config holds only `experiment` and the site's
  settings);
- a system is the experiment's base plus overrides, merged here once;
- `stage_settings` is the one list of which settings a stage reads; its hash goes into the rule's
  params and onto the command line, and the job refuses to run when the file says something else
  now.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.config.provenance import digest
from ems.config.schema import check, load_yaml, merge, with_defaults
from ems.errors import EmsError
from ems.languages import Language, load_languages

RESERVED = {"tables", "figures"}  # folders of results/ that hold the selected experiment's
EMBEDDED = "embedded"  # the source that means: the demo data that ems generates itself


@dataclass(frozen=True)
class Corpus:
    """One corpus as an experiment uses it. `pairs` are OPUS names: sides sorted as strings."""

    name: str
    version: str
    source: str
    own: bool  # the user's: it gave its own source, so the catalogue need not know it
    pairs: tuple[str, ...]
    max_pairs: int | None


@dataclass(frozen=True)
class Experiment:
    """All settings of one experiment. The mappings are those of schemas/experiment.schema.yaml."""

    name: str
    seed: int
    languages: dict[str, Language]
    sources: dict[str, str]
    corpora: tuple[Corpus, ...]
    validation: Corpus | None
    evalsets: dict[str, dict[str, Any]]
    decontaminate: dict[str, Any]
    segmenters: dict[str, str]
    vocabulary: dict[str, Any]
    systems: dict[str, dict[str, Any]]
    benchmarks: tuple[str, ...]
    tables: dict[str, Any]

    def all_corpora(self) -> list[tuple[str, Corpus]]:
        """(role, corpus) of every corpus: those trained on, then the validation corpus."""
        validation = [("validation", self.validation)] if self.validation else []
        return [("train", corpus) for corpus in self.corpora] + validation

    def corpus(self, name: str, version: str) -> tuple[str, Corpus]:
        """The (role, corpus) of that name and version."""
        for role, corpus in self.all_corpora():
            if (corpus.name, corpus.version) == (name, version):
                return role, corpus
        raise EmsError(f"experiment {self.name} has no corpus {name}/{version}")


def pair_name(first: str, second: str) -> str:
    """The OPUS name of a language pair: codes sorted as strings ("de-en", "en-fr")."""
    return "-".join(sorted((first, second)))


def load_site(path: Path, schemas: Path, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """config.yaml with `overrides` (from `--config`) and the defaults filled in."""
    schema = load_yaml(schemas / "site.schema.yaml")
    value = merge(load_yaml(path), overrides or {})
    check(value, schema, path)
    return with_defaults(value, schema, {})


def load_experiment(
    name: str,
    site: dict[str, Any],
    configs: Path = Path("configs"),
    schemas: Path = Path("schemas"),
) -> Experiment:
    """Read and check configs/`name`.yaml. Raises `EmsError`, one line that names the key."""
    path = configs / f"{name}.yaml"
    if name in RESERVED:
        raise EmsError(f"experiment: {name} is a folder of results/; give {path} another name")
    if not path.is_file():
        known = ", ".join(sorted(item.stem for item in configs.glob("*.yaml"))) or "none"
        raise EmsError(f"experiment: {path} does not exist; the experiments here: {known}")
    schema = load_yaml(schemas / "experiment.schema.yaml")
    value = load_yaml(path)
    check(value, schema, path)
    value = with_defaults(value, schema, schema["$defs"])
    systems = {key: _system(value, overrides) for key, overrides in value["systems"].items()}
    try:
        return _build(name, value, site, systems)
    except EmsError as error:
        raise EmsError(f"{path}: {error}") from None


def _system(value: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    base = {key: value[key] for key in ("model", "objectives", "train")}
    return merge({"kind": "encoder", **base}, overrides)


def _build(
    name: str, value: dict[str, Any], site: dict[str, Any], systems: dict[str, dict[str, Any]]
) -> Experiment:
    languages = _languages(value["languages"])
    sources = {**site["sources"], **value["sources"]}
    corpora = tuple(
        _corpus(f"corpora.{at}", entry, languages, sources)
        for at, entry in enumerate(value["corpora"])
    )
    validation = value["validation"] and _corpus(
        "validation", value["validation"], languages, sources
    )
    _check_distinct(corpora, validation)
    for key, system in systems.items():
        _check_system(f"systems.{key}", system)
    named = set(value["segmenters"]) - {"default"}
    _check_languages("segmenters", named, {**load_languages(), **languages})
    return Experiment(
        name=name,
        seed=value["seed"],
        languages=languages,
        sources=sources,
        corpora=corpora,
        validation=validation,
        evalsets=_evalsets(value["evalsets"], value, languages),
        decontaminate=value["decontaminate"],
        segmenters=_segmenters(value["segmenters"], languages),
        vocabulary=value["vocabulary"],
        systems=systems,
        benchmarks=tuple(value["benchmarks"]),
        tables=value["tables"],
    )


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
    return {code: _own_language(own[code]) if code in own else known[code] for code in codes}


def _own_language(entry: dict[str, str]) -> Language:
    return Language(entry["code"], entry.get("tatoeba_v1", ""), script=entry.get("script", ""))


def _check_languages(key: str, codes: Any, known: dict[str, Language]) -> None:
    for code in sorted(codes):
        if code not in known:
            raise EmsError(
                f"{key}: unknown language {code!r}; allowed: {', '.join(known)} "
                "(a language of your own is an entry `{code: xx, tatoeba_v1: xxx}`)"
            )


def _corpus(
    key: str, entry: dict[str, Any], languages: dict[str, Language], sources: dict[str, str]
) -> Corpus:
    codes = entry.get("languages") or [code for code in languages if code != "en"]
    _check_languages(f"{key}.languages", codes, languages)
    pairs = tuple(pair_name("en", code) for code in codes if code != "en")
    if not pairs:
        raise EmsError(f"{key}.languages: found only en; name the other side of each pair")
    source = entry.get("source", sources["opus"])
    return Corpus(
        entry["name"], entry["version"], source, "source" in entry, pairs, entry.get("max_pairs")
    )


def _check_distinct(corpora: tuple[Corpus, ...], validation: Corpus | None) -> None:
    names = [
        (item.name, item.version) for item in [*corpora, *([validation] if validation else [])]
    ]
    for name in names:
        if names.count(name) > 1:
            raise EmsError(f"corpora: {'/'.join(name)} is named twice (validation counts too)")


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
    evalsets: dict[str, Any], value: dict[str, Any], languages: dict[str, Language]
) -> dict[str, dict[str, Any]]:
    for key, names in (
        ("benchmarks", value["benchmarks"]),
        ("decontaminate.against", value["decontaminate"]["against"]),
    ):
        for name in names:
            if name not in evalsets:
                raise EmsError(f"{key}: {name} has no entry under evalsets")
    tatoeba = evalsets["tatoeba"]
    having = [code for code, language in languages.items() if language.tatoeba_v1 and code != "en"]
    chosen = tatoeba.get("languages", having)
    _check_languages("evalsets.tatoeba.languages", chosen, {c: languages[c] for c in having})
    if not chosen:
        raise EmsError("evalsets.tatoeba.languages: none of the languages is in the benchmark")
    return {"tatoeba": {"version": tatoeba["version"], "languages": list(chosen)}}


def _segmenters(named: dict[str, str], languages: dict[str, Language]) -> dict[str, str]:
    return {
        code: named.get(code, named.get("default", language.segmenter))
        for code, language in languages.items()
    }


def stage_settings(experiment: Experiment, stage: str, **wildcards: str) -> dict[str, Any]:
    """The settings that one job of `stage` reads; what is not in here cannot change its output."""
    return {"stage": stage, **_STAGES[stage](experiment, **wildcards)}


def stage_hash(experiment: Experiment, stage: str, **wildcards: str) -> str:
    """Hash of `stage_settings`."""
    return digest(stage_settings(experiment, stage, **wildcards))


def _evalkeys(experiment: Experiment) -> dict[str, Any]:
    against = experiment.decontaminate["against"]
    return {**experiment.decontaminate, "evalsets": {k: _evalset(experiment, k) for k in against}}


def _evalset(experiment: Experiment, name: str) -> dict[str, Any]:
    settings = experiment.evalsets[name]
    files = [experiment.languages[code].tatoeba_v1 for code in settings["languages"]]
    return {**settings, "files": files}


def _clean(experiment: Experiment, name: str, version: str, pair: str) -> dict[str, Any]:
    role, corpus = experiment.corpus(name, version)
    return {
        "role": role,
        "corpus": [name, version, pair],
        "max_pairs": corpus.max_pairs,
        "seed": experiment.seed,
        "decontaminate": experiment.decontaminate,
    }


def _segment(experiment: Experiment, pair: str) -> dict[str, Any]:
    return {"segmenters": [experiment.segmenters[code] for code in pair.split("-")]}


def _vocabulary(experiment: Experiment) -> dict[str, Any]:
    languages = list(experiment.languages)
    return {"vocabulary": experiment.vocabulary, "seed": experiment.seed, "languages": languages}


def _train(experiment: Experiment, system: str) -> dict[str, Any]:
    return {
        "system": {k: v for k, v in experiment.systems[system].items() if k != "kind"},
        "seed": experiment.seed,
        "languages": list(experiment.languages),
        "segmenters": experiment.segmenters,
    }


def _bench(experiment: Experiment, system: str, benchmark: str) -> dict[str, Any]:
    own = _train(experiment, system) if experiment.systems[system]["kind"] == "encoder" else {}
    kind = experiment.systems[system]["kind"]
    return {"kind": kind, "system": own, "evalset": _evalset(experiment, benchmark)}


def _tables(experiment: Experiment) -> dict[str, Any]:
    return {"tables": experiment.tables, "systems": list(experiment.systems)}


_STAGES = {
    "evalkeys": _evalkeys,
    "clean": _clean,
    "segment": _segment,
    "vocabulary": _vocabulary,
    "shards": lambda experiment: {},
    "train": _train,
    "bench": _bench,
    "tables": _tables,
}
