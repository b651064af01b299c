"""Check JSON against a shape, a small JSON schema, and say in words what differs first.

A shape stands beside the reader or the writer of its file. It names only the keys that are read;
others may be there. If it has a `description`, the message says that instead of a type.
"""

import math
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jsonschema

Shape = dict[str, Any]

TEXT: Shape = {"type": "string", "pattern": r"\S", "description": "text"}
COUNT: Shape = {"type": "integer", "minimum": 0, "description": "a whole number of at least 0"}
SOME: Shape = {"type": "integer", "minimum": 1, "description": "a count above 0"}
AMOUNT: Shape = {"type": "number", "minimum": 0, "maximum": 1e15}
AMOUNT["description"] = "a number of at least 0"
PERCENT: Shape = {"type": "number", "minimum": 0, "maximum": 100, "description": "a percentage"}
# the name of a file below the folder of the JSON file, never outside of it
BELOW: Shape = {
    "pattern": r"\A(?!/)(?!(.*/)?\.\.?(/|\Z))[^\\\x00-\x1f]+\Z",
    "description": "the name of a file in this folder",
}


@cache
def type_checker() -> "jsonschema.TypeChecker":
    """Return the types of JSON Schema as Python has them: 2.0 is no integer, NaN is no number.

    jsonschema is imported at the first call: it takes longer than the help of a command.
    """
    import jsonschema

    return jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": lambda _, value: type(value) is int, "number": _is_number}
    )


@cache
def _validator() -> type:
    import jsonschema

    base = jsonschema.Draft202012Validator
    return jsonschema.validators.extend(base, type_checker=type_checker())


def _is_number(_: Any, value: Any) -> bool:
    """True for a finite number; False for a truth value."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


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
    """Return the shape of files called `name`, which may hold a *.

    A file of another name that does not fit is called another file, not a damaged one.
    """
    return {**shape, "title": name}


def record(required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Shape:
    """Return the shape of an object with these keys."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties}


def mapping(of: Shape, names: Shape | None = None, least: int = 0) -> Shape:
    """Return the shape of an object with at least `least` values of one shape, under `names`."""
    shape = {"type": "object", "minProperties": least, "additionalProperties": of}
    return {**shape, "propertyNames": names} if names else shape


def listing(of: Shape, least: int = 0) -> Shape:
    """Return the shape of a list with at least `least` values of one shape."""
    return {"type": "array", "minItems": least, "items": of}


def misfit(value: Any, shape: Shape) -> str:
    """Return what differs first, like "expected text under `a.b`, found 3"; "" for nothing."""
    error = next(_validator()(shape).iter_errors(value), None)
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
    """Return a value as a message shows it: its first characters."""
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
