"""What a JSON file must look like: a small JSON schema, and the first thing in it that differs.

A schema stands beside the reader or the writer of its file. It says what a wrong value would break;
keys that it does not name may be there. Where a schema has a `description`, the message says that
instead of a type.
"""

import math
from collections.abc import Iterable
from typing import Any

import jsonschema

Shape = dict[str, Any]

TEXT: Shape = {"type": "string", "pattern": r"\S", "description": "text"}
COUNT: Shape = {"type": "integer", "minimum": 0, "description": "a whole number of at least 0"}
SOME: Shape = {"type": "integer", "minimum": 1, "description": "a count above 0"}
AMOUNT: Shape = {"type": "number", "minimum": 0, "maximum": 1e15}
AMOUNT["description"] = "a number of at least 0"
PERCENT: Shape = {"type": "number", "minimum": 0, "maximum": 100, "description": "a percentage"}
# The name of a file below the folder of the JSON file, never of one outside of it.
BELOW: Shape = {
    "pattern": r"\A(?!/)(?!(.*/)?\.\.?(/|\Z))[^\\\x00-\x1f]+\Z",
    "description": "the name of a file in this folder",
}


def _is_number(_: jsonschema.TypeChecker, value: Any) -> bool:
    """Neither a truth value nor infinite nor NaN."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


# the standard takes 2.0 for an integer; Python does not
TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
    {"integer": lambda _, value: type(value) is int, "number": _is_number}
)


_VALIDATOR = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=TYPES)
_TYPES = {
    "object": "a JSON object",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
}
_OTHERS = "additionalProperties"
SHOWN = 80  # characters of a value in a message


def named(name: str, shape: Shape) -> Shape:
    """The shape of files of a name, which may hold a *: a misfit of any other name is another file,
    not a damaged one.
    """
    return {**shape, "title": name}


def record(required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Shape:
    """The shape of an object with these keys."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties}


def mapping(of: Shape, names: Shape | None = None, least: int = 0) -> Shape:
    """The shape of an object of `least` or more values that are alike, under `names`."""
    shape = {"type": "object", "minProperties": least}
    return {**shape, **({"propertyNames": names} if names else {}), "additionalProperties": of}


def listing(of: Shape, least: int = 0) -> Shape:
    """The shape of a list of `least` or more values that are alike."""
    return {"type": "array", "minItems": least, "items": of}


def misfit(value: Any, shape: Shape) -> str:
    """What of `value` differs first, like "expected text under `a.b`, found 3"; '' for nothing."""
    error = next(_VALIDATOR(shape).iter_errors(value), None)
    if error is None:
        return ""
    place, value = error.absolute_path, error.instance
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in value)
        of = error.schema.get("properties", {}).get(missing, error.schema.get(_OTHERS, {}))
        return f"expected {_expected(of)}{_under([*place, missing])}, found nothing"
    if error.validator == _OTHERS:
        unknown = next(key for key in value if key not in error.schema["properties"])
        return f"expected no `{unknown}`{_under(place)}"
    return f"expected {_expected(error.schema)}{_under(place)}, found {shown(value)}"


def shown(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _under(path: Iterable[str | int]) -> str:
    key = shown(".".join(map(str, path)))[1:-1]  # in one line, without the quotation marks
    return f" under `{key}`" if key else ""


def _expected(shape: Shape) -> str:
    if "description" in shape:
        return shape["description"]
    if "enum" in shape:
        return " or ".join(map(str, shape["enum"]))
    types = shape.get("type", "something else")
    text = " or ".join(_TYPES[name] for name in ([types] if isinstance(types, str) else types))
    least = shape.get("minProperties") or shape.get("minItems")
    return f"{text} that is not empty" if least else text
