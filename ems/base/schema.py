"""Declare and check settings and JSON files: strict base classes, shared types, one-line errors.

`Settings` is a section of a file that a person writes: an unknown key is a mistake. `Record` is a
file, or a part of one, that the pipeline writes: it names only the keys that are read. Both leave
valid values unchanged, so this module is no part of a stage's source (`ems.base.provenance`).
"""

import difflib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import cache, partial
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ems.base.errors import EmsError

Json = dict[str, Any]  # an object of a YAML or JSON file
Model = TypeVar("Model", bound=BaseModel)
LONGEST = 800  # characters in a message: enough for all keys of a section, not for any value
SHOWN = 80  # characters of a value in a message about a JSON file
STRICT = ConfigDict(  # deferred: most models are only parts of others
    strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
)


class Record(BaseModel):
    """A JSON file of the pipeline, or a part of one; further keys are ignored."""

    model_config = STRICT


class Settings(BaseModel):
    """A section of settings: no unknown keys, no conversions, no changes.

    `LATER` names the keys that were added after models of the section had been trained: `plain`
    leaves them out while they have their default, so that the hashes of those models stay the same.
    """

    LATER: ClassVar[frozenset[str]] = frozenset()
    model_config = STRICT | ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        # only code may set a key to null
        for key, part in value.items() if isinstance(value, dict) else ():
            if key not in cls.model_fields:
                context = {"key": key, "allowed": sorted(cls.model_fields)}
                raise PydanticCustomError("unknown_key", "unknown key", context)
            annotation = cls.model_fields[key].annotation
            if part is None and type(None) in get_args(annotation):
                context = {"key": key, "expected": _type_name(annotation)}
                raise PydanticCustomError("null", "null", context)
        return value


# --- types


def number(**bounds: float) -> Any:
    """Return the type of a finite number within `bounds`; 1 stays 1, since 1.0 has another hash."""

    def as_written(value: Any, check: Callable[[Any], float]) -> Any:
        check(value)
        return value

    return Annotated[float, Field(**bounds), WrapValidator(as_written)]


def whole(**bounds: int) -> Any:
    return Annotated[int, Field(**bounds)]


def text(pattern: str, expected: str) -> Any:
    """Return the type of text that matches `pattern`; `expected` ends the error message."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):  # search would let a newline follow
            raise PydanticCustomError("expected", "{words}", {"words": expected})
        return value

    shown = {"pattern": pattern, "patternErrorMessage": expected}
    return Annotated[str, AfterValidator(check), Field(json_schema_extra=shown)]


def _unique(value: list[Any]) -> list[Any]:
    if len({json.dumps(item) for item in value}) < len(value):
        raise PydanticCustomError("shape", "has non-unique elements")
    return value


UNIQUE = (AfterValidator(_unique), Field(json_schema_extra={"uniqueItems": True}))


def listing(item: Any, least: int = 0) -> Any:
    """Return the type of a list without duplicates."""
    return Annotated[list[item], Field(min_length=least or None), *UNIQUE]


def by_type(*types: Any) -> Any:
    """Return the type of a value of one of several types, each of which looks different in YAML."""
    tagged = tuple(Annotated[kind, Tag(f"<{_type_name(kind)}>")] for kind in types)
    literals = [kind for kind in types if get_origin(kind) is Literal]
    words = {word: _type_name(kind) for kind in literals for word in get_args(kind)}

    def tag(value: Any) -> str:
        if isinstance(value, str) and value in words:
            return f"<{words[value]}>"
        name = "dict" if isinstance(value, BaseModel) else type(value).__name__
        return f"<{'null' if value is None else _TYPES.get(name, 'other')}>"

    return Annotated[Union[tagged], Discriminator(tag)]  # noqa: UP007


def text_or(text_type: Any, model: Any) -> Any:
    """Return the type of a string or a mapping; any other value is reported as a bad mapping."""
    tagged = Annotated[text_type, Tag("<string>")], Annotated[model, Tag("<object>")]
    tag = Discriminator(lambda value: "<string>" if isinstance(value, str) else "<object>")
    return Annotated[Union[tagged], tag]  # noqa: UP007


_TYPES = {"dict": "object", "model": "object", "list": "array", "bool": "boolean"}
_TYPES |= {"str": "string", "string": "string", "int": "integer"}  # names in Python and pydantic
_TYPES |= {"float": "number", "finite": "number"}


def _type_name(annotation: Any) -> str:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if annotation is None:
        return "null"
    arguments = get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_type_name(each) for each in arguments if each is not type(None))
    if get_origin(annotation) is Literal:
        return ", ".join(arguments)
    plain_type = get_origin(annotation) or annotation
    return "object" if issubclass(plain_type, BaseModel) else _TYPES[plain_type.__name__]


# Bounds that several numbers share, each with its reason.
Seed = Annotated[int, Field(ge=0, le=4294967295)]  # 2^32 - 1: NumPy's RandomState takes no more
Steps = Annotated[int, Field(ge=0, le=99_999_999)]  # eight digits name a checkpoint
Interval = Annotated[int, Field(ge=1, le=99_999_999)]  # in steps
Dropout = number(ge=0, lt=1)  # kept values are scaled by 1 / (1 - dropout)
Rate = number(gt=0, le=1e38)  # fits in a float32; a step that overflows is reported
Decay = number(ge=0, le=1)  # at 1 Adam sees little but the weights themselves

# Names become parts of paths: a corpus has 100 + 50 characters, which leaves room for its part.
_NAME = "expected letters, digits, `.`, `_` and `-`, starting with a letter or digit, at most"
Name = text("^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", f"{_NAME} 100 characters")
ShortName = text("^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$", f"{_NAME} 50 characters")
PartName = text("^[a-z]{1,30}$", "expected small letters (a to z), at most 30 characters")
_CODE = "expected letters and `_`, starting with a letter, at most 20 characters"
Code = text("^[A-Za-z][A-Za-z_]{0,19}$", _CODE)
CodeOrNone = text("^([A-Za-z][A-Za-z_]{0,19})?$", _CODE)
OwnCode = text("^[a-z][a-z_]{0,19}$", _CODE.replace("expected", "expected small"))
SourceName = text(  # braces are wildcards to Snakemake
    r"^(?!(?!https?://[^/])[A-Za-z][A-Za-z0-9+.-]+:/)[^\x00-\x1f\x7f-\x9f{}]+$",
    "expected a path, or an address that begins with https:// or http://, without control "
    "characters, `{` and `}`",
)
SomeLanguages = listing(str, least=2)

# Patterns of the same names in paths and on the command line, of any length.
NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"
LABEL = rf"{NAME}(?:\+[a-z]+)?"  # a corpus, with its part if it is divided
CODE = "[A-Za-z][A-Za-z_]*"  # a language
BELOW = r"(?!/)(?!(.*/)?\.\.?(/|\Z))[^\\\x00-\x1f]{1,255}"  # a file in or below a folder


def check_name(key: str, name: str) -> None:
    if not re.fullmatch(LABEL, name):
        raise EmsError(
            f"{key}: found {name!r}, expected letters, digits, `.`, `_` and `-`, starting with a "
            "letter or digit"
        )


# --- types of JSON files; a text among the annotations names the type in messages


def _below(name: str) -> str:
    if not re.fullmatch(BELOW, name):
        raise PydanticCustomError("outside", "outside of the folder")
    return name


NonBlank = Annotated[str, StringConstraints(pattern=r"\S"), "text"]
Count = Annotated[int, Field(ge=0), "a whole number of at least 0"]
Some = Annotated[int, Field(ge=1), "a count above 0"]
Amount = Annotated[number(ge=0, le=1e15), "a number of at least 0"]
Percent = Annotated[number(ge=0, le=100), "a percentage"]
Number = number()
# the name of a file in or below the folder of the JSON file
Below = Annotated[str, AfterValidator(_below), "the name of a file in this folder"]


# --- values


def plain(value: Any) -> Any:
    """Return settings as nested mappings and lists, without the keys that are not set."""
    if isinstance(value, Settings):
        fields = type(value).model_fields
        later = {
            key
            for key in value.LATER
            if getattr(value, key) == fields[key].get_default(call_default_factory=True)
        }
        return {key: plain(part) for key, part in value if part is not None and key not in later}
    if is_dataclass(value):
        return plain(vars(value))
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def with_fields(base: type[Settings], name: str, **types: Any) -> type[Settings]:
    """Return the model `base` with other types for its fields, or with further optional fields."""
    fields = {}
    for key, annotation in types.items():
        old = base.model_fields.get(key, Field(None))
        optional = is_section(annotation) and not old.is_required()
        default = {"default_factory": annotation} if optional else {"default": old.default}
        fields[key] = (annotation, Field(**default))
    about = None if base is Settings else base.__doc__
    return create_model(name, __base__=base, __doc__=about, **fields)


def is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def merge(base: Json, overrides: Json) -> Json:
    """Merge `overrides` into `base`, mapping by mapping; neither is changed."""
    merged = dict(base)
    for key, value in overrides.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = merge(base[key], value) if both else value
    return merged


def checked(model: type[Model], value: Any, location: Any = "") -> Model:
    """Return `value` as settings. Raises `EmsError`, one line with the key that is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        words = " ".join(_explained(error).split())
        words = words if len(words) < LONGEST else f"{words[:300]} ... {words[-200:]}"
    raise EmsError(f"{location}: {words}" if location else words)


_MESSAGES = {  # type of an error -> what follows the key
    "null": "found None, expected {expected}",
    "missing": "this key is missing",
    "literal_error": "found {value!r}; allowed values: {names}",
    "greater_than_equal": "{value!r} is less than the minimum of {ge:.16g}",
    "greater_than": "{value!r} is less than or equal to the minimum of {gt:.16g}",
    "less_than_equal": "{value!r} is greater than the maximum of {le:.16g}",
    "less_than": "{value!r} is greater than or equal to the maximum of {lt:.16g}",
    "empty": "{value!r} should be non-empty",
    "too_short": "{value!r} is too short",
    "too_long": "{value!r} is too long",
    "shape": "{value!r} {message}",
}


def _nearest(error: ValidationError) -> Any:
    errors = error.errors(include_url=False)
    return min(errors, key=lambda each: len(each["loc"]) - (each["type"] == "missing"))


def _explained(error: ValidationError) -> str:
    first = _nearest(error)
    kind, value, context = first["type"], first["input"], first.get("ctx", {})
    location = [str(key) for key in first["loc"]]
    if location[-1:] == ["[key]"]:  # a wrong key: name its mapping
        location = location[:-2]
    path = [key for key in location if not (key.startswith("<") and key.endswith(">"))]
    key = ".".join([*path, str(context["key"])] if "key" in context else path)
    if kind == "unknown_key":
        close = difflib.get_close_matches(str(context["key"]), context["allowed"], n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        return f"{key}: unknown key{hint}; allowed here: {', '.join(context['allowed'])}"
    if kind == "union_tag_invalid":
        types = re.findall("'<(.*?)>'", context["expected_tags"])
        return f"{key}: found {value!r}, expected {' or '.join(types)}"
    if kind == "too_short" and context["min_length"] == 1:
        kind = "empty"
    if kind in _MESSAGES:
        names = ", ".join(re.findall("'(.*?)'", str(context.get("expected"))))
        words = {**context, "value": value, "message": first["msg"], "names": names}
        return f"{key}: {_MESSAGES[kind].format(**words)}"
    expected = _TYPES.get(kind.partition("_")[0])
    return f"{key}: found {value!r}, {f'expected {expected}' if expected else first['msg']}"


# --- JSON files


_adapter = cache(partial(TypeAdapter, config=STRICT))


def fitting(schema: Any, value: Any) -> Any:
    """Return a JSON value as a value of a type (a `Record`, `dict[str, Count]`, ...). Raises
    `ValueError` that says what differs first: "expected text under `a.b`, found 3".
    """
    try:
        if _is_model(schema):
            return schema.model_validate(value)
        return _adapter(schema).validate_python(value)
    except ValidationError as error:
        raise ValueError(_misfit(schema, _nearest(error))) from None


def _misfit(schema: Any, error: Any) -> str:
    kind, place, value = error["type"], list(error["loc"]), error["input"]
    if kind == "null":
        place, value = [*place, error["ctx"]["key"]], None
    named = place[:-2] if place[-1:] == ["[key]"] else place
    key = shown(".".join(map(str, named)))[1:-1]  # in one line, without the quotation marks
    under = f" under `{key}`" if key else ""
    if kind == "unknown_key":
        return f"expected no `{shown(error['ctx']['key'])[1:-1]}`{under}"
    found = "nothing" if kind == "missing" else shown(value)
    return f"expected {_expected(_type_at(schema, place))}{under}, found {found}"


def _type_at(schema: Any, place: Sequence[str | int]) -> Any:
    """Return the type of the part at a path of keys; "[key]" is the type of a mapping's keys."""
    outer = schema
    for key in place:
        if key == "[key]":
            return get_args(outer)[0]
        outer = _stripped(schema)
        if _is_model(outer):
            fields = {field.alias or name: name for name, field in outer.model_fields.items()}
            schema = get_type_hints(outer, include_extras=True)[fields[key]]
        else:
            schema = get_args(outer)[-1]
    return schema


def _is_model(schema: Any) -> bool:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _stripped(schema: Any) -> Any:
    """Return a type without its annotations; `T` for `T | None`."""
    while get_origin(schema) is Annotated or type(None) in get_args(schema):
        schema = next(each for each in get_args(schema) if each is not type(None))
    return schema


def _expected(schema: Any) -> str:
    notes = schema.__metadata__ if get_origin(schema) is Annotated else ()
    for note in notes:
        if isinstance(note, str):
            return note
    if type(None) in get_args(schema):
        return " or ".join(_expected(each) for each in get_args(schema))
    schema = _stripped(schema)
    if get_origin(schema) is Literal:
        return " or ".join(map(str, get_args(schema)))
    words = _JSON_TYPES.get(get_origin(schema) or schema, "a JSON object")
    bounds = [bound for note in notes for bound in getattr(note, "metadata", ())]
    least = any(hasattr(bound, "min_length") for bound in bounds)
    return f"{words} that is not empty" if least else words


_JSON_TYPES = {list: "a list", str: "text", int: "a whole number", float: "a number"}
_JSON_TYPES |= {bool: "true or false", type(None): "null"}


def shown(value: Any) -> str:
    text = repr(value).replace("\n", " ")  # of an array
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
