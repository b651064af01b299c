"""Validation against the JSON schemas of schemas/, with one clear line per mistake.

The message names the key, what was expected (the allowed keys or values), what was found, and the
file: a newcomer's typo is the most frequent error there is.
"""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from ems.config.yaml12 import MOST_BYTES, parse_yaml
from ems.errors import EmsError
from ems.shapes import type_checker


def _pattern(
    _: Any, pattern: str, value: Any, schema: dict[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    """Yield an error for text without the pattern. Its `$` is the end of the text, as in ECMA; that
    of Python is before a final newline too.
    """
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        expected = schema.get("patternErrorMessage", f"expected {pattern}")
        yield jsonschema.ValidationError(f"found {value!r}, {expected}")


_VALIDATOR = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, validators={"pattern": _pattern}, type_checker=type_checker()
)
LONGEST = 800  # characters of a message: all keys of a section, but not all of a value


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping. Raises `EmsError` that names file and line when that fails."""
    try:
        with open(path, "rb") as handle:
            content = handle.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise EmsError(f"{path}: expected settings, found a file of over {MOST_BYTES:,} bytes")
        value = parse_yaml(content.decode("utf-8"))
    except FileNotFoundError:
        raise EmsError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise EmsError(f"{path}: not UTF-8 at byte {error.start:,}; save it as UTF-8") from None
    except yaml.YAMLError as error:
        words = " ".join(str(error).split()).replace('in "<unicode string>", line', "in line")
        raise EmsError(f"{path}: not valid YAML: {words}") from None
    if value is None:
        raise EmsError(f"{path}: the file is empty")
    if not isinstance(value, dict):
        raise EmsError(f"{path}: expected `key: value` lines, found {type(value).__name__}")
    return value


def check(value: dict[str, Any], schema: dict[str, Any], where: Path | str) -> None:
    """Raise `EmsError` with one line for the most telling violation of `schema` by `value`."""
    errors = _VALIDATOR(schema).iter_errors(value)
    error = jsonschema.exceptions.best_match(errors)
    if error is not None:
        words = " ".join(_explain(error).split())
        words = words if len(words) < LONGEST else f"{words[:300]} ... {words[-200:]}"
        raise EmsError(f"{where}: {words}")


def _explain(error: jsonschema.ValidationError) -> str:
    key = ".".join(str(part) for part in error.absolute_path)
    prefix = f"{key}." if key else ""
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        allowed = sorted(error.schema.get("properties", {}))
        unknown = next(name for name in error.instance if name not in allowed)
        close = difflib.get_close_matches(str(unknown), allowed, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        return f"{prefix}{unknown}: unknown key{hint}; allowed here: {', '.join(allowed)}"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"{prefix}{missing}: this key is missing"
    if error.validator == "enum":
        allowed = ", ".join(str(item) for item in error.validator_value)
        return f"{key}: found {error.instance!r}; allowed values: {allowed}"
    if error.validator == "type":
        return f"{key}: found {error.instance!r}, expected {error.validator_value}"
    if error.validator == "anyOf":
        types = [part.validator_value for part in error.context if part.validator == "type"]
        words = [
            word
            for part in error.context
            if part.validator == "enum"
            for word in part.validator_value
        ]
        expected = [", ".join(words), *types] if words else types
        return f"{key}: found {error.instance!r}, expected {' or '.join(expected)}"
    return f"{key}: {error.message}"


def with_defaults(value: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """A copy of `value` in which every absent key that has a `default` in `schema` holds it."""
    if "$ref" in schema:
        schema = merge(definitions[schema["$ref"].rpartition("/")[2]], schema)
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = dict(value)
    for key, part in schema["properties"].items():
        if key not in filled and "default" in part:
            filled[key] = part["default"]
        if key in filled:
            filled[key] = with_defaults(filled[key], part, definitions)
    return filled


def merge(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """`base` with `overrides` laid over it, mapping by mapping; neither is changed."""
    merged = dict(base)
    for key, value in overrides.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = merge(base[key], value) if both else value
    return merged
