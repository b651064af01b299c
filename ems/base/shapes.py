"""Check JSON against a shape, a small JSON schema, and say in words what differs first.

A shape stands beside the reader or the writer of its file. It names only the keys that are read;
others may be there. If it has a `description`, the message says that instead of a type. Of JSON
Schema it has a few words, with the types of Python: 2.0 is no integer, NaN is no number. They are
checked here, since using a model must not need the package jsonschema.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

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
    error = next(_errors(value, shape, ()), None)
    if error is None:
        return ""
    word, value, shape, place = error
    if word == "required":
        missing = next(key for key in shape[word] if key not in value)
        of = shape.get("properties", {}).get(missing, shape.get(_OTHERS, {}))
        return f"expected {_expected(of)}{_under([*place, missing])}, found nothing"
    if word == _OTHERS:
        unknown = next(key for key in value if key not in shape["properties"])
        return f"expected no `{unknown}`{_under(place)}"
    return f"expected {_expected(shape)}{_under(place)}, found {shown(value)}"


class _Error(NamedTuple):
    """The word of a shape that a value does not fit, and the keys that lead to the value."""

    word: str
    value: Any
    shape: Shape
    place: tuple[str | int, ...]


def _errors(value: Any, shape: Shape, place: tuple[str | int, ...]) -> Iterator[_Error]:
    """Yield what does not fit, in the order of the words of the shape."""
    for word, wanted in shape.items():
        kind, misfits = _WORDS.get(word, (None, None))
        if misfits and _is(value, kind) and misfits(value, wanted):
            yield _Error(word, value, shape, place)
        if wanted is False and isinstance(value, dict) and value.keys() - shape["properties"]:
            yield _Error(word, value, shape, place)
        for key, part, of in _parts(value, word, shape):
            yield from _errors(part, of, (*place, *key))


def _parts(value: Any, word: str, shape: Shape) -> Iterator[tuple[list[str | int], Any, Shape]]:
    """Yield the key, the value and the shape of each part of a value that a word is about."""
    of, named = shape[word], shape.get("properties", {})
    if word == "items" and isinstance(value, list):
        yield from (([at], part, of) for at, part in enumerate(value))
    elif word == "properties" and isinstance(value, dict):
        yield from (([key], value[key], named[key]) for key in named if key in value)
    elif word == "propertyNames" and isinstance(value, dict):
        yield from (([], key, of) for key in value)
    elif word == _OTHERS and of and isinstance(value, dict):
        yield from (([key], value[key], of) for key in value if key not in named)


def _is(value: Any, types: str | list[str] | None) -> bool:
    """True for a value of one of the types, or of any type for None."""
    names = [types] if isinstance(types, str) else types
    return names is None or any(_IS[name](value) for name in names)


def _is_number(value: Any) -> bool:
    """True for a finite number; False for a truth value."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


_IS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
# word -> the type of values that it is about (None: any), and whether one does not fit it
_WORDS: dict[str, tuple[str | None, Callable[[Any, Any], bool]]] = {
    "type": (None, lambda value, types: not _is(value, types)),
    "enum": (None, lambda value, words: value not in words),
    "pattern": ("string", lambda value, wanted: not re.search(wanted, value)),
    "minimum": ("number", lambda value, least: value < least),
    "maximum": ("number", lambda value, most: value > most),
    "exclusiveMaximum": ("number", lambda value, above: value >= above),
    "required": ("object", lambda value, keys: not value.keys() >= set(keys)),
    "minProperties": ("object", lambda value, least: len(value) < least),
    "minItems": ("array", lambda value, least: len(value) < least),
    "maxItems": ("array", lambda value, most: len(value) > most),
    "uniqueItems": ("array", lambda value, _: len(set(map(repr, value))) < len(value)),
}


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
