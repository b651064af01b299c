"""What segmenters that are programs have in common: files around them, lines that they can take.

Notable choices:
- a program reads and writes temporary files, so that no pipe can block either side;
- a line that a tool would lose, split or die of goes to it in pieces, which are joined again;
- as many lines come out as went in, or it is an error: a lost line would shift all after it.
"""

import re
import subprocess
import tempfile
import unicodedata
from collections.abc import Callable, Iterable

from ems.errors import EmsError

Segment = Callable[[list[str]], list[str]]
_HALF_WIDTH_KANA = re.compile("[\uff65-\uff9f]+")


def check_count(lines: list[str], words: list[str], what: str) -> None:
    """Raise `EmsError` unless as many lines came out as went in."""
    if len(words) != len(lines):
        raise EmsError(
            f"{what}: {len(lines):,} lines went in and {len(words):,} came out; its output cannot "
            "be aligned. Choose another segmenter and report the input"
        )


def full_width_kana(line: str) -> str:
    """Half-width kana (with their sound marks) in the form that dictionaries have: ﾊﾞ is バ."""
    return _HALF_WIDTH_KANA.sub(lambda found: unicodedata.normalize("NFKC", found[0]), line)


def on_pieces(segment: Segment, lines: Iterable[str], limit: int, name: str) -> list[str]:
    """Segment with a tool that loses, splits or dies of lines beyond `limit` bytes: on pieces of
    those, rejoined.
    """
    pieces = [_pieces(line, limit) for line in lines]
    flat = [piece for line in pieces for piece in line]
    words = segment(flat)
    check_count(flat, words, f"segmenter {name}")
    parts = iter(words)
    return [" ".join([next(parts) for _ in line]) for line in pieces]


def _pieces(text: str, limit: int) -> list[str]:
    """A text cut between characters, each piece at most `limit` bytes of UTF-8."""
    if fits(text, limit):
        return [text]
    pieces, start, size = [], 0, 0
    for at, character in enumerate(text):
        size += len(character.encode())
        if size > limit:
            pieces.append(text[start:at])
            start, size = at, len(character.encode())
    return [*pieces, text[start:]]


def fits(text: str, limit: int) -> bool:
    """Whether a text is at most `limit` bytes of UTF-8."""
    return 4 * len(text) <= limit or len(text.encode()) <= limit


def run_on_file(command: list[str], lines: Iterable[str], name: str) -> list[str]:
    """Run a filter on lines through temporary files. Raises `EmsError` with what it said when it
    fails; it may return another number of lines.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as result:
        source.write("".join(f"{line}\n" for line in lines).encode())
        source.seek(0)
        done = subprocess.run(command, stdin=source, stdout=result, stderr=subprocess.PIPE)
        if done.returncode:
            detail = done.stderr.decode(errors="replace").strip()[-500:]
            raise EmsError(f"segmenter {name}: exit status {done.returncode}: {detail}")
        result.seek(0)
        text = result.read().decode(errors="replace")
        return text.removesuffix("\n").split("\n") if lines else []
