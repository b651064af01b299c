"""A pair file worked on in pieces: each in a worker process, each kept until all are done.

Notable choices:
- a piece is a fixed number of lines (fewer where they are very long), whatever the number of
  workers, so one worker and many give the same bytes;
- a worker gets the place of its piece in the file, not its text, so memory is one piece a worker;
- workers are spawned and make their tools themselves: a tokenizer that was used before a fork
  answers with other processes' lines, without an error;
- a finished piece is renamed to its name, then recorded with its checksums, in a state folder that
  no workflow knows: after `kill -9` only whole pieces of the same input and settings are used
  again;
- a file of one piece is done in this process, so that small corpora pay for none of this.
"""

import hashlib
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ems.config.provenance import digest
from ems.errors import EmsError
from ems.files import atomic_path, read_json, sha256_file, write_json
from ems.progress import Progress, log

MAX_BYTES = 1 << 25  # of a piece that has to be in memory as a whole
BLOCK = 1 << 20  # bytes read at once


@dataclass(frozen=True)
class Piece:
    """Some lines of a file: `lines` of them in the bytes `start` to `end`, from line `first` on."""

    source: Path
    number: int
    start: int
    end: int
    first: int
    lines: int

    @property
    def name(self) -> str:
        """Its name among the pieces of the file: "00012"."""
        return f"{self.number:05}"


Advance = Callable[[int], object]  # told how many more lines are done
Work = Callable[[Piece, Path, Advance], object]  # writes the file or folder of a piece
Start = Callable[[], Work]  # makes the tools; it is pickled, and equal ones share their tools


def cut(source: Path, lines: int, size: int | None = MAX_BYTES) -> tuple[list[Piece], str]:
    """The pieces of a file and its SHA-256, in one pass. An empty file is one empty piece.

    A piece ends after `lines` lines, or after the line that makes it `size` bytes.
    """
    pieces: list[Piece] = []
    start = first = held = at = 0  # of the open piece: its first byte, its first line, its lines
    hasher, last = hashlib.sha256(), b"\n"
    with open(source, "rb") as reader:
        while block := reader.read(BLOCK):
            hasher.update(block)
            ends = at + 1 + np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            at, last = at + len(block), block[-1:]
            while (stop := _stop(ends, lines - held, size and start + size)) < len(ends):
                end, count = int(ends[stop]), held + stop + 1
                pieces.append(Piece(source, len(pieces), start, end, first + 1, count))
                start, first, held, ends = end, first + count, 0, ends[stop + 1 :]
            held += len(ends)
    if at > start or not pieces:
        held += last != b"\n"  # a last line without LF counts
        pieces.append(Piece(source, len(pieces), start, at, first + 1, held))
    return pieces, hasher.hexdigest()


def _stop(ends: np.ndarray, lines: int, limit: int | None) -> int:
    """Which of the line ends in `ends` closes a piece that lacks `lines` lines and may go to the
    byte `limit`.
    """
    by_size = len(ends) if limit is None else int(np.searchsorted(ends, limit))
    return min(lines - 1, by_size)


def alone(what: str, start: Start, piece: Piece, out: Path) -> None:
    """Do the only piece of a file in this process, into `out`."""
    progress = Progress(what, piece.lines, "pairs")
    start()(piece, out, progress.add)
    progress.close()


@contextmanager
def kept(
    what: str, start: Start, pieces: list[Piece], state: Path, key: dict[str, Any], workers: int
) -> Iterator[list[Path]]:
    """Do all pieces in `workers` processes; the results, in order, lie in one folder for the block.

    They are kept in `state` under the hash of `key`, what everything depends on: the next run with
    the same key does what is left. What another key left is removed; after the block, `state`.
    Raises `EmsError` as a worker does, or when one of them is killed.
    """
    folder = state / digest(key)
    for other in state.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    waiting = [piece for piece in pieces if not _is_whole(piece, folder)]
    if len(waiting) < len(pieces):
        done = len(pieces) - len(waiting)
        log.info("%s: resumed, %d of %d pieces were done before", what, done, len(pieces))
    progress = Progress(what, sum(piece.lines for piece in waiting), "pairs")
    if workers > 1 and len(waiting) > 1:
        for piece in _in_workers(start, waiting, folder, workers):
            progress.add(piece.lines, f"{workers} workers")
    elif waiting:
        work = start()
        for piece in waiting:
            _do(work, piece, folder, progress.add)
    progress.close(f"{len(pieces)} pieces")
    yield [_result(piece, folder) for piece in pieces]
    shutil.rmtree(state)


def _result(piece: Piece, folder: Path) -> Path:
    return folder / "pieces" / piece.name


def _record(piece: Piece, folder: Path) -> Path:
    return folder / "done" / f"{piece.name}.json"


def _do(work: Work, piece: Piece, folder: Path, advance: Advance) -> None:
    result = _result(piece, folder)
    with atomic_path(result) as temporary:
        work(piece, temporary, advance)
    write_json(_record(piece, folder), _checksums(result))


def _is_whole(piece: Piece, folder: Path) -> bool:
    """Whether a run before has finished a piece, and every byte of it is still there."""
    try:
        return read_json(_record(piece, folder)) == _checksums(_result(piece, folder))
    except EmsError:  # no record, or a spoilt one
        return False


def _checksums(path: Path) -> dict[str, str]:
    """SHA-256 of a file, or of all files of a folder; nothing for what is not there."""
    files = [item for item in (path, *sorted(path.rglob("*"))) if item.is_file()]
    return {str(item.relative_to(path.parent)): sha256_file(item) for item in files}


# --- worker processes


def _in_workers(
    start: Start, waiting: list[Piece], folder: Path, workers: int
) -> Iterator[Piece]:
    """Yield each piece when it is done. Whatever goes wrong, no worker is left behind."""
    others = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")
    count = min(workers, len(waiting))
    pool = ProcessPoolExecutor(count, mp_context=spawn, initializer=_enter)
    queue, running = iter(waiting), dict[Future, Piece]()
    try:
        while True:
            for piece in islice(queue, count - len(running)):
                running[pool.submit(_do_in_worker, start, piece, folder)] = piece
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                done.result()
                yield running.pop(done)
    except BrokenProcessPool:
        names = ", ".join(piece.name for piece in running.values())
        raise EmsError(
            f"{waiting[0].source}: a worker process was killed while it was at one of the pieces "
            f"{names}, most likely for want of memory; run again with fewer workers or more "
            f"memory (finished pieces are kept in {folder})"
        ) from None
    finally:
        if running:
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()
        pool.shutdown(cancel_futures=True)


def _enter() -> None:
    """What a worker does first: leave Ctrl-C to its parent, and go when that has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_go_with_parent, daemon=True).start()


def _go_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


@cache
def _started(start: Start) -> Work:
    """The tools of this worker, made at its first piece."""
    return start()


def _do_in_worker(start: Start, piece: Piece, folder: Path) -> None:
    _do(_started(start), piece, folder, lambda lines: None)
