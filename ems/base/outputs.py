"""Check the outputs of a command against existing files and its inputs, before any work is done.

An output is never an input or a file in a folder that is read, and no two outputs are the same.
Paths are compared after resolving them, so another spelling or a link makes no difference.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from pkgutil import resolve_name
from typing import Literal

from ems.base.errors import EmsError, mistake
from ems.base.files import check_readable, check_target, kind_of

# "folder": files are added; "whole folder": replaced as one; "state": emptied at the end
OutputKind = Literal["file", "folder", "whole folder", "state"]
REPLACED = ("state", "whole folder")
LOST = "which would be lost; choose another name"


@dataclass(frozen=True)
class Writes:
    """The output of a command at a path. A file is written under each of `suffixes`, "" for the
    path itself; without "", the name must end in one of them. `names` are files in a folder that
    are known in advance. A whole folder is replaced if `ours`, "module:function", is true of it.
    """

    kind: OutputKind = "file"
    suffixes: tuple[str, ...] = ("",)
    names: tuple[str, ...] = ()
    ours: str = ""

    def check_suffix(self, flag: str, path: Path) -> None:
        """Raise `EmsError` if a file's name ends in none of the suffixes."""
        if self.kind == "file" and "" not in self.suffixes and path.suffix not in self.suffixes:
            *others, last = self.suffixes
            words = {"found": path.suffix or "none of them", "others": others, "last": last}
            raise mistake("other suffix", flag=flag, path=path, **words)

    def paths(self, flag: str, path: Path) -> list["FlagPath"]:
        if self.kind != "file":
            files = [FlagPath(flag, path / name) for name in self.names]
            return [FlagPath(flag, path, self.kind, self.ours), *files]
        suffixes = [suffix or path.suffix for suffix in self.suffixes]
        return [FlagPath(flag, path.with_suffix(each) if path.name else path) for each in suffixes]


@dataclass(frozen=True)
class FlagPath:
    flag: str
    path: Path
    kind: OutputKind = "file"
    ours: str = ""

    @cached_property
    def real(self) -> Path:
        return Path(os.path.realpath(self.path))

    def __str__(self) -> str:
        return f"{self.flag} {self.path}"

    def same(self, other: "FlagPath") -> bool:
        """Return whether both lead to the same place, for files also through a hard link."""
        with suppress(OSError):
            return self.real == other.real or os.path.samefile(self.path, other.path)
        return False

    def check_outside(self, outer: "FlagPath") -> None:
        """Raise `EmsError` if the path is inside a folder that is replaced."""
        if outer.kind in REPLACED and self.real.is_relative_to(outer.real):
            raise EmsError(f"{self}: inside {outer}, which is replaced; choose another place")


def check_outputs(outputs: list[FlagPath], inputs: Iterable[FlagPath]) -> None:
    """Raise `EmsError` if an output cannot be written, or would destroy an input or output."""
    for place in outputs:
        try:
            if place.kind in ("file", "whole folder"):
                check_target(place.path, resolve_name(place.ours) if place.ours else None)
            elif (kind := kind_of(place.path)) not in ("nothing", "a folder"):
                raise EmsError(f"{place.path}: expected a folder, found {kind}")
        except EmsError as error:
            raise EmsError(f"{place.flag} {error}") from None
    for other, place in combinations(outputs, 2):
        if place.same(other):
            raise EmsError(f"{place}: the same place as {other}; give each a name of its own")
        other.check_outside(place)
        place.check_outside(other)
    for source in inputs:
        check_readable(source.path, source.flag)
        for place in outputs:
            if place.same(source):
                raise EmsError(f"{place}: the same place as {source}, {LOST}")
            source.check_outside(place)
            if place.kind == "file" and source.real in place.real.parents and place.path.exists():
                raise EmsError(f"{place}: a file of {source}, {LOST}")
