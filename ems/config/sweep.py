"""A search for settings, one at a time, around a chosen point, as in EMS v2 Table II.

A point is an ordinary system: the base with one setting changed. Its name contains only its axis
and value, so that changing another axis or value does not retrain it.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from ems.base.errors import EmsError, mistake
from ems.base.records import Json
from ems.base.schema import Settings, checked, is_section
from ems.config.file import SweepEntry, overrides_model
from ems.config.systems import SystemSettings


@dataclass(frozen=True)
class SweepPoint:
    """A value on an axis, and its system; `chosen`: the base's value; `added`: not in the file."""

    axis: str  # like "model.layers"
    value: Any
    system: str
    chosen: bool
    added: bool


def written(value: Any) -> str:
    """Return a setting as text: 0.00001, never 1e-05; 0.0 as 0; a list with hyphens."""
    if isinstance(value, list):
        return "-".join(map(written, value))
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return str(value).lower() if isinstance(value, bool) else str(value)


def swept(
    sweep: SweepEntry, validated: bool, systems: dict[str, SystemSettings]
) -> tuple[tuple[SweepPoint, ...], dict[str, SystemSettings]]:
    """Return the points of a sweep, axis by axis, and the systems that they add. Raises `EmsError`
    for a wrong base, axis or value, an axis without the base's value, or if not `validated`.
    """
    base, trained = sweep.base, [name for name, system in systems.items() if system.trained]
    if base not in trained:
        raise mistake("sweep of no trained system", base=base, trained=trained)
    if not validated:
        raise EmsError("sweep: points are compared by validation loss; set `validation`")
    overrides = sweep.train.model_dump(exclude_unset=True)
    centre = systems[base].overridden({"train": overrides})
    centre_name = f"{base}.chosen" if overrides else base
    points: list[SweepPoint] = []
    added = {centre_name: centre} if overrides else {}
    taken = dict.fromkeys(systems, "a system")
    for axis, values in sweep.axes.items():
        at_base = _value_of(centre, axis, values)
        for value in values:
            chosen = value == at_base
            # ems.layers-2: a system, and a folder
            name = f"{base}.{axis.partition('.')[2]}-{written(value)}"
            name = centre_name if chosen else re.sub(r"[^A-Za-z0-9._-]", "_", name)
            points.append(SweepPoint(axis, value, name, chosen, bool(overrides) or not chosen))
            if not chosen:
                if name in taken:
                    words = {"axis": axis, "value": written(value), "other": taken[name]}
                    raise mistake("two points of a name", name=name, **words)
                added[name] = centre.overridden(_nested(axis, value))
            taken[name] = f"the system of {axis} {written(value)}"
    if overrides and centre_name in systems:
        raise EmsError(f"systems.{centre_name}: the sweep makes a system of this name; rename it")
    return tuple(points), added


def _value_of(centre: SystemSettings, axis: str, values: list[Any]) -> Any:
    """Return the value of the base on an axis. Raises `EmsError` if it is not among `values`."""
    paths = list(_paths(overrides_model()))
    if axis not in paths:
        raise EmsError(f"sweep.axes.{axis}: unknown setting{_hint(axis, paths)}")
    for value in values:
        checked(overrides_model(), _nested(axis, value), "sweep.axes")
    at_base = reduce(getattr, axis.split("."), centre)
    if at_base not in values:
        words = {"value": written(at_base), "values": list(map(written, values))}
        raise mistake("sweep without its base", axis=axis, **words)
    return at_base


def _hint(axis: str, paths: list[str]) -> str:
    last = axis.rpartition(".")[2]
    near = [path for path in paths if path.endswith(f".{last}")]
    near = near or difflib.get_close_matches(axis, paths, n=3)
    near = near or [p for p in paths if difflib.get_close_matches(last, [p.rpartition(".")[2]])]
    if near:
        return f" (did you mean {' or '.join(near)}?)"
    return f"; expected a path of keys, like {paths[0]}"


def _paths(settings: type[Settings], front: str = "") -> Iterator[str]:
    """Yield every setting of a system as a path of keys, like "objectives.xtr.weight"."""
    for key, field in settings.model_fields.items():
        if is_section(field.annotation):
            yield from _paths(field.annotation, f"{front}{key}.")
        else:
            yield f"{front}{key}"


def _nested(axis: str, value: Any) -> Json:
    for key in reversed(axis.split(".")):
        value = {key: value}
    return value
