"""Write the files generated from the settings: `make pages`.

These are schemas/*.json, with which editors check settings, and config.md, the page of every
setting.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ems.base.files import write_text
from ems.base.records import Json
from ems.config.file import experiment_model, site_model
from ems.config.sweep import written

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def meanings(section: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class, by field."""
    if getattr(sys.modules[section.__module__], section.__name__, None) is not section:
        return {}  # made by `with_fields`
    body = ast.parse(inspect.getsource(section)).body[0].body
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


class _Generator(GenerateJsonSchema):
    """Leaves out titles, and null, which stands for a key that is not set."""

    def model_schema(self, schema: Any) -> Json:
        """Add the docstrings of fields; pydantic would read the source at each start."""
        model = super().model_schema(schema)
        for section in schema["cls"].__mro__[:-1]:
            for key in meanings(section).keys() & model["properties"].keys():
                model["properties"][key].setdefault("description", meanings(section)[key])
        return model

    def nullable_schema(self, schema: Any) -> Json:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Json:
        unset = schema.get("default", ...) is None
        return self.generate_inner(schema["schema"]) if unset else super().default_schema(schema)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schemas() -> dict[str, Json]:
    """Return the JSON schemas of a file in configs/ (`experiment`) and of config.yaml (`site`)."""
    return {
        name: {"$schema": DIALECT, **model.model_json_schema(schema_generator=_Generator)}
        for name, model in (("experiment", experiment_model()), ("site", site_model()))
    }


OPENING = """# Settings

Generated from the models in `ems/` by `make pages`; do not edit this page. Editors that
support `yaml-language-server` check the files with `schemas/` while you type.
"""
BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
SIZES = {"minItems": "at least", "maxItems": "at most", "minProperties": "at least"}


class _Page:
    """The page of a file: its own keys, then each section at its first use."""

    def __init__(self, name: str, schema: Json) -> None:
        self.name, self.schema, self.sections = name, schema, schema["$defs"]
        self.front = f"{name}: " if name == "config.yaml" else ""  # both have `sources`
        self.places: dict[str, str] = {}  # section -> path of keys
        self.opened: list[str] = []  # sections that the current key is the first to use

    def lines(self) -> Iterator[str]:
        waiting = [("", self.schema, self.schema["description"])]
        while waiting:
            path, section, about = waiting.pop(0)
            yield from ["", f"### {self.front}{path}" if path else f"## {self.name}", "", about, ""]
            yield from ["| key | value | default | meaning |", "|---|---|---|---|"]
            inner = []
            for key, part in section["properties"].items():
                value = self._value(part, f"{path}.{key}".lstrip("."))
                about = part.get("description") or self._section(part)["description"]
                for ref in self.opened:
                    own = self.sections[ref]
                    inner.append((self.places[ref], own, own.get("description") or about))
                self.opened.clear()
                default = _default(part, key in section.get("required", []))
                about = " ".join(about.partition("\n\n")[0].split())
                cells = [f"`{key}`", value, default, about]
                yield f"| {' | '.join(map(_escaped, cells))} |"
            waiting = inner + waiting
        yield ""

    def _section(self, part: Json) -> Json:
        return self.sections[part["$ref"].rpartition("/")[2]]

    def _value(self, part: Json, place: str) -> str:
        """Describe the allowed values at a path of keys."""
        if "$ref" in part:
            ref = part["$ref"].rpartition("/")[2]
            if ref not in self.places:
                self.places[ref] = place
                self.opened.append(ref)
            place = self.places[ref]
            anchor = re.sub(r"[^\w-]", "", f"{self.front}{place}".lower().replace(" ", "-"))
            return f"[{place}](#{anchor})"
        if "oneOf" in part:
            return " or ".join(self._value(option, place) for option in part["oneOf"])
        if "enum" in part or "const" in part:
            return ", ".join(f"`{value}`" for value in part.get("enum", [part.get("const")]))
        name = part.get("type", "any value")
        if name == "array":
            return f"list of {self._value(part['items'], f'{place}[]')}{_limits(part, SIZES)}"
        if name == "object":
            named = [*part.get("patternProperties", {}).values(), part.get("additionalProperties")]
            values = next((value for value in named if isinstance(value, dict)), {})
            return f"mapping to {self._value(values, f'{place}.NAME')}"
        if name == "string":
            return part.get("patternErrorMessage", "text").removeprefix("expected ")
        return f"{name}{_limits(part, BOUNDS)}"


def _limits(part: Json, names: dict[str, str]) -> str:
    limits = [f"{word} {_number(part[key])}" for key, word in names.items() if key in part]
    return f", {' and '.join(limits)}" if limits else ""


def _number(value: float) -> str:
    """Return a number in plain digits; 1e38 stays unchanged."""
    return str(value) if abs(value) >= 1e16 else written(value)


def _escaped(cell: str) -> str:
    """Escape `|` in a cell of a table, and `<` outside of code, which would begin a tag."""
    escaped = cell.replace("|", "&#124;")
    return re.sub("(`[^`]*`)|<", lambda match: match[1] or "&lt;", escaped)


def _default(part: Json, required: bool) -> str:
    if "default" not in part:
        return "required" if required else ""
    value = part["default"]
    if isinstance(value, float):
        return f"`{_number(value)}`"
    return f"`{json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value}`"


def generated() -> dict[str, str]:
    """Return the text of each generated file by its path in the project."""
    made = schemas()
    texts = {
        f"schemas/{name}.schema.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        for name, schema in made.items()
    }
    files = (("config.yaml", "site"), ("configs/NAME.yaml", "experiment"))
    pages = ("\n".join(_Page(file, made[name]).lines()) for file, name in files)
    return {**texts, "docs/config.md": OPENING + "".join(pages)}


if __name__ == "__main__":
    for path, text in generated().items():
        write_text(Path(path), text)
