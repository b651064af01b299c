"""Moses zips of OPUS: `<corpus>/<version>/moses/<a>-<b>.txt.zip`, checked and streamed.

Notable choices:
- only the two expected members `<corpus>.<a>-<b>.<a>` and `.<b>` are read, by name: nothing else in
  an archive is ever looked at or unpacked to disk;
- a line ends at LF and nowhere else, so a stray U+2028 or CR cannot shift one side against the
  other;
- both sides are counted before anything is used: unequal counts are an error, never a truncation.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ems.errors import EmsError

BLOCK = 1 << 20  # bytes read at once
LINES = 1000  # decoded at once
# what zipfile raises for a spoilt archive: RuntimeError for an unknown method, version or flag
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, UnicodeDecodeError)


def members(corpus: str, pair: str) -> tuple[str, str]:
    """The names of the two text members of a pair's archive."""
    first, second = pair.split("-")
    return f"{corpus}.{pair}.{first}", f"{corpus}.{pair}.{second}"


def count_pairs(path: Path, corpus: str, pair: str) -> int:
    """Number of sentence pairs. Raises `EmsError` on a bad archive or on unequal sides."""
    names = members(corpus, pair)
    with _open(path, names) as archive:
        try:
            counts = [_count_lines(archive, name) for name in names]
        except DAMAGED as error:
            raise EmsError(f"{path}: damaged ({error}); delete it and fetch it again") from None
    if counts[0] != counts[1]:
        raise EmsError(
            f"{path}: the two sides must have equal line counts, but {names[0]} has {counts[0]:,} "
            f"and {names[1]} has {counts[1]:,} lines; the file is broken at its source"
        )
    if not counts[0]:
        raise EmsError(f"{path}: no sentence pairs in it ({names[0]} is empty)")
    return counts[0]


def read_pairs(
    path: Path, corpus: str, pair: str, undecodable: str = "error"
) -> Iterator[tuple[str | None, str | None]]:
    """Stream the pairs of an archive as text, line ends removed.

    Raises `EmsError` on text that is not UTF-8, with the member and the line number; with
    `undecodable="drop"` such a side is None, and the caller counts the pair.
    """
    names = members(corpus, pair)
    with (
        _open(path, names) as archive,
        archive.open(names[0]) as left,
        archive.open(names[1]) as right,
    ):
        sides = [io.BufferedReader(member, BLOCK) for member in (left, right)]
        pairs, number = zip(*sides, strict=True), 1
        while batch := list(islice(pairs, LINES)):
            texts = [
                _decode_all(lines, undecodable, f"of {name}", path, number)
                for name, lines in zip(names, zip(*batch, strict=True), strict=True)
            ]
            yield from zip(*texts, strict=True)
            number += len(batch)


def _decode_all(
    lines: tuple[bytes, ...], undecodable: str, member: str, path: Path, number: int
) -> list[str | None]:
    """The texts of some lines, the first of which has this number."""
    try:
        text = b"".join(lines).decode()
        suspect = "\0" in text
    except UnicodeDecodeError:
        suspect = True
    if suspect:
        numbered = enumerate(lines, start=number)
        return [_decode(line, undecodable, member, path, at) for at, line in numbered]
    texts = text.removesuffix("\n").split("\n")
    return [line.rstrip("\r") for line in texts] if "\r" in text else texts


def _decode(line: bytes, undecodable: str, member: str, path: Path, number: int) -> str | None:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        found = "UTF-16: every other character is NUL" if _is_utf16(text) else ""
    except UnicodeDecodeError as error:
        found = error.reason
    if not found:
        return text
    if undecodable == "drop":
        return None
    raise EmsError(
        f"{path}: line {number:,} {member} is not UTF-8 ({found}); convert the corpus to UTF-8, "
        "or set clean.undecodable: drop"
    )


def _is_utf16(text: str) -> bool:
    """Whether a line of ASCII in UTF-16, without its byte order mark, was read as UTF-8."""
    return len(text) >= 4 and (set(text[::2]) == {"\0"}) != (set(text[1::2]) == {"\0"})


def _open(path: Path, names: tuple[str, str]) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise EmsError(f"{path}: no such file; fetch it first") from None
    except PermissionError:
        raise EmsError(f"{path}: not readable; check the permissions of the file") from None
    except DAMAGED:
        raise EmsError(f"{path}: not a zip archive; delete it and fetch it again") from None
    missing = [name for name in names if name not in archive.namelist()]
    if missing:
        found = ", ".join(sorted(archive.namelist())) or "nothing"
        archive.close()
        raise EmsError(f"{path}: expected the member {missing[0]}, found {found}")
    return archive


def _count_lines(archive: zipfile.ZipFile, name: str) -> int:
    count, last = 0, b"\n"
    with archive.open(name) as member:
        while block := member.read(BLOCK):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")  # a last line without LF counts
