"""The JSON schemas of the settings, which editors check files by; made from the models."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ems.base.schema import Json, Settings
from ems.config.file import experiment_model
from ems.config.site import site_model

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Without titles, and without null, which stands for keys that are not set."""

    def nullable_schema(self, schema: Any) -> Json:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Json:
        unset = schema.get("default", ...) is None
        return self.generate_inner(schema["schema"]) if unset else super().default_schema(schema)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_of(model: type[Settings]) -> Json:
    """Return the JSON schema of a model."""
    schema = model.model_json_schema(schema_generator=_Generator)
    return {"$schema": DIALECT, **schema}


def experiment_schema() -> Json:
    """Return the schema of a file in configs/."""
    return schema_of(experiment_model())


def site_schema() -> Json:
    """Return the schema of config.yaml."""
    return schema_of(site_model())
