"""The schemas of experiments and of config.yaml: schemas/, with segmenters and benchmarks."""

from pathlib import Path
from typing import Any

from ems.benchmarks import benchmarks, has, settings_of
from ems.benchmarks.record import Benchmark
from ems.config.schema import load_yaml
from ems.segmenters.base import names as segmenters

CLOSED = {"type": "object", "additionalProperties": False, "default": {}}


def experiment_schema(schemas: Path) -> dict[str, Any]:
    """The whole schema. Raises `EmsError` for a schema that cannot be read."""
    schema = load_yaml(schemas / "experiment.schema.yaml")
    own, classifier = schema["properties"], schema["$defs"]["probe"]["properties"]
    against = own["decontaminate"]["properties"]["against"]["items"]["enum"]
    schema["$defs"]["segmenter"]["enum"] = list(segmenters())
    for name, record in benchmarks().items():
        settings = settings_of(name)
        own["benchmarks"]["items"]["enum"].append(name)
        if has(name, "data"):
            own["sources"]["properties"][name] = _source(record)
            own["evalsets"]["properties"][name] = _evalset(settings)
            against += [] if record.drawn else [name]
        if "probe" in settings:
            properties = {**classifier, **settings["probe"].get("properties", {})}
            own["probes"]["properties"][name] = {**CLOSED, "properties": properties}
    return schema


def site_schema(schemas: Path) -> dict[str, Any]:
    """The whole schema of config.yaml. Raises `EmsError` for a schema that cannot be read."""
    schema = load_yaml(schemas / "site.schema.yaml")
    for name, record in benchmarks().items():
        if record.source:
            published = {"default": record.published} if record.published else {}
            schema["properties"]["sources"]["properties"][name] = _source(record) | published
    return schema


def _source(record: Benchmark) -> dict[str, Any]:
    """Where a benchmark's files may come from."""
    if not record.source:
        return {"enum": ["embedded"]}
    return {"type": "string", "description": record.source}


def _evalset(settings: dict[str, Any]) -> dict[str, Any]:
    """The entry of a benchmark's data, with the protocol that it is scored by."""
    entry: dict[str, Any] = {"$ref": "#/$defs/evalset"}
    if "protocol" in settings:
        entry["properties"] = {"protocol": {**CLOSED, **settings["protocol"]}}
    return entry
