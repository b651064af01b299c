"""Open a text: UTF-8, plain or compressed as its first bytes say, whatever its name.

Any other file is an error that names its kind (texts.tsv: by regular expressions for the first
bytes). A damaged file is an error that names the file. Texts are handled in batches.
"""

import bz2
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import check_readable, read_table, unreadable

STREAM = Path("-")  # standard input or output
START = 4096  # bytes that show what a file is
BLOCK = 1 << 18  # bytes read at once
LONGEST = 1_000_000  # maximum bytes of a line, or of a column that is read
LONGEST_ROW = 4 * LONGEST  # with the columns that are not read
BATCH = 2000  # texts or pairs handled at once: small in memory, large enough to amortise a call
CHARACTERS = 1 << 21  # or bytes, in a batch: about 10 MB in memory with all results
BOM = b"\xef\xbb\xbf"  # some programs write it before UTF-8
DAMAGE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
FORMS = {  # compression -> its first bytes
    "gzip": rb"\x1f\x8b",
    "bzip2": rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)",
    "xz": rb"\xfd7zXZ\0",
    "lzma": rb"\]\0\0",
    "zstd": rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18",
}
PACKED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".lzma": "lzma", ".zst": "zstd"}
BINARY = "binary data"
# Default_Ignorable_Code_Point of Unicode 17, controls, and everything blank
_RANGES = (
    "0-20 7f-a0 ad 34f 61c 115f-1160 1680 17b4-17b5 180b-180f 2000-200f 2028-202f 205f-206f 2800 "
    "3000 3164 fe00-fe0f feff ffa0 fff0-fffb 1bca0-1bca3 1d173-1d17a e0000-e0fff"
)
_ENDS = [[int(end, 16) for end in each.split("-")] for each in _RANGES.split()]
INVISIBLE = frozenset(chr(code) for ends in _ENDS for code in range(ends[0], ends[-1] + 1))
_BREAKERS = str.maketrans(dict.fromkeys("\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029", " "))
_CONTROL = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
Item = TypeVar("Item")
_kinds = cache(partial(read_table, Path(__file__).with_suffix(".tsv")))  # of files without text
# The one guard of text: no control, separator or format character, no white space but spaces.
is_plain = str.isprintable


def is_visible(text: str) -> bool:
    """Return whether a text has a visible character."""
    return not INVISIBLE.issuperset(text)


def one_field(text: str) -> str:
    """Replace tabs and everything that any reader takes for a line end by spaces."""
    return text if is_plain(text) else text.translate(_BREAKERS)


@contextmanager
def opened(source: Path) -> Iterator[BinaryIO]:
    """Open a text, or standard input (`-`), as bytes of UTF-8 without compression and BOM."""
    if source == STREAM:
        if sys.stdin is None:
            raise EmsError("standard input is closed; name a file")
        yield text_in(sys.stdin.buffer, Path("standard input"))
        return
    check_readable(source)
    try:
        raw = io.FileIO(source)
    except OSError as error:
        raise unreadable(source, error) from None
    with raw:
        yield text_in(raw, source)


def text_in(raw: BinaryIO, path: Path) -> BinaryIO:
    """Return the text of a stream of a file. Raises `EmsError` if it is none."""
    stream, suffix = io.BufferedReader(_Stream(path, raw), BLOCK), path.suffix.lower()
    if form := form_of(stream.peek()):
        stream = io.BufferedReader(_Stream(path, unpacked(stream, form, path), form), BLOCK)
    elif suffix in PACKED:
        raise EmsError(f"{path}: not a valid {PACKED[suffix]} file; rename it, or copy it again")
    if kind := _other_kind(start := stream.peek()[:START]):
        raise EmsError(f"{path}: expected text in UTF-8, found {kind}")
    stream.read(len(BOM) * start.startswith(BOM))
    return stream


def form_of(start: bytes) -> str:
    """Return the compression of a file with these first bytes, "" if none."""
    return next((form for form, magic in FORMS.items() if re.match(magic, start)), "")


def packing(path: Path) -> str:
    """Return the compression of a text, "BOM" for a byte order mark, "" if it is plain."""
    with opened(path), open(path, "rb") as raw:
        start = raw.read(START)
    return form_of(start) or "BOM" * start.startswith(BOM)


def other_than_text(path: Path) -> str:
    """Return the kind of a file without plain text, with advice; "" for plain text."""
    with open(path, "rb") as raw:
        return _other_kind(raw.read(START))


def _other_kind(start: bytes) -> str:
    """Return the kind of a file with these first bytes, with advice; "" for plain text."""
    for row in _kinds():
        if re.match(row["first_bytes"].encode(), start, re.DOTALL):
            return _convert(row["kind"]) if row["kind"].startswith("UTF") else row["kind"]
    if form_of(start):
        return f"a {form_of(start)} file; unpack it"
    control = len(start) - len(start.translate(None, _CONTROL))
    odd = control > 16 and control * 20 > len(start)
    decodable = len(start.decode(errors="ignore").encode()) + 3 >= len(start)
    wide = b"\0" in start and (odd or control * 4 > len(start) or not decodable)
    for code in ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE") if wide else ():
        text = start.decode(code, "ignore")
        if re.search("[ \n]", text) and is_plain(re.sub(r"\s", "", text)):
            return _convert(code)
    lines = [line for line in start.split(b"\n")[:-1] if line.strip()]
    if not odd and len(lines) > 2 and not any(map(is_utf8, lines)):
        return "another encoding, such as Latin-1; convert it: iconv -f CP1252 -t UTF-8"
    return BINARY if odd else ""


def is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _convert(code: str) -> str:
    return f"{code}; convert it: iconv -f {code} -t UTF-8"


def unpacked(file: Path | BinaryIO, form: str, path: Path) -> BinaryIO:
    """Open a compressed file, or a stream of one, for reading; damage is one of `DAMAGE`."""
    if form != "zstd":
        return {"gzip": gzip, "bzip2": bz2}.get(form, lzma).open(file)
    try:
        from backports import zstd  # Python 3.14 has it as compression.zstd
    except ImportError:
        raise mistake("no zstd", path=path) from None

    class File(zstd.ZstdFile):  # rejects windows over 128 MB and truncated files
        def read(self, size: int = -1) -> bytes:
            try:
                return super().read(size)
            except zstd.ZstdError as error:
                raise OSError(str(error)) from None

    return File(file)


class _Stream(io.RawIOBase):
    """A stream of a file, perhaps a compressed one; a failure to read is an error of the file."""

    def __init__(self, path: Path, stream: BinaryIO, form: str = "") -> None:
        self.path, self.stream, self.form = path, stream, form

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            block = self.stream.read(len(buffer))
        except DAMAGE as error:
            if self.form:
                raise Damaged(self.path, f"not a whole {self.form} file ({error})") from None
            raise unreadable(self.path, error) from None
        buffer[: len(block)] = block
        return len(block)


def bounded_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines with their ends (LF); of one over LONGEST_ROW bytes only the start, and an LF."""
    while line := stream.readline(LONGEST_ROW + 2):
        cut = line
        while len(cut) == LONGEST_ROW + 2 and not cut.endswith(b"\n"):
            cut = stream.readline(LONGEST_ROW + 2)
        yield line if cut is line else line + b"\n"


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text, split at LF only. Raises `Damaged` if it is not UTF-8."""
    with opened(path) as reader:
        content = reader.read()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(path, f"not UTF-8 at byte {error.start:,}") from None
    return text.removesuffix("\n").split("\n") if text else []


def batched(
    items: Iterable[Item],
    length: Callable[[Item], float],
    size: int = BATCH,
    characters: float | None = None,
) -> Iterator[list[Item]]:
    """Yield lists of up to `size` items, which amortise a call; a list ends early once it is
    `characters` (CHARACTERS) long: a corpus may have a thousand lines of a megabyte in a row.
    """
    limit = CHARACTERS if characters is None else characters
    batch: list[Item] = []
    held = 0.0
    for item in items:
        batch.append(item)
        held += length(item)
        if len(batch) == size or held >= limit:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
