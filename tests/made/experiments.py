"""The smallest valid experiment, and a folder of settings to change and load."""

import copy
import json
import math
from functools import cache
from operator import itemgetter

import pytest
import yaml
from conftest import ROOT

from ems.base.errors import EmsError
from ems.base.provenance import digest
from ems.base.schema import plain
from ems.config.load import load_experiment, load_site
from ems.config.stages import stage_hash, stage_settings
from ems.workflow.plan import plan

GONE = object()


def edited(value, path, new):
    """A copy of `value` with the key at the dotted `path` set to `new`, or taken out."""
    value = copy.deepcopy(value)
    *front, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    at = value
    for key in front:
        at = at[key] if isinstance(at, list) else at.setdefault(key, {})
    if new is GONE:
        del at[last]
    else:
        at[last] = new
    return value


BASES: dict[str, dict] = {}  # name -> settings, each over an earlier one
for name, own in yaml.safe_load((ROOT / "tests/made/experiments.yaml").read_text()).items():
    BASES[name] = BASES.get(own.pop("over", ""), {}) | own
MINIMAL = BASES.pop("minimal")
REAL, DIVIDED, NARROWED, SWEPT = itemgetter("real", "divided", "narrowed", "swept")(BASES)
PAIRS, OPUS, BY_SENTENCE = itemgetter("pairs", "opus", "sentences")(BASES)
DOCUMENTED, SETS = itemgetter("documents", "sets")(BASES)
AXES = SWEPT["sweep"]["axes"]
TRAINING_FREE = {"kind": "char-ngram", "ngrams": {"idf": False}}  # counts no text
SITE = {"experiment": "mine", "data": "data", "sources": {"opus": "o", "tatoeba": "t"}}
SCHEMAS = {  # of config.yaml (`site`) and of a file in configs/ (`experiment`)
    path.name.partition(".")[0]: json.loads(path.read_text(encoding="utf-8"))
    for path in (ROOT / "schemas").glob("*.schema.json")
}
SHIPPED = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))


def hashes(experiment):
    by_stage = {stage: stage_hash(experiment, stage) for stage in ("evalkeys", "shards", "tables")}
    if experiment.multiway.through:
        by_stage["multiway"] = stage_hash(experiment, "multiway")
    for name in experiment.vocabularies:
        by_stage[f"vocabulary {name}"] = stage_hash(experiment, "vocabulary", vocabulary=name)
    for _, corpus in experiment.all_corpora():
        names = {"label": corpus.label, "version": corpus.version}
        for pair in corpus.pairs:
            place = f"{corpus.label} {pair}"
            settings = stage_settings(experiment, "prepare", part=pair, **names)
            for stage, own in (("clean", cleaning(settings)), ("segment", segmenting(settings))):
                by_stage[f"{stage} {place}"] = digest({"stage": stage, **own})
    for name, system in experiment.systems.items():
        if system.trained:
            by_stage[f"train {name}"] = stage_hash(experiment, "train", system=name)
        for benchmark in experiment.benchmarks:
            names = {"system": name, "benchmark": benchmark}
            by_stage[f"bench {name} {benchmark}"] = stage_hash(experiment, "bench", **names)
    return by_stage


def cleaning(prepare):
    """What cleaning reads of the settings that prepare one pair."""
    [(pair, own)], common = prepare["pairs"].items(), copy.deepcopy(prepare["common"])
    common["corpus"].append(pair)
    common["decontaminate"]["held_against"] = own["held_against"]
    rest = ("held_against", "segmenters")
    return common | {key: value for key, value in own.items() if key not in rest}


def segmenting(prepare):
    [own] = prepare["pairs"].values()
    return {"segmenters": own["segmenters"]}


def changed_jobs(settings, before, after):
    """The jobs of the experiment `before` that `after` has with another hash or lacks."""
    old, new = (hashes(settings.load(value)) for value in (before, after))
    return {name for name in old if new.get(name) != old[name]}


def one_line(call, *arguments, **options):
    with pytest.raises(EmsError) as error:
        call(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@cache
def shipped(name, root=ROOT):
    site = load_site(root / "config.yaml", {"experiment": name})
    return load_experiment(name, site, root / "configs")


def leaves(value, front=""):
    """Dotted key -> value of nested settings."""
    if not isinstance(value, dict):
        return {front.rstrip("."): value}
    return {k: v for key, part in value.items() for k, v in leaves(part, f"{front}{key}.").items()}


def differing(one, other):
    """The dotted keys in which two settings differ."""
    one, other = leaves(plain(one)), leaves(plain(other))
    return {key for key in {*one, *other} if one.get(key) != other.get(key)}


def parts_of(schema, path=(), definitions=None):
    """(path, part) of every setting of a schema; `[]` and `x` stand for items and names."""
    definitions = definitions or schema.get("$defs", {})
    if "$ref" in schema:
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **schema}
    yield path, schema
    inner = [((*path, key), part) for key, part in schema.get("properties", {}).items()]
    inner += [(path, part) for part in schema.get("oneOf", ())]
    for key, name in (("items", "[]"), ("additionalProperties", "x")):
        if isinstance(schema.get(key), dict):
            inner.append(((*path, name), schema[key]))
    for at, part in inner:
        yield from parts_of(part, at, definitions)


def ends(part):
    low = part.get("minimum", math.nextafter(part.get("exclusiveMinimum", 0), math.inf))
    return low, part.get("maximum", math.nextafter(part.get("exclusiveMaximum", 1), 0))


def changed(value, changes):
    """A copy of `value` with `changes` laid over it, mapping by mapping."""
    value = copy.deepcopy(value)
    for key, new in changes.items():
        both = isinstance(new, dict) and isinstance(value.get(key), dict)
        value[key] = changed(value[key], new) if both else copy.deepcopy(new)
    return value


class Settings:
    """A folder with a config.yaml and the experiment `mine`: `base`, or an edit of it."""

    def __init__(self, root, base=MINIMAL):
        self.root, self.base = root, base
        (root / "configs").mkdir(parents=True, exist_ok=True)
        self.write(base)
        self.site(SITE)

    def write(self, value, name="mine"):
        text = value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False)
        (self.root / "configs" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def site(self, value):
        (self.root / "config.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")

    def load(self, value=None, **overrides):
        """The experiment that config.yaml names, `value` if given; `overrides` of config.yaml."""
        if value is not None:
            self.write(value)
        return plan(overrides, self.root).experiment

    def error(self, value=None, **overrides):
        return one_line(self.load, value, **overrides)

    def changed(self, **changes):
        """The base with `key={...}` laid over it, mapping by mapping."""
        return self.load(changed(self.base, changes))


NASTY = "-a '\"$(touch pwned);touch pwned;`touch pwned`|&>#*?[a]\\%s%j ü"
ON_SLURM = "a;touch pwned;|&>#*?[a]~! ü"  # what the executor can hand to Slurm


def quoted(text: object) -> str:
    return json.dumps(str(text), ensure_ascii=False)
