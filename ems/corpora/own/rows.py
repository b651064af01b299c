"""The rows of the user's files: two texts, or the reason why there are none.

A line of any length is read in little memory, and a side that the pipeline cannot take (NUL, half
of a character, more than 1 MB) makes its row a bad one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

LONGEST = 1_000_000  # bytes of a row
SHOWN = 80  # characters of a bad row in a message
MARK = b"\xef\xbb\xbf"  # the byte order mark that some programs put before UTF-8

# why a row is bad -> in words
BAD = {
    "malformed": "not two texts",
    "undecodable": "not UTF-8",
    "nul": "with a NUL",
    "too_long": f"over {LONGEST:,} bytes",
}


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that is no pair: the reason, a key of BAD, and how it begins."""

    reason: str
    text: str


Row = tuple[str, str] | Bad


def bad(reason: str, content: bytes | str) -> Bad:
    """Return a bad row."""
    if isinstance(content, bytes):
        content = content[: 4 * SHOWN].decode(errors="backslashreplace")
    return Bad(reason, content.encode(errors="backslashreplace").decode()[:SHOWN])


def pair(first: str, second: str) -> Row:
    """Return the row of two texts, a bad one if the pipeline cannot take them."""
    if "\0" in first or "\0" in second:
        return bad("nul", f"{first}\t{second}")
    size = 4 * (len(first) + len(second))  # bytes at most
    if size > LONGEST and len(f"{first}{second}".encode()) > LONGEST:
        return bad("too_long", f"{first}\t{second}")
    return first, second


def lines_of(stream: BinaryIO) -> Iterator[bytes | Bad]:
    """Yield the lines without their ends, LF or CR LF; one of more than LONGEST bytes as bad."""
    first = True
    while line := stream.readline(LONGEST + 2):
        if first:
            line, first = line.removeprefix(MARK), False
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(text) <= LONGEST:
            yield text
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST)
        yield bad("too_long", text)


def decoded(line: bytes) -> str | Bad:
    """Return the text of a line, or why there is none."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return bad("undecodable", line)
