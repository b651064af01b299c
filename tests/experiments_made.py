"""The least that an experiment file must say, and a folder of settings to change and load it in."""

import copy
import math

import pytest
import yaml
from conftest import ROOT

from ems.config import load_experiment, load_site
from ems.errors import EmsError
from ems.plan import plan

MINIMAL = yaml.safe_load("""
description: the least that an experiment must say
seed: 1
languages: [en, de, fr]
sources: {}
splits: {}
corpora: [{name: Toy, version: v1, source: nowhere}]
validation: null
evalsets: {tatoeba: {version: toy}}
decontaminate: {}
segmenters: {default: none}
vocabulary: {size: 300}
model: {}
objectives: {}
train: {steps: 10}
systems: {ems: {}, ngram: {kind: char-ngram}}
benchmarks: [tatoeba]
tables: {}
""")
REAL = MINIMAL | yaml.safe_load("""
languages: [en, de, ja]
corpora: [{name: Tatoeba, version: v2021-08-07}]
validation: {name: NTREX, version: v1}
evalsets: {tatoeba: {version: v1}}
model: {width: 32, heads: 2}
systems: {a: {}, b: {model: {layers: 1}}, ngram: {kind: char-ngram}}
""")  # of corpora that the catalogue knows
SITE = {"experiment": "mine", "data": "data", "sources": {"opus": "o", "tatoeba": "t"}}
GONE = object()


def shipped(name):
    """An experiment of the project."""
    return load_experiment(name, load_site(ROOT / "config.yaml"), ROOT / "configs")


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


def ends(part):
    """The smallest and the largest value that a number may have."""
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

    def told(self, value=None, **overrides):
        """The one line that a bad setting is told with."""
        with pytest.raises(EmsError) as error:
            self.load(value, **overrides)
        message = str(error.value)
        assert "\n" not in message
        return message

    def changed(self, **changes):
        """The base with `key={...}` laid over it, mapping by mapping."""
        return self.load(changed(self.base, changes))
