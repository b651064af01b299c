"""Read third-party archives (.zip, .tar, .gz, .bz2, .xz, .zst) within limits on size and memory.

Sizes in headers are not trusted: every unpacked byte is counted against the limits. A zip's table
of contents, tar headers and line lengths are bounded too, so no archive can exhaust the memory.

`unpack` is stricter than the data filter of PEP 706, which strips the `/` of an absolute name and
creates links: here any member with a dangerous name or type is an error, even an unwanted one.
"""

import io
import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import reading_bytes
from ems.base.texts import BLOCK, form_of, unpacked

SMALL = 1 << 24  # bytes that every archive may unpack to, whatever its ratio (repeated lines)
LONGEST_LINE = 1 << 24  # bytes
LONGEST_HEADER = 1 << 16  # bytes of a tar header: a long name, or pax records
EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
EXTENDED += (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
TABLE_ENTRY = 256  # bytes of an entry in a zip's table, more than names need
END_RECORD = 22  # bytes of a zip's last record, without its comment
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # Python unpacks others without a bound
TAR_NAME = re.compile(r"\.(tar|tgz|tbz2?)(\.|$)")
REFUSED = "it is not unpacked: check where it came from"
# Exceptions of the readers for a damaged archive: RuntimeError (RecursionError too) for an unknown
# version or flag of a zip and for nested headers, ValueError and KeyError for invalid numbers
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, struct.error, EOFError, OSError)
DAMAGED += (RuntimeError, ValueError, KeyError, OverflowError, lzma.LZMAError)

Member = tuple[str, bool, Callable[[], BinaryIO]]  # name, is a folder, opens the content


@dataclass(frozen=True)
class Limits:
    max_bytes: int = 64 << 30  # unpacked, of all members together
    max_ratio: float = 100.0  # unpacked to packed; text has 3 to 10, and SMALL is always allowed
    max_members: int = 100_000


LIMITS = Limits()


class Budget:
    def __init__(self, archive: Path, limits: Limits = LIMITS) -> None:
        self.archive, self.limits, self.used = archive, limits, 0
        self.packed = archive.stat().st_size

    def spend(self, count: int) -> None:
        """Add `count` unpacked bytes. Raises `EmsError` if the total exceeds a limit."""
        self.used += count
        if self.used > self.limits.max_bytes:
            limit = f"the limit of {self.limits.max_bytes:,} bytes"
        elif self.used > max(SMALL, self.limits.max_ratio * self.packed):
            limit = f"{self.limits.max_ratio:g} times its {self.packed:,} bytes"
        else:
            return
        raise EmsError(f"{self.archive}: unpacks to more than {limit}; {REFUSED}")


@contextmanager
def reading(archive: Path) -> Iterator[None]:
    """Turn a reader's exceptions for a damaged archive into `Damaged`. Do not write inside."""
    try:
        yield
    except DAMAGED as error:
        reason = getattr(error, "strerror", None) or error
        raise Damaged(archive, f"damaged or cut short ({reason})") from None


class _Guarded(io.RawIOBase):
    def __init__(self, stream: BinaryIO, archive: Path, budget: Budget | None) -> None:
        self.stream, self.archive, self.budget = stream, archive, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with reading(self.archive):
            block = self.stream.read(min(len(buffer), BLOCK))
        if self.budget:
            self.budget.spend(len(block))
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self.stream.close()
        super().close()


def guarded(stream: BinaryIO, archive: Path, budget: Budget | None = None) -> BinaryIO:
    """Wrap a stream so that damage raises `Damaged` and every byte is charged to `budget`."""
    return io.BufferedReader(_Guarded(stream, archive, budget), BLOCK)


def stream_lines(stream: BinaryIO, location: str) -> Iterator[bytes]:
    """Yield the lines of a stream, split at LF only. Raises `EmsError` for an overlong line."""
    lines = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE:
            raise mistake("line too long", location=location, number=number, limit=LONGEST_LINE)
        yield line


def count_stream_lines(stream: BinaryIO) -> int:
    """Count the lines left in a stream, including a last line without LF."""
    lines, last = 0, b"\n"
    while block := stream.read(BLOCK):
        lines += block.count(b"\n")
        last = block[-1:]
    return lines + (last != b"\n")


def first_bytes(archive: Path) -> bytes:
    with reading_bytes(archive) as reader:
        return reader.read(512)


def decompressed(archive: Path) -> BinaryIO:
    """Open a compressed or plain file for reading; its first bytes decide which it is."""
    form = form_of(first_bytes(archive))
    return unpacked(archive, form, archive) if form else open(archive, "rb")


def open_packed(archive: Path) -> BinaryIO:
    if not first_bytes(archive):
        raise Damaged(archive, "is empty")
    return guarded(decompressed(archive), archive, Budget(archive))


# --- zip


class _Bounded(io.FileIO):
    max_read = 0  # bytes per read

    def read(self, size: int = -1) -> bytes:  # type: ignore[override]
        if size > self.max_read:
            raise mistake("too many members", this=self, size=size, refused=REFUSED)
        return super().read(size)


@contextmanager
def open_zip(archive: Path, limits: Limits = LIMITS) -> Iterator[zipfile.ZipFile]:
    """Open a zip for `open_member`. Raises `Damaged` if it is not a valid zip."""
    first_bytes(archive)
    with _Bounded(str(archive)) as file:
        file.max_read = max(1 << 20, limits.max_members * TABLE_ENTRY)
        try:
            packed = zipfile.ZipFile(file)
        except DAMAGED:
            raise Damaged(archive, "not a zip archive") from None
        with packed:
            # Python does not compare the member count of the end record with the table, in which a
            # damaged length hides the next member
            file.seek(-END_RECORD - len(packed.comment), io.SEEK_END)
            record, count = file.read(END_RECORD), len(packed.infolist())
            stated = int.from_bytes(record[10:12], "little")  # 0xFFFF: in the record of zip64
            if not record.startswith(b"PK\x05\x06") or stated not in (count & 0xFFFF, 0xFFFF):
                problem = f"its end counts {stated:,} members, its table has {count:,}"
                raise Damaged(archive, f"damaged ({problem})")
            yield packed


def open_member(packed: zipfile.ZipFile, member: str | zipfile.ZipInfo, budget: Budget) -> BinaryIO:
    """Open a member by unique name or by entry. Raises `EmsError` if ambiguous or refused."""
    if isinstance(member, str):
        members = [info for info in packed.infolist() if info.filename == member]
        if len(members) != 1:
            words = {"archive": budget.archive, "member": member, "count": len(members)}
            raise mistake("which member", **words, refused=REFUSED)
        member = members[0]
    check_member(budget.archive, member)
    with reading(budget.archive):
        stream = packed.open(member)
    return guarded(stream, budget.archive, budget)


def check_member(archive: Path, info: zipfile.ZipInfo) -> None:
    """Raise `EmsError` for a link, a device, encryption, or an unsupported compression method."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise EmsError(f"{archive}: {info.filename!r} is a link or a device; {REFUSED}")
    if info.flag_bits & 0x41:  # bit 0: encrypted; bit 6: strongly so
        raise EmsError(f"{archive}: {info.filename!r} is encrypted; fetch a plain copy")
    if info.compress_type not in METHODS:
        raise mistake("packing method", archive=archive, info=info)


# --- unpacking


def unpack(
    archive: Path, target_of: Callable[[str], str | None], out: Path, limits: Limits = LIMITS
) -> list[Path]:
    """Write the members that `target_of` maps to a path below `out`; return the paths in order.

    Raises `EmsError` for links, devices, names that lead out of `out`, two members with one target,
    too much data, damage, and if no member is selected; the caller then removes `out`.
    """
    number, example, written = 0, "", []
    for number, (member, is_folder, open_it) in enumerate(_members(archive, limits), start=1):
        if number > limits.max_members:
            raise EmsError(f"{archive}: has more than {limits.max_members:,} members; {REFUSED}")
        name = _tidy(archive, member, is_folder)
        if is_folder:
            continue
        example = example or f" (the first is {name!r})"
        if (relative := target_of(name)) is None:
            continue
        target = out / _tidy(archive, relative)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_it() as stream, open(target, "xb") as writer:
                while block := stream.read(BLOCK):
                    writer.write(block)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise EmsError(f"{archive}: two of its members lead to {target}; {REFUSED}") from None
        written.append(target)
    if not written:
        raise mistake("no expected member", archive=archive, number=number, example=example)
    return written


def _members(archive: Path, limits: Limits) -> Iterator[Member]:
    start, budget = first_bytes(archive), Budget(archive, limits)
    if start.startswith(b"PK"):
        return _zip_members(archive, budget)
    compressed = form_of(start) in ("gzip", "bzip2")
    if compressed:
        with reading(archive), decompressed(archive) as stream:
            start = stream.read(512)
    if start[257:262] == b"ustar" or TAR_NAME.search(archive.name.lower()):
        return _tar_members(archive, budget)
    if compressed:
        name = archive.name.removesuffix(".gz").removesuffix(".bz2")
        return iter([(name, False, lambda: guarded(decompressed(archive), archive, budget))])
    found = f"a file that begins with {start[:16]!r}"
    raise Damaged(archive, f"expected a zip, tar, gz or bz2, found {found}")


def _tidy(archive: Path, name: str, is_folder: bool = False) -> str:
    """Normalise `.` and `//` in a name. Raises `EmsError` if it could lead out of the folder."""
    problems = {
        "an absolute name": name.startswith("/"),
        "a name with `..`": ".." in name.split("/"),
        "a name with a backslash": "\\" in name,
        "a name with a drive letter": re.match(r"[A-Za-z]:", name) is not None,
        "a name with control characters": any(ord(c) < 32 or ord(c) == 127 for c in name),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise EmsError(f"{archive}: holds {problem}, {name!r}; {REFUSED}")
    tidy = str(PurePosixPath(name))
    if tidy == "." and not is_folder:
        raise EmsError(f"{archive}: holds a file without a name; {REFUSED}")
    return tidy


def _zip_members(archive: Path, budget: Budget) -> Iterator[Member]:
    with open_zip(archive, budget.limits) as packed:
        for info in packed.infolist():
            check_member(archive, info)
        for info in packed.infolist():
            yield info.filename, info.is_dir(), partial(open_member, packed, info, budget)


def _tar_members(archive: Path, budget: Budget) -> Iterator[Member]:
    with reading(archive), guarded(decompressed(archive), archive, budget) as stream:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as packed:
            while (member := packed.next()) is not None:
                packed.members = []  # tarfile would keep them all in memory
                plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
                if not (plain or member.isdir()):
                    raise mistake("link or device", archive=archive, member=member, refused=REFUSED)
                content = packed.extractfile(member)
                yield member.name, member.isdir(), partial(guarded, content, archive)
        while stream.read(BLOCK):  # the checksum follows the end mark
            pass


class _Header(tarfile.TarInfo):
    """Tar header of bounded size; a damaged header is an error, not the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes, encoding: str, errors: str) -> tarfile.TarInfo:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError:
            if buf == bytes(tarfile.BLOCKSIZE):  # the end mark
                raise
            raise tarfile.ReadError("no end mark where the members end") from None
        if header.type in EXTENDED and header.size > LONGEST_HEADER:
            raise tarfile.ReadError(f"headers of {header.size:,} bytes")
        if header.type == tarfile.GNUTYPE_SPARSE:  # its header has no bound
            raise tarfile.ReadError(f"{header.name!r} is a sparse file")
        return header
