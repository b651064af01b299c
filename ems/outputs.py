"""What a command writes, checked against what is there and what it reads before any work is done.

A file replaces only a regular file (files.py), an output is never an input or a file of a folder
that is read, and no two outputs are the same. Paths are compared by what they lead to, so another
spelling or a link changes nothing.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ems.errors import EmsError
from ems.files import check_readable, check_target, kind_of


@dataclass(frozen=True)
class Out:
    """What a command writes to `--out`.

    `kind` is "file", "folder" (files are put into it) or "whole folder" (replaced as one, if `ours`
    returns true for it). A file is written under each of `suffixes`: ("", ".json") is the file
    itself and one beside it; without "" the name must end in one of them. `names` are those of the
    files that are put into a folder, as far as they are known before. An output that is not
    `required` is `default` when it is not named.
    """

    kind: str = "file"
    suffixes: tuple[str, ...] = ("",)
    names: tuple[str, ...] = ()
    ours: Callable[[Path], bool] | None = None
    required: bool = True
    default: Path | None = None


FILE = Out()


@dataclass(frozen=True)
class Place:
    """A path that a flag names."""

    flag: str
    path: Path
    kind: str = "file"  # or "folder", "whole folder", "state": a folder that is emptied at the end

    @cached_property
    def real(self) -> Path:
        """Where it leads to, links followed."""
        return Path(os.path.realpath(self.path))

    def __str__(self) -> str:
        return f"{self.flag} {self.path}"


def places_of(flag: str, path: Path, out: Out) -> list[Place]:
    """Return the places that an output takes."""
    if out.kind != "file":
        return [Place(flag, path, out.kind), *(Place(flag, path / name) for name in out.names)]
    named = [suffix or path.suffix for suffix in out.suffixes]
    return [Place(flag, path.with_suffix(suffix) if path.name else path) for suffix in named]


def check_suffix(flag: str, path: Path, out: Out) -> None:
    """Raise `EmsError` for a name that does not end in one of the suffixes of an output."""
    if out.kind == "file" and "" not in out.suffixes and path.suffix not in out.suffixes:
        *others, last = out.suffixes
        raise EmsError(
            f"{flag} {path}: expected a name that ends in {', '.join(others)} or {last}, found "
            f"{path.suffix or 'none of them'}; all of them are written side by side"
        )


def check_outputs(outputs: list[Place], inputs: Iterable[Place], out: Out = FILE) -> None:
    """Raise `EmsError` when an output cannot be written, or would destroy an input or another one.

    `out` says which folder `--out` may replace.
    """
    for place in outputs:
        _check_kind(place, out)
    for at, place in enumerate(outputs):
        for other in outputs[:at]:
            _check_apart(place, other)
    for source in inputs:
        check_readable(source.path, source.flag)
        for place in outputs:
            _check_input(place, source)


def _check_kind(place: Place, out: Out) -> None:
    try:
        if place.kind == "file":
            check_target(place.path)
        elif place.kind == "whole folder":
            check_target(place.path, out.ours)
        elif kind_of(place.path) not in ("nothing", "a folder"):
            raise EmsError(f"{place.path}: expected a folder, found {kind_of(place.path)}")
    except EmsError as error:
        raise EmsError(f"{place.flag} {error}") from None


def _check_apart(place: Place, other: Place) -> None:
    if _same(place, other):
        raise EmsError(f"{place}: the same place as {other}; give each a name of its own")
    for outer, inner in ((place, other), (other, place)):
        if outer.kind in ("state", "whole folder") and inner.real.is_relative_to(outer.real):
            raise EmsError(f"{inner}: inside of {outer}, which is replaced; choose another place")


def _check_input(place: Place, source: Place) -> None:
    if _same(place, source):
        raise EmsError(
            f"{place}: the same place as {source}, which would be lost; choose another name"
        )
    inside = source.real.is_relative_to(place.real)
    if place.kind in ("state", "whole folder") and inside:
        raise EmsError(f"{source}: inside of {place}, which is replaced; choose another place")
    if place.kind == "file" and place.real.is_relative_to(source.real) and place.path.exists():
        raise EmsError(f"{place}: a file of {source}, which would be lost; choose another name")


def _same(one: Place, other: Place) -> bool:
    if one.real == other.real:
        return True
    try:
        return os.path.samefile(one.path, other.path)
    except OSError:
        return False
