"""Process a file in pieces, in parallel and resumable.

A piece is a fixed number of lines (fewer if they are very long) for any number of workers, so the
result does not depend on it. A worker gets the position of its piece, not its text. Finished pieces
stay in a state folder until all are finished: each is renamed into place, then recorded with its
checksums. After `kill -9`, only complete pieces of the same input and settings are used again.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ems.base.files import MARK, atomic_path, claim_state, drop_state, reading_bytes, remove
from ems.base.progress import Progress, log
from ems.base.provenance import digest
from ems.base.stamps import Stamp
from ems.base.workers import in_workers
from ems.text.tsv import check_count

MAX_BYTES = 1 << 25  # largest piece that is read into memory as a whole
READ = 1 << 20  # approximate bytes read at once


@dataclass(frozen=True)
class Piece:
    """The `lines` lines of a file from line `first`, in the bytes from `start` to `end`."""

    source: Path
    number: int
    start: int
    end: int
    first: int
    lines: int

    @property
    def name(self) -> str:
        return f"{self.number:05}"


def numbered(source: Path, total: int, size: int) -> list[Piece]:
    """Split the numbers below `total` into pieces of `size`: `lines` numbers from `first` on."""
    starts = enumerate(range(0, total, size))
    return [Piece(source, i, 0, 0, first, min(size, total - first)) for i, first in starts]


Advance = Callable[[int], object]  # counts finished lines
Work = Callable[[Piece, Path, Advance], object]  # writes the file or folder of a piece; must pickle
TextWork = Callable[[str], str]  # returns the result of a text; must pickle


def cut(
    source: Path, lines: int, size: int | None = MAX_BYTES, end_line: bytes | None = None
) -> tuple[list[Piece], str]:
    """Return the pieces of a file and its SHA-256. An empty file is one empty piece. A piece ends
    after `lines` lines or after the line that reaches `size` bytes; with `end_line`, after the next
    line equal to it. Raises `Damaged` for a file that is missing or has lost lines.
    """
    pieces: list[Piece] = []
    start = end = held = 0  # bytes and lines of the open piece
    first, hasher = 1, hashlib.sha256()
    with reading_bytes(source) as reader:
        while batch := reader.readlines(READ):
            hasher.update(b"".join(batch))
            for line in batch:
                end, held = end + len(line), held + 1
                full = held >= lines or (size and end - start >= size)
                if full and end_line in (None, line):
                    pieces.append(Piece(source, len(pieces), start, end, first, held))
                    start, first, held = end, first + held, 0
    check_count(source, first + held - 1)
    if held or not pieces:
        pieces.append(Piece(source, len(pieces), start, end, first, held))
    return pieces, hasher.hexdigest()


@contextmanager
def done_pieces(
    title: str, work: Work, pieces: list[Piece], state: Path, key: object, workers: int, unit: str
) -> Iterator[list[Path]]:
    """Process all pieces in `workers` processes; yield the paths of the results, in order. They lie
    in one folder below `state`, named by the hash of `key` (JSON: everything that they depend on).
    A run with the same key resumes; results of another key are removed, and at the end `state`.
    """
    folder = _claimed(state, key)
    waiting = [piece for piece in pieces if _stamp(folder, piece.name).sums() is None]
    if len(waiting) < len(pieces):
        done = len(pieces) - len(waiting)
        log.info("%s: resumed, %d of %d pieces were done before", title, done, len(pieces))
    progress = Progress(title, sum(piece.lines for piece in waiting), unit)
    if workers > 1 and len(waiting) > 1:
        one, name = partial(_do, work, folder), "{0.source}, piece {0.name}".format
        with closing(in_workers(one, waiting, min(workers, len(waiting)), name)) as ended:
            for piece, done in ended:
                done.result()  # raises a worker's error
                progress.add(piece.lines, f"{workers} workers")
    else:
        for piece in waiting:
            _do(work, folder, piece, progress.add)
    progress.close(f"{len(pieces)} pieces")
    yield [folder / "pieces" / piece.name for piece in pieces]
    drop_state(state)


def done_texts(
    title: str, work: TextWork, texts: Iterable[str], state: Path, key: object, workers: int
) -> Iterator[str]:
    """Yield `work` of each text, in order, after all have arrived. Results stay in `state` as in
    `done_pieces`, until the caller removes it; a run with the same key makes only missing ones.
    """
    folder, done = _claimed(state, key), list[bool]()
    pieces = ((folder, f"{number:05}", text) for number, text in enumerate(texts))
    one = partial(_do_text, work)
    if workers == 1:
        done += map(one, pieces)
    else:
        name = (title + ", piece {0[1]}").format
        with closing(in_workers(one, pieces, workers, name, ahead=workers)) as ended:
            done += (each.result() for _, each in ended)
    if before := sum(done):
        log.info("%s: resumed, %d of %d pieces were done before", title, before, len(done))
    for number in range(len(done)):
        yield (folder / "pieces" / f"{number:05}").read_bytes().decode()


def _do_text(work: TextWork, piece: tuple[Path, str, str]) -> bool:
    """Write the result of a text unless its stamp is current; return whether it was."""
    folder, name, text = piece
    out, sha256 = folder / "pieces" / name, hashlib.sha256(text.encode()).hexdigest()
    stamp = _stamp(folder, name, sha256)
    if was_done := stamp.sums() is not None:
        return was_done
    with stamp.making(), atomic_path(out) as temporary:
        temporary.write_text(work(text), encoding="utf-8", newline="\n")
    return was_done


def _claimed(state: Path, key: object) -> Path:
    """Return the folder of `key` in a state folder, and remove folders of other keys."""
    claim_state(state)
    folder = state / digest(key)
    for other in state.glob("*"):
        if other not in (folder, state / MARK):
            remove(other)
    return folder


def _do(work: Work, folder: Path, piece: Piece, advance: Advance = lambda lines: None) -> None:
    result = folder / "pieces" / piece.name
    remove(result)  # left by a run that was killed before recording it
    with _stamp(folder, piece.name).making(), atomic_path(result) as temporary:
        work(piece, temporary, advance)


def _stamp(folder: Path, name: str, key: object = None) -> Stamp:
    return Stamp(folder / "done" / f"{name}.json", key, (), (folder / "pieces" / name,))
