"""Declare and check the JSON files that EMS writes: records, types with bounds, one-line errors.

A type is `str`, `int`, `float`, `bool`, `list[T]`, `dict[K, V]`, `Literal`, `T | None`, `Any`, or a
`Record`. Annotations restrict it: `Bounds`, functions that return false for a wrong value, and a
text that names the type in messages. Valid values stay unchanged, so this module is no part of a
stage's source (`ems.base.provenance`). It needs no package, so that a static model starts quickly.
"""

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, make_dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

Json = dict[str, Any]  # an object of a YAML or JSON file
SHOWN = 80  # characters of a value in a message about a JSON file
LARGEST = 1.7976931348623157e308  # the largest float
NOTHING = object()  # stands for the value of a key that is missing
BELOW = r"(?!/)(?!(.*/)?\.\.?(/|\Z))[^\\\x00-\x1f]{1,255}"  # a file in or below a folder


class Record:
    """A JSON file of EMS, or a part of one; further keys are ignored, `written` has the whole."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


def only(key: str, schema: Any, *default: Any) -> type:
    """Return the record of a single key."""
    return make_dataclass("Only", [(key, schema, *default)], frozen=True, kw_only=True)


@dataclass(frozen=True)
class Bounds:
    """Bounds of a number, or of the length of a list or object; pydantic reads them, too."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None
    max_length: int | None = None

    def __call__(self, value: Any) -> bool:
        if self.min_length is not None or self.max_length is not None:
            return (self.min_length or 0) <= len(value) <= (self.max_length or len(value))
        return (
            (self.ge is None or value >= self.ge)
            and (self.gt is None or value > self.gt)
            and (self.le is None or value <= self.le)
            and (self.lt is None or value < self.lt)
        )

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema of a number within bounds. 1 stays 1: 1.0 has another hash."""
        from pydantic import Field, WrapValidator

        def as_written(value: Any, check: Callable[[Any], float]) -> Any:
            check(value)
            return value

        bounds = {key: bound for key, bound in vars(self).items() if bound is not None}
        notes = (Field(**bounds), *([WrapValidator(as_written)] if source is float else []))
        return handler.generate_schema(Annotated[source, *notes])


def number(**bounds: float) -> Any:
    """Return the type of a finite number within `bounds`."""
    return Annotated[float, Bounds(**bounds)]


def whole(**bounds: int) -> Any:
    return Annotated[int, Bounds(**bounds)]


Dropout = number(ge=0, lt=1)  # kept values are scaled by 1 / (1 - dropout)


def are_unique(values: list[Any]) -> bool:
    return len(set(values)) == len(values)


NonBlank = Annotated[str, re.compile(r"\S").search, "text"]
Count = Annotated[int, Bounds(ge=0), "a whole number of at least 0"]
Some = Annotated[int, Bounds(ge=1), "a count above 0"]
Amount = Annotated[float, Bounds(ge=0, le=1e15), "a number of at least 0"]
Percent = Annotated[float, Bounds(ge=0, le=100), "a percentage"]
# the name of a file in or below the folder of the JSON file
Below = Annotated[str, re.compile(BELOW).fullmatch, "the name of a file in this folder"]


class Misfit(ValueError):
    """A value at a path of keys is not of the type that is `expected`, in words."""

    def __init__(self, expected: str, place: tuple[Any, ...], end: str) -> None:
        key = shown(".".join(map(str, place)))[1:-1]  # in one line, without the quotation marks
        super().__init__(f"expected {expected}{f' under `{key}`' if key else ''}{end}")
        self.expected, self.place = expected, place


def fitting(schema: Any, value: Any, *place: str) -> Any:
    """Return a JSON value as one of a type. Raises `Misfit`, "expected text under `b`, found 3"."""
    return _fit(schema, value, place, schema)


def _fit(schema: Any, value: Any, place: tuple[Any, ...], named: Any) -> Any:
    """Return the value at `place`, whose type without its annotations is `schema`."""
    if schema is Any:
        return value
    origin, parts = get_origin(schema), get_args(schema)
    if origin is Annotated:
        value = _fit(parts[0], value, place, named)
        checks = (note for note in parts[1:] if not isinstance(note, str))
        if value is not None and not all(check(value) for check in checks):
            raise _misfit(named, place, value)
        return value
    if type(None) in parts:
        return value if value is None else _fit(parts[0], value, place, named)
    if is_dataclass(schema) and isinstance(value, dict):
        return _record(schema, value, place)
    if origin is dict and isinstance(value, dict):
        for key in value if parts[0] is not str else ():
            _fit(parts[0], key, place, parts[0])
        each = parts[1]
        return {key: _fit(each, own, (*place, key), each) for key, own in value.items()}
    if origin is list and isinstance(value, list):
        each = parts[0]
        return [_fit(each, own, (*place, at), each) for at, own in enumerate(value)]
    fits = type(value) is schema
    if origin is Literal:
        fits = isinstance(value, str) and value in parts
    elif schema is float:
        fits = type(value) in (int, float) and -LARGEST <= value <= LARGEST  # false for NaN
    if not fits:
        raise _misfit(named, place, value)
    return value


@cache
def _keys(schema: type) -> dict[str, tuple[Field, Any]]:
    """Return key of the JSON object -> field of a record, and its type."""
    types = get_type_hints(schema, include_extras=True)
    own = [each for each in fields(schema) if each.name != "written"]
    return {each.metadata.get("key", each.name): (each, types[each.name]) for each in own}


def _record(schema: type, value: Json, place: tuple[Any, ...]) -> Any:
    keys = _keys(schema)
    for key in value if getattr(schema, "ONLY_KNOWN_KEYS", False) else ():
        if key not in keys:
            raise Misfit(f"no `{shown(key)[1:-1]}`", place, "")
    for key, (own, expected) in keys.items():
        if own.default is own.default_factory is MISSING and key not in value:
            raise _misfit(expected, (*place, key), NOTHING)
    given = {
        own.name: _fit(expected, value[key], (*place, key), expected)
        for key, (own, expected) in keys.items()
        if key in value
    }
    if "written" in schema.__dataclass_fields__:
        given["written"] = value
    return schema(**given)


def _misfit(schema: Any, place: tuple[Any, ...], value: Any) -> Misfit:
    found = "nothing" if value is NOTHING else shown(value)
    return Misfit(_expected(schema), place, f", found {found}")


_WORDS = {list: "a list", str: "text", int: "a whole number", float: "a number"}
_WORDS |= {bool: "true or false", type(None): "null"}


def _expected(schema: Any) -> str:
    origin, parts = get_origin(schema), get_args(schema)
    if origin is Annotated:
        words = next((note for note in parts if isinstance(note, str)), None)
        least = any(getattr(note, "min_length", None) for note in parts)
        return words or _expected(parts[0]) + (" that is not empty" if least else "")
    if origin is Literal:
        return " or ".join(parts)
    if type(None) in parts:
        return " or ".join(map(_expected, parts))
    return _WORDS.get(origin or schema, "a JSON object")


def shown(value: Any) -> str:
    text = repr(value).replace("\n", " ")  # of an array
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
