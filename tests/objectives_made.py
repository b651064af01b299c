"""Settings of systems, with the defaults of the schema filled in."""

from conftest import ROOT

from ems.config.schema import load_yaml, with_defaults

_SCHEMA = load_yaml(ROOT / "schemas" / "experiment.schema.yaml")["$defs"]


def system_settings(model, objectives, train=None):
    """What `System` takes: the three parts of a system, complete."""
    given = {"model": model, "objectives": objectives, "train": train or {}}
    return {key: with_defaults(part, _SCHEMA[key], _SCHEMA) for key, part in given.items()}
