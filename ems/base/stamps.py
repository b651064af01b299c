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

from ems.base.errors import EmsError
from ems.base.files import read_json, sha256_file, unreadable, write_json
from ems.base.progress import log
from ems.base.provenance import digest
from ems.base.schema import Count, NonBlank, Record

Item = TypeVar("Item")


class _File(Record):
    """The size, time (ns) and SHA-256 of a file when the stamp was written."""

    bytes: Count
    time: int
    sha256: NonBlank

    def is_still(self, path: Path) -> bool:
        """Return whether a file has these bytes; they are read only if its time has changed."""
        with suppress(OSError):
            stat = path.stat()
            if stat.st_size == self.bytes:
                return stat.st_mtime_ns == self.time or _sha256(path) == self.sha256
        return False


class _Made(Record):
    key: NonBlank
    inputs: dict[str, _File]
    outputs: dict[str, _File]


@dataclass(frozen=True)
class Stamp:
    """The stamp of one item. `key` is JSON: all that its outputs depend on except `inputs`."""

    path: Path
    key: object
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]

    def sums(self) -> dict[str, str] | None:
        """Return {output: SHA-256} if the item is done and nothing has changed, else None."""
        with suppress(EmsError):  # no stamp, or a damaged one
            made = read_json(self.path, _Made)
            files = {**made.inputs, **made.outputs}
            same = made.key == digest(self.key) and [*files] == self._names()
            if same and all(file.is_still(Path(name)) for name, file in files.items()):
                return {name: made.outputs[name].sha256 for name in made.outputs}
        return None

    @contextmanager
    def making(self) -> Iterator[dict[str, str]]:
        """Remove the stamp while the item is made, and record it as done, from the inputs as they
        were before; yield a dict that then has {output: SHA-256}.
        """
        self.path.unlink(missing_ok=True)
        made, sums = {"key": digest(self.key), "inputs": _files(self.inputs)}, dict[str, str]()
        yield sums
        made["outputs"] = outputs = _files(self.outputs)
        write_json(self.path, made)
        sums.update({name: file["sha256"] for name, file in outputs.items()})

    def _names(self) -> list[str]:
        return [*sorted(map(str, self.inputs)), *sorted(map(str, self.outputs))]


def _files(paths: Iterable[Path]) -> dict[str, dict[str, int | str]]:
    files = {}
    for path in sorted(paths, key=str):
        try:
            stat = path.stat()
        except OSError as error:
            raise unreadable(path, error) from None
        made = {"bytes": stat.st_size, "time": stat.st_mtime_ns, "sha256": _sha256(path)}
        files[str(path)] = made
    return files


def _sha256(path: Path) -> str:
    stat = path.stat()
    return _sha256_of(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)  # all items of a job share the keys of evaluation sentences
def _sha256_of(path: Path, size: int, time: int) -> str:
    return sha256_file(path)


def make_each(items: Iterable[Item], make: Callable[[Item], object], name: Callable) -> None:
    """Make all items. One that fails stops no other: its error is logged, and one error at the end
    names all that failed; if all others are done, the same command makes only these.
    """
    failed, count = dict[str, EmsError](), 0
    for item in items:
        count += 1
        try:
            make(item)
        except EmsError as error:
            failed[name(item)] = error
            log.error("%s: %s", name(item), error)
    if len(failed) == 1:
        raise next(iter(failed.values()))
    if failed:
        first = next(iter(failed.values()))
        raise EmsError(
            f"{len(failed)} of {count} failed: {', '.join(failed)} (the messages are above); "
            f"the first is: {first}"
        )
