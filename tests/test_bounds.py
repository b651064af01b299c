"""Laws of the numbers of the settings: each has bounds, the defaults and what is here lie within
them, and a number at a bound either works or is one line."""

import math

import pytest
from conftest import ROOT
from jsonschema import Draft202012Validator as Validator
from made.experiments import MINIMAL, SCHEMAS, Settings, changed, edited, ends, parts_of

from ems.base.errors import EmsError
from ems.base.schema import checked
from ems.config.file import experiment_model

LOW, HIGH = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")


def parts(schema, path=()):
    """(path, part) of every part of a schema that is a schema itself, or might be one."""
    if isinstance(schema, dict):
        yield path, schema
    items = enumerate(schema) if isinstance(schema, list) else schema.items()
    for key, part in items if isinstance(schema, dict | list) else ():
        if isinstance(part, dict | list) and key not in ("default", "enum"):
            yield from parts(part, (*path, key))


NUMBERS = [
    pytest.param(part, id=".".join([name, *map(str, path)]))
    for name, schema in SCHEMAS.items()
    for path, part in parts(schema)
    if {"integer", "number"} & {*([part["type"]] if isinstance(part.get("type"), str) else [])}
]


def test_the_schemas_are_schemas():
    for schema in SCHEMAS.values():
        Validator.check_schema(schema)


def test_the_numbers_of_the_schemas_are_seen():
    assert len(NUMBERS) > 60
    types = [part.get("type") for schema in SCHEMAS.values() for _, part in parts(schema)]
    assert not any(isinstance(kind, list) for kind in types)  # a list of types would hide one


@pytest.mark.parametrize("part", NUMBERS)
def test_every_number_has_a_finite_lower_and_upper_bound_and_they_are_in_order(part):
    (low,) = [part[name] for name in LOW if name in part]
    (high,) = [part[name] for name in HIGH if name in part]
    assert -math.inf < low < high < math.inf


WITH_DEFAULT = [
    pytest.param(name, part, id=".".join([name, *map(str, path)]))
    for name, schema in SCHEMAS.items()
    for path, part in parts(schema)
    if "default" in part
]


@pytest.mark.parametrize(("name", "part"), WITH_DEFAULT)
def test_every_default_is_allowed(name, part):
    schema = {"$defs": SCHEMAS[name].get("$defs", {}), **part}
    Validator(schema).validate(part["default"])


# --- at the bounds


NEEDED = {("clean", "similarity"): "model", ("clean", "commands", "[]"): "filter"}


def nested(path, value):
    """{"train": {"steps": value}} of a path; an item is the only one of its list."""
    for at, key in reversed(list(enumerate(path))):
        value = [value] if key == "[]" else {key: value}
        if path[:at] in NEEDED:
            value[NEEDED[path[:at]]] = "x"
    return value


SECTIONS = {"seed", "evalsets", "clean", "vocabulary", "documents", "probes", "splits", "corpora"}
SECTIONS |= {"model", "objectives", "train"}
LEAVES = [
    (path, part)
    for path, part in parts_of(SCHEMAS["experiment"])
    if part.get("type") in ("integer", "number") and path[0] in SECTIONS
]


def with_number(path, value):
    """An experiment with a number at a path."""
    if path[0] == "corpora":
        front, own = (path[:3], path[3:]) if path[2] == "max_pairs" else (path, ())
        return edited(MINIMAL, ".".join(["corpora", "0", *front[2:]]), nested(own, value))
    version = {"evalsets": {path[1]: {"version": "v"}}} if path[0] == "evalsets" else {}
    return changed(changed(MINIMAL, version), nested(path, value))


@pytest.mark.parametrize(
    ("path", "part"), [pytest.param(*leaf, id=".".join(leaf[0])) for leaf in LEAVES]
)
def test_a_number_may_lie_at_its_bounds_and_not_beyond_them(path, part):
    model, key = experiment_model(), ".".join(path[-1:]).replace("[]", "0")
    low, high = ends(part)
    for value in (low, high):
        checked(model, with_number(path, value), "mine.yaml")
    beyond = [low - 1, 2 * high + 1, 10**400, -(10**400), 1e300, math.nan, math.inf, -math.inf]
    others = [] if "parameters" in path else [str(low), True]  # those of a program may be so
    for value in (*beyond, *others, None):
        with pytest.raises(EmsError) as error:
            checked(model, with_number(path, value), "mine.yaml")
        message = str(error.value)
        assert key in message
        assert "\n" not in message
        assert len(message) < 900


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("contrastive: {weight: 1,", "contrastive: {weight: .nan,"),
        ("learning_rate: 0.003", "learning_rate: .inf"),
        ("temperature: [0.1, 0.5]", "temperature: [0.1, .nan]"),
        ("steps: 60", "steps: 1e999"),
    ],
)
def test_a_number_of_an_experiment_that_is_not_finite_is_one_line_with_its_place(
    tmp_path, old, new
):
    text = (ROOT / "configs/tiny.yaml").read_text()
    assert text.count(old) == 1
    line = text[: text.index(old)].count("\n") + 1
    message = Settings(tmp_path).error(text.replace(old, new))
    assert "mine.yaml: not valid YAML: expected a finite number, found " in message
    assert f"line {line}," in message
