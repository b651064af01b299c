"""A search for settings one at a time around a chosen point, as EMS v2 Table II has them.

Notable choices:
- a point is a system like any other: the base with one setting changed, trained by the same rule;
- the chosen point is one system, whatever the number of axes that it lies on;
- the name of a point is made of its own axis and value alone, so that another axis or value leaves
  it, and the model trained under it, as they are;
- an axis is a path of keys in the schema: a setting that is added there can be searched at once.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from ems.config.schema import check, merge
from ems.errors import EmsError

SECTIONS = ("model", "objectives", "train")  # what a system may change
CHOSEN = "chosen"


@dataclass(frozen=True)
class Point:
    """One value on one axis (like "model.layers"), and the system that is trained with it.

    `chosen` marks the value of the base; `added` a system that only the sweep has.
    """

    axis: str
    value: Any
    system: str
    chosen: bool
    added: bool

    @property
    def shown(self) -> str:
        """The value as people read it: 0.00001, never 1e-05."""
        return written(self.value)


def written(value: Any) -> str:
    """A setting as text: numbers in plain decimals, 0.0 as 0; the items of a list with hyphens."""
    if isinstance(value, list):
        return "-".join(map(written, value))
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return str(value).lower() if isinstance(value, bool) else str(value)


def expand(
    value: dict[str, Any], systems: dict[str, dict[str, Any]], schema: dict[str, Any], where: Path
) -> tuple[tuple[Point, ...], dict[str, dict[str, Any]]]:
    """The points of the section `sweep` of an experiment, axis by axis, and the systems that they
    add to `systems`; nothing where there is no such section.

    Raises `EmsError` for a base that is no system, an unknown axis, a value that the schema does
    not allow, and an axis without the value of the base.
    """
    if "sweep" not in value:
        return (), {}
    try:
        return _expand(value, systems, schema)
    except EmsError as error:
        raise EmsError(f"{where}: {error}") from None


def _expand(
    value: dict[str, Any], systems: dict[str, dict[str, Any]], schema: dict[str, Any]
) -> tuple[tuple[Point, ...], dict[str, dict[str, Any]]]:
    sweep = value["sweep"]
    base = _base(sweep, systems)
    if value["validation"] is None:
        raise EmsError("sweep: points are compared on the validation loss; set `validation`")
    own = {"train": sweep["train"]} if sweep.get("train") else {}
    centre = merge(systems[base], own)
    centre_name = f"{base}.{CHOSEN}" if own else base
    points: list[Point] = []
    made = {centre_name: centre} if own else {}
    known = list(_paths(schema))
    for axis, values in sweep["axes"].items():
        _check_axis(axis, values, centre, known, schema)
        for item in values:
            chosen = item == _at(centre, axis)
            name = centre_name if chosen else point_name(base, axis, item)
            points.append(Point(axis, item, name, chosen, bool(own) or not chosen))
            made |= {} if chosen else {name: merge(centre, _nested(axis, item))}
    _check_names(points, made, systems)
    return tuple(points), made


def point_name(base: str, axis: str, value: Any) -> str:
    """`ems.layers-2`: the name of a system, and a folder."""
    name = f"{base}.{axis.partition('.')[2]}-{written(value)}"
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def _base(sweep: dict[str, Any], systems: dict[str, dict[str, Any]]) -> str:
    base = sweep["base"]
    trained = [name for name, system in systems.items() if system["kind"] == "encoder"]
    if base not in trained:
        raise EmsError(
            f"sweep.base: {base} is no system that is trained; those here: {', '.join(trained)}"
        )
    return base


def _check_axis(
    axis: str, values: list[Any], centre: dict[str, Any], known: list[str], schema: dict[str, Any]
) -> None:
    if axis not in known:
        raise EmsError(f"sweep.axes.{axis}: unknown setting{_hint(axis, known)}")
    allowed = schema["properties"]["systems"]["additionalProperties"]
    for item in values:
        check(_nested(axis, item), {"$defs": schema["$defs"], **allowed}, "sweep.axes")
    if _at(centre, axis) not in values:
        raise EmsError(
            f"sweep.axes.{axis}: {written(_at(centre, axis))}, the value of the base, is not among "
            f"{', '.join(map(written, values))}; add it, or change the base"
        )


def _hint(axis: str, known: list[str]) -> str:
    """The paths that end alike, else those that look alike."""
    last = axis.rpartition(".")[2]
    near = [path for path in known if path.endswith(f".{last}")]
    near = near or difflib.get_close_matches(axis, known, n=3)
    near = near or [p for p in known if difflib.get_close_matches(last, [p.rpartition(".")[2]])]
    if near:
        return f" (did you mean {' or '.join(near)}?)"
    return f"; a path of keys is expected, like {known[0]}"


def _check_names(
    points: list[Point], made: dict[str, Any], systems: dict[str, dict[str, Any]]
) -> None:
    """Raise `EmsError` where two points, or a point and a system, have one name."""
    taken = dict.fromkeys(systems, "a system")
    for point in points:
        if not point.chosen and point.system in taken:
            raise EmsError(
                f"sweep.axes.{point.axis}: the system of {point.shown} would be named "
                f"{point.system}, as {taken[point.system]}; rename the system, or take one out"
            )
        taken[point.system] = f"that of {point.axis} {point.shown}"
    for name in set(made) & set(systems):
        raise EmsError(f"systems.{name}: the sweep makes a system of this name; rename it")


def _paths(schema: dict[str, Any]) -> Iterator[str]:
    """Every setting of a system as a path of keys, like "objectives.xtr.weight"."""
    for section in SECTIONS:
        yield from _leaves(section, schema["$defs"][section])


def _leaves(path: str, schema: dict[str, Any]) -> Iterator[str]:
    if "properties" not in schema:
        yield path
    for key, part in schema.get("properties", {}).items():
        yield from _leaves(f"{path}.{key}", part)


def _nested(axis: str, value: Any) -> dict[str, Any]:
    """{"model": {"layers": 2}} for "model.layers"."""
    for key in reversed(axis.split(".")):
        value = {key: value}
    return value


def _at(system: dict[str, Any], axis: str) -> Any:
    """The value at a path of keys; None for a setting that has no default and is not set."""
    found: Any = system
    for key in axis.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found
