"""Read archives and packed files (.zip, .gz, .bz2, .xz, .zst) that others made, within limits.

Sizes in headers are never believed: every byte that comes out is counted against the limits before
anyone sees it. A zip's table of contents, which Python reads whole, and the length of a line are
bounded too, so no archive decides how much memory it takes. Members of zips must be stored or
deflated: Python unpacks the other methods without a bound.
"""

import bz2
import gzip
import io
import lzma
import math
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ems.base.errors import Damaged, EmsError
from ems.base.files import unreadable

BLOCK = 1 << 18  # bytes read at once
SMALL = 1 << 24  # bytes that any archive may unpack to, whatever its ratio: repeated lines
LONGEST = 1 << 24  # bytes of a line
ENTRY = 256  # bytes of an entry in a zip's table, more than names need
END = 22  # bytes of a zip's last record, without its comment
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
REFUSED = "it is not unpacked: check where it came from"
# What the readers raise for a damaged archive: RuntimeError (RecursionError too) for an unknown
# version or flag of a zip and for headers within headers, ValueError and KeyError for odd numbers
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, struct.error, EOFError, OSError)
DAMAGED += (RuntimeError, ValueError, KeyError, OverflowError, lzma.LZMAError)


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold."""

    max_bytes: int = 64 << 30  # unpacked, of all members together
    max_ratio: float = 100.0  # unpacked to packed; text has 3 to 10, and SMALL is always allowed
    max_members: int = 100_000


LIMITS = Limits()
OWN = Limits(1 << 42, math.inf)  # of the user's own files, which are never unpacked to disk


class Budget:
    """Counts the bytes that come out of an archive against its limits."""

    def __init__(self, archive: Path, limits: Limits = LIMITS) -> None:
        self.archive, self.limits, self.used = archive, limits, 0
        self.packed = archive.stat().st_size

    def spend(self, count: int) -> None:
        """Count `count` bytes more. Raises `EmsError` if that is beyond a limit."""
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
    """Raise `Damaged` for what a reader raises for a damaged archive. Write outside of it."""
    try:
        yield
    except DAMAGED as error:
        reason = getattr(error, "strerror", None) or error
        raise Damaged(archive, f"damaged or cut short ({reason})") from None


class _Guarded(io.RawIOBase):
    """A stream out of an archive whose damage is raised as `Damaged`, and which spends a budget."""

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
    """Return a stream of `archive` that raises `Damaged`, and counts its bytes in `budget`."""
    return io.BufferedReader(_Guarded(stream, archive, budget), BLOCK)


def read_lines_of(stream: BinaryIO, where: str) -> Iterator[bytes]:
    """Yield the lines of a stream with their ends; only LF ends a line.

    Raises `EmsError` that names `where` for a line longer than LONGEST.
    """
    number = 0
    while line := stream.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise EmsError(
                f"{where}: line {number:,} is longer than {LONGEST:,} bytes; this is no text of "
                "sentences: check where it came from"
            )
        yield line


def count_lines_of(stream: BinaryIO) -> int:
    """Return the number of lines that are left in a stream; a last one without LF counts."""
    count, last = 0, b"\n"
    while block := stream.read(BLOCK):
        count += block.count(b"\n")
        last = block[-1:]
    return count + (last != b"\n")


def first_bytes(archive: Path) -> bytes:
    """Return the first 512 bytes of a file. Raises `EmsError` if it cannot be read."""
    try:
        with open(archive, "rb") as reader:
            return reader.read(512)
    except OSError as error:
        raise unreadable(archive, error) from None


def decompressed(archive: Path) -> BinaryIO:
    """Open a packed or plain file to read its content; its first bytes say which it is."""
    start = first_bytes(archive)
    openers = {
        b"\x1f\x8b": gzip.open,
        b"BZh": bz2.open,
        b"\xfd7zXZ\0": lzma.open,
        b"\x28\xb5\x2f\xfd": _open_zstd,
    }
    chosen = next((openers[magic] for magic in openers if start.startswith(magic)), open)
    return chosen(archive, "rb")


def _open_zstd(archive: Path, mode: str) -> BinaryIO:
    """Open a .zst. Its reader refuses windows of more than 128 MB, and a file that is cut short."""
    try:
        from backports import zstd  # Python 3.14 has it as compression.zstd
    except ImportError:
        raise EmsError(
            f"{archive}: unpacking it needs backports.zstd: pip install -e '.[files]'"
        ) from None

    class File(zstd.ZstdFile):
        def read(self, size: int = -1) -> bytes:
            try:
                return super().read(size)
            except zstd.ZstdError as error:
                raise OSError(str(error)) from None

    return File(archive, mode)


def open_packed(archive: Path, limits: Limits = LIMITS) -> BinaryIO:
    """Open the content of a packed or plain file as a stream, within the limits."""
    if not first_bytes(archive):
        raise Damaged(archive, "is empty")
    return guarded(decompressed(archive), archive, Budget(archive, limits))


# --- zip


class _Bounded(io.FileIO):
    """A file that refuses to read pieces of more than `most` bytes."""

    most = 0

    def read(self, size: int = -1) -> bytes:  # type: ignore[override]
        if size > self.most:
            raise EmsError(
                f"{self.name}: its table of contents has {size:,} bytes, more than "
                f"{self.most:,}: too many members; {REFUSED}"
            )
        return super().read(size)


@contextmanager
def open_zip(archive: Path, limits: Limits = LIMITS) -> Iterator[zipfile.ZipFile]:
    """Open a zip for `open_member`. Raises `EmsError` if it is none."""
    first_bytes(archive)
    with _Bounded(str(archive)) as file:
        file.most = max(1 << 20, limits.max_members * ENTRY)
        try:
            packed = zipfile.ZipFile(file)
        except DAMAGED:
            raise Damaged(archive, "not a zip archive") from None
        with packed:
            _check_table(archive, file, packed)
            yield packed


def _check_table(archive: Path, file: _Bounded, packed: zipfile.ZipFile) -> None:
    """Raise `EmsError` unless the end record counts as many members as the table has.

    Python does not check that number, and a damaged length in the table hides the next member.
    """
    file.seek(-END - len(packed.comment), io.SEEK_END)
    record, count = file.read(END), len(packed.infolist())
    stated = int.from_bytes(record[10:12], "little")  # 0xFFFF: in the record of zip64
    if not record.startswith(b"PK\x05\x06") or stated not in (count & 0xFFFF, 0xFFFF):
        raise Damaged(
            archive, f"damaged (its end counts {stated:,} members, its table has {count:,})"
        )


def open_member(packed: zipfile.ZipFile, member: str | zipfile.ZipInfo, budget: Budget) -> BinaryIO:
    """Open a member of a zip as a stream. Raises `EmsError` if a name has not exactly one member,
    and for what `check_member` refuses.
    """
    if isinstance(member, str):
        members = [info for info in packed.infolist() if info.filename == member]
        if len(members) != 1:
            raise EmsError(
                f"{budget.archive}: expected one member {member}, found {len(members)}; {REFUSED}"
            )
        member = members[0]
    check_member(budget.archive, member)
    with reading(budget.archive):
        stream = packed.open(member)
    return guarded(stream, budget.archive, budget)


def check_member(archive: Path, info: zipfile.ZipInfo) -> None:
    """Raise `EmsError` for a link, a device, encryption, or a method without a bound."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise EmsError(f"{archive}: {info.filename!r} is a link or a device; {REFUSED}")
    if info.flag_bits & 0x41:  # bit 0: encrypted; bit 6: strongly so
        raise EmsError(f"{archive}: {info.filename!r} is encrypted; fetch a plain copy")
    if info.compress_type not in METHODS:
        raise EmsError(
            f"{archive}: {info.filename!r} is packed by method {info.compress_type}, expected "
            "stored or deflated (0 or 8); pack it again"
        )
