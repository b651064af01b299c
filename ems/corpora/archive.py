"""Unpack zip, tar (plain, .gz, .bz2) and single .gz or .bz2 files that others made.

The first bytes say what an archive is, since a temporary file has no telling name. Everything
streams within the limits of `packed`; all members of a compressed tar count, wanted or not, and a
tar must end with its end mark, since Python's reader takes a damaged header for the end. A member
is refused for its name or type even if it is not wanted: an archive that holds `../x` is not the
one that was meant.
"""

import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ems.base.errors import Damaged, EmsError
from ems.corpora.packed import (
    BLOCK,
    LIMITS,
    REFUSED,
    Budget,
    Limits,
    check_member,
    decompressed,
    first_bytes,
    guarded,
    open_member,
    open_zip,
    reading,
)

__all__ = ["Limits", "unpack"]

HEADER = 1 << 20  # bytes of one header of a tar, long names and pax records included
TAR = re.compile(r"\.(tar|tgz|tbz2?)(\.|$)")
Members = Iterator[tuple[str, BinaryIO]]  # (place below the folder, content) of those wanted


def unpack(
    archive: Path, wanted: Callable[[str], str | None], out: Path, limits: Limits = LIMITS
) -> list[Path]:
    """Write the members that `wanted` names to `out`; return the files in the archive's order.

    `wanted` gets each member's name, tidied ("./a//b" as "a/b"), and returns its place below `out`,
    or None to leave it out; a single .gz or .bz2 has one member, its own name without the suffix.
    `out` is a temporary folder of the caller's, who removes it after an error. Raises `EmsError`
    for links, devices, names that lead elsewhere, two members for one place, too much data, damage,
    and if nothing is wanted.
    """
    read = {"zip": _read_zip, "tar": _read_tar, "single": _read_single}[_kind(archive)]
    choice = _Choice(Budget(archive, limits), wanted)
    written = [_write(stream, out / place, archive) for place, stream in read(choice)]
    if not written:
        raise EmsError(
            f"{archive}: none of its {choice.count:,} members is one of those expected"
            f"{choice.example}; check that the address is right"
        )
    return written


def _write(stream: BinaryIO, target: Path, archive: Path) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as writer:
            while block := stream.read(BLOCK):
                writer.write(block)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise EmsError(f"{archive}: two of its members lead to {target}; {REFUSED}") from None
    return target


class _Choice:
    """Checks the name of each member and asks `wanted` for its place."""

    def __init__(self, budget: Budget, wanted: Callable[[str], str | None]) -> None:
        self.budget, self.archive, self.wanted = budget, budget.archive, wanted
        self.count, self.example = 0, ""

    def __call__(self, name: str, folder: bool = False) -> str | None:
        self.count += 1
        most = self.budget.limits.max_members
        if self.count > most:
            raise EmsError(f"{self.archive}: has more than {most:,} members; {REFUSED}")
        name = self._checked(name, folder)
        if folder:
            return None
        self.example = self.example or f" (the first is {name!r})"
        place = self.wanted(name)
        return place if place is None else self._checked(place)

    def _checked(self, name: str, folder: bool = False) -> str:
        """Return a name without `.` and double slashes.

        Raises `EmsError` for one that could lead out of a folder, here or on another system.
        """
        problems = {
            "an absolute name": name.startswith("/"),
            "a name with `..`": ".." in name.split("/"),
            "a name with a backslash": "\\" in name,
            "a name with a drive letter": re.match(r"[A-Za-z]:", name) is not None,
            "a name with control characters": any(ord(c) < 32 or ord(c) == 127 for c in name),
        }
        for problem, is_so in problems.items():
            if is_so:
                raise EmsError(f"{self.archive}: holds {problem}, {name!r}; {REFUSED}")
        tidy = str(PurePosixPath(name))
        if tidy == "." and not folder:
            raise EmsError(f"{self.archive}: holds a file without a name; {REFUSED}")
        return tidy


def _kind(archive: Path) -> str:
    start = first_bytes(archive)
    if start.startswith(b"PK"):
        return "zip"
    compressed = start.startswith((b"\x1f\x8b", b"BZh"))
    if compressed:
        with reading(archive), decompressed(archive) as stream:
            start = stream.read(512)
    if start[257:262] == b"ustar" or TAR.search(archive.name.lower()):
        return "tar"
    if compressed:
        return "single"
    raise Damaged(
        archive, f"expected a zip, tar, gz or bz2, found a file that begins with {start[:16]!r}"
    )


def _read_single(choice: _Choice) -> Members:
    archive = choice.archive
    place = choice(archive.name.removesuffix(".gz").removesuffix(".bz2"))
    if place is not None:
        with guarded(decompressed(archive), archive, choice.budget) as stream:
            yield place, stream


def _read_zip(choice: _Choice) -> Members:
    with open_zip(choice.archive, choice.budget.limits) as packed:
        chosen = []
        for info in packed.infolist():  # all are checked before one is written
            check_member(choice.archive, info)
            chosen.append((choice(info.filename, info.is_dir()), info))
        for place, info in chosen:
            if place is not None:
                with open_member(packed, info, choice.budget) as stream:
                    yield place, stream


class _Tape:
    """A tar as tarfile reads it: forwards only, and at most `left` bytes at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.place, self.last, self.left = stream, 0, b"", HEADER

    def read(self, size: int = -1) -> bytes:
        self.left -= size
        if size < 0 or self.left < 0:
            raise tarfile.ReadError(f"headers of {HEADER - self.left:,} bytes")
        return self.take(size)

    def take(self, size: int) -> bytes:
        self.last = self.stream.read(size)
        self.place += len(self.last)
        return self.last

    def tell(self) -> int:
        return self.place

    def seek(self, place: int) -> None:
        if place < self.place:
            raise tarfile.ReadError("a header that leads backwards")
        while self.place < place and self.take(min(BLOCK, place - self.place)):
            pass

    def finish(self) -> None:
        """Check the end mark, and read on to the end of the stream for its checksum."""
        if self.last != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError("no end mark where the members end")
        while self.take(BLOCK):
            pass


def _read_tar(choice: _Choice) -> Members:
    archive = choice.archive
    with reading(archive), guarded(decompressed(archive), archive, choice.budget) as stream:
        tape = _Tape(stream)
        with tarfile.open(fileobj=tape, mode="r:") as packed:  # type: ignore[call-overload]
            while (member := packed.next()) is not None:
                packed.members = []  # they would all stay in memory
                _check_type(archive, member)
                place = choice(member.name, member.isdir())
                if place is not None:
                    tape.left = member.size
                    yield place, guarded(packed.extractfile(member), archive)
                tape.left = HEADER
        tape.finish()


def _check_type(archive: Path, member: tarfile.TarInfo) -> None:
    plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
    if not (plain or member.isdir()):
        raise EmsError(
            f"{archive}: {member.name!r} is a link, a device or a sparse file; {REFUSED}"
        )
