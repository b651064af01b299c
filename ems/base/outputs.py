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
from typing import Literal

from ems.base.errors import EmsError
from ems.base.files import check_readable, check_target, kind_of

# "folder": files are put into it; "whole folder": replaced as one; "state": emptied at the end
OutputKind = Literal["file", "folder", "whole folder", "state"]
REPLACED = ("state", "whole folder")


@dataclass(frozen=True)
class Writes:
    """What a command writes to a path.

    A file is written under each of `suffixes`: ("", ".json") is the file itself and one beside it;
    without "" the name must end in one of them. `names` are the files in a folder that are known
    before. A whole folder is replaced if `ours` returns true for it.
    """

    kind: OutputKind = "file"
    suffixes: tuple[str, ...] = ("",)
    names: tuple[str, ...] = ()
    ours: Callable[[Path], bool] | None = None

    def check_suffix(self, flag: str, path: Path) -> None:
        """Raise `EmsError` for the name of a file that ends in none of the suffixes."""
        if self.kind == "file" and "" not in self.suffixes and path.suffix not in self.suffixes:
            *others, last = self.suffixes
            raise EmsError(
                f"{flag} {path}: expected a name that ends in {', '.join(others)} or {last}, found "
                f"{path.suffix or 'none of them'}; all of them are written side by side"
            )


@dataclass(frozen=True)
class FlagPath:
    """A path that a flag names."""

    flag: str
    path: Path
    kind: OutputKind = "file"
    ours: Callable[[Path], bool] | None = None

    @cached_property
    def real(self) -> Path:
        """The path with links followed."""
        return Path(os.path.realpath(self.path))

    def __str__(self) -> str:
        return f"{self.flag} {self.path}"


def paths_of(flag: str, path: Path, writes: Writes) -> list[FlagPath]:
    """Return the places that an output takes."""
    if writes.kind != "file":
        files = [FlagPath(flag, path / name) for name in writes.names]
        return [FlagPath(flag, path, writes.kind, writes.ours), *files]
    suffixes = [suffix or path.suffix for suffix in writes.suffixes]
    return [FlagPath(flag, path.with_suffix(suffix) if path.name else path) for suffix in suffixes]


def check_outputs(outputs: list[FlagPath], inputs: Iterable[FlagPath]) -> None:
    """Raise `EmsError` if an output cannot be written, or would destroy an input or another one."""
    for place in outputs:
        _check_kind(place)
    for index, place in enumerate(outputs):
        for other in outputs[:index]:
            _check_apart(place, other)
    for source in inputs:
        check_readable(source.path, source.flag)
        for place in outputs:
            _check_input(place, source)


def _check_kind(place: FlagPath) -> None:
    try:
        if place.kind in ("file", "whole folder"):
            check_target(place.path, place.ours)
        elif kind_of(place.path) not in ("nothing", "a folder"):
            raise EmsError(f"{place.path}: expected a folder, found {kind_of(place.path)}")
    except EmsError as error:
        raise EmsError(f"{place.flag} {error}") from None


def _check_apart(place: FlagPath, other: FlagPath) -> None:
    if _same(place, other):
        raise EmsError(f"{place}: the same place as {other}; give each a name of its own")
    for outer, inner in ((place, other), (other, place)):
        _check_outside(inner, outer)


def _check_input(place: FlagPath, source: FlagPath) -> None:
    if _same(place, source):
        raise EmsError(
            f"{place}: the same place as {source}, which would be lost; choose another name"
        )
    _check_outside(source, place)
    if place.kind == "file" and place.real.is_relative_to(source.real) and place.path.exists():
        raise EmsError(f"{place}: a file of {source}, which would be lost; choose another name")


def _check_outside(inner: FlagPath, outer: FlagPath) -> None:
    if outer.kind in REPLACED and inner.real.is_relative_to(outer.real):
        raise EmsError(f"{inner}: inside of {outer}, which is replaced; choose another place")


def _same(one: FlagPath, other: FlagPath) -> bool:
    if one.real == other.real:
        return True
    try:
        return os.path.samefile(one.path, other.path)
    except OSError:
        return False
