"""Stamps: which items of a job are done, and from what, so that a job can hold many of them.

A stamp is a small file of one item, written after its outputs. It names the settings and the source
that the item was made with, and the bytes of its inputs and outputs. An item whose stamp still fits
is not made again: after a kill, after a changed setting of another item, after `dvc checkout`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from ems.base.errors import EmsError, mistake
from ems.base.files import read_json, sha256_file, unreadable, write_json
from ems.base.progress import log
from ems.base.provenance import digest
from ems.base.records import NonBlank, Record

Item = TypeVar("Item")


class _Made(Record):
    key: NonBlank
    inputs: dict[str, NonBlank]  # path -> SHA-256
    outputs: dict[str, NonBlank]


@dataclass(frozen=True)
class Stamp:
    """The stamp of one item. `key` is JSON: all that its outputs depend on except `inputs`."""

    path: Path
    key: object
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]

    def sums(self) -> dict[str, str] | None:
        """Return {output: SHA-256} if the item is done and nothing has changed, else None."""
        with suppress(EmsError):  # no stamp, or a damaged one; a file is gone
            made = read_json(self.path, _Made)
            same = made.key == digest(self.key) and made.inputs == _sums(self.inputs)
            if same and made.outputs == _sums(self.outputs):
                return made.outputs
        return None

    @contextmanager
    def making(self) -> Iterator[dict[str, str]]:
        """Record the item as done after the block, from the inputs as they were before; yield a
        dict that then has {output: SHA-256}. Until then an earlier stamp stays: it is not current.
        """
        inputs, outputs = _sums(self.inputs), dict[str, str]()
        yield outputs
        outputs |= _sums(self.outputs)
        write_json(self.path, {"key": digest(self.key), "inputs": inputs, "outputs": outputs})


def _sums(paths: Iterable[Path]) -> dict[str, str]:
    """Return {path: SHA-256} of files, and of the files in folders."""
    inside = (sorted(path.rglob("*")) if path.is_dir() else [path] for path in paths)
    return {str(path): _sha256(path) for each in inside for path in each if not path.is_dir()}


def _sha256(path: Path) -> str:
    try:
        stat = path.stat()
    except OSError as error:
        raise unreadable(path, error) from None
    return _sha256_of(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)  # all items of a job share the keys of evaluation sentences
def _sha256_of(path: Path, size: int, time: int) -> str:
    return sha256_file(path)


def make_each(items: Iterable[Item], make: Callable[[Item], object], name: Callable) -> None:
    """Make all items; a failure stops no other, and one error at the end names all that failed."""
    failed, count = dict[str, EmsError](), 0
    for count, item in enumerate(items, start=1):  # noqa: B007  used below
        try:
            make(item)
        except EmsError as error:
            failed[name(item)] = error
            log.error("%s: %s", name(item), error)
    first = next(iter(failed.values()), None)
    if len(failed) > 1:
        raise mistake("several failed", number=len(failed), count=count, failed=failed, first=first)
    if first:
        raise first
