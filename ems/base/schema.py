"""Declare and check settings, which a person writes: shared types, one-line errors.

An unknown key is a mistake. Valid values stay unchanged, so this module is no part of a stage's
source (`ems.base.provenance`). `ems.base.records` checks the files that EMS writes.
"""

import json
import re
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

import pydantic
from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag, ValidationError
from pydantic_core import PydanticCustomError

from ems.base.errors import EmsError, mistake, near
from ems.base.files import read_table
from ems.base.records import Json, number

Model = TypeVar("Model", bound=BaseModel)
LONGEST = 800  # characters in a message: enough for all keys of a section, not for any value
STRICT = pydantic.ConfigDict(  # deferred: most models are only parts of others
    strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
)


class Settings(BaseModel):
    """A section of settings: no unknown keys, no conversions, no changes. `LATER` names the keys
    that were added after models of the section had been trained: `plain` leaves them out while they
    have their default, so that the hashes of those models stay the same.
    """

    LATER: ClassVar[frozenset[str]] = frozenset()
    model_config = STRICT | pydantic.ConfigDict(extra="forbid")

    @pydantic.model_validator(mode="before")
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


def check_name(key: str, name: str) -> None:
    if not re.fullmatch(LABEL, name):
        raise mistake("no name", key=key, name=name)


# --- values


def plain(value: Any) -> Any:
    """Return settings as nested mappings and lists, without the keys that are not set."""
    if isinstance(value, Settings):
        fields = type(value).model_fields
        unset = {key: fields[key].get_default(call_default_factory=True) for key in value.LATER}
        return {key: plain(part) for key, part in value if part not in (None, unset.get(key))}
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
    return pydantic.create_model(name, __base__=base, __doc__=about, **fields)


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


def _explained(error: ValidationError) -> str:
    """Word the error nearest to the top of the settings; schema.tsv has what follows the key."""
    errors = error.errors(include_url=False)
    first = min(errors, key=lambda each: len(each["loc"]) - (each["type"] == "missing"))
    kind, value, context = first["type"], first["input"], first.get("ctx", {})
    location = [str(key) for key in first["loc"]]
    if location[-1:] == ["[key]"]:  # a wrong key: name its mapping
        location = location[:-2]
    path = [key for key in location if not (key.startswith("<") and key.endswith(">"))]
    key = ".".join([*path, str(context["key"])] if "key" in context else path)
    if kind == "unknown_key":
        hint = near(str(context["key"]), context["allowed"])
        return f"{key}: unknown key{hint}; allowed here: {', '.join(context['allowed'])}"
    if kind == "union_tag_invalid":
        types = re.findall("'<(.*?)>'", context["expected_tags"])
        return f"{key}: found {value!r}, expected {' or '.join(types)}"
    if kind == "too_short" and context["min_length"] == 1:
        kind = "empty"
    rows = read_table(Path(__file__).with_suffix(".tsv"))
    if message := next((row["message"] for row in rows if row["error"] == kind), ""):
        names = ", ".join(re.findall("'(.*?)'", str(context.get("expected"))))
        words = {**context, "value": value, "message": first["msg"], "names": names}
        return f"{key}: {message.format(**words)}"
    expected = _TYPES.get(kind.partition("_")[0])
    return f"{key}: found {value!r}, {f'expected {expected}' if expected else first['msg']}"
