"""One memory-mapped shard, and the checks of its numbers.

Wrong ids or offsets would crash the model or, worse, give batches of wrong sentences, and file
sizes cannot reveal them. Each file is therefore read once, in blocks, before it is mapped; the
pages of a map would count as memory of the process. `ems verify` also compares checksums.

If another program truncates a mapped file, the rest of the last page reads as zeros, and reading
further pages kills the process (SIGBUS). ems itself never does so: it writes shards under a
temporary name and renames them. Training checks the sizes again before it saves anything.
"""

import mmap
import re
import resource
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from ems.base.errors import Damaged, mistake
from ems.base.files import check_sha256, read_json
from ems.base.progress import Progress
from ems.base.records import Below, Bounds, Count, NonBlank, Record, are_unique
from ems.shards.index import MANIFEST

NUMBERS = 1 << 17  # numbers read at once; fits the processor's cache
DOCUMENTS = "documents"  # file with the first row of each document
OTHERS = 64  # files that a process may have open for other purposes
LanguageCode = Annotated[str, re.compile(r"\w+").fullmatch, "the code of a language"]


class ShardManifest(Record):
    """The manifest of one shard; `documents` only if it has one language."""

    languages: Annotated[list[LanguageCode], Bounds(min_length=1, max_length=2), are_unique]
    pairs: Count
    tokens: dict[str, Count]
    vocabulary_sha256: NonBlank
    sha256: dict[Below, NonBlank]
    documents: Count | None = None


class Shard:
    """A memory-mapped shard folder, sides sorted by code. Raises `EmsError` for a damaged file."""

    pieces = 1 << 16  # upper bound of token ids: the size of the vocabulary, if known

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest: ShardManifest = read_json(folder / MANIFEST, ShardManifest)
        self.languages = tuple(sorted(manifest.languages))
        self.pairs, self.tokens, self.sha256 = manifest.pairs, manifest.tokens, manifest.sha256
        self.vocabulary_sha256 = manifest.vocabulary_sha256
        if self.tokens.keys() != set(self.languages):
            raise Damaged(folder / MANIFEST, "the keys of `tokens` are not its `languages`")
        self.files: dict[str, tuple[type, int]] = {}  # name -> (type, number of values)
        for code in self.languages:
            self.files[f"{code}.ids"] = np.uint16, self.tokens[code]
            self.files[f"{code}.offsets"] = np.int64, self.pairs + 1
        self.files["lines"] = np.int64, self.pairs
        if len(self.languages) == 1:
            if manifest.documents is None:
                raise Damaged(folder / MANIFEST, "it has one language but no `documents`")
            self.files[DOCUMENTS] = np.int64, manifest.documents + 1
        self.check_sizes()

    @property
    def corpus(self) -> str:
        """The corpus without its part, from the path `<corpus>+<part>/<version>/<pair>/<shard>`."""
        return self.folder.resolve().parts[-4:][0].partition("+")[0]

    def check_sizes(self, *names: str) -> None:
        """Raise `Damaged` for a file (default: any) whose size is not the one in the manifest."""
        for name in names or self.files:
            dtype, count = self.files[name]
            path, expected = self.folder / name, count * np.dtype(dtype).itemsize
            size = path.stat().st_size if path.exists() else 0
            if size != expected:
                raise Damaged(path, f"expected {expected:,} bytes by its manifest, found {size:,}")

    @cached_property
    def ids(self) -> list[np.ndarray]:
        """uint16[tokens] of both sides."""
        sides = zip(self.languages, self.offsets, strict=True)
        return [self._mapped(f"{code}.ids", ids_fault, self.pieces, own) for code, own in sides]

    @cached_property
    def offsets(self) -> list[np.ndarray]:
        """int64[pairs + 1] of both sides."""
        sides = [(f"{code}.offsets", self.tokens[code]) for code in self.languages]
        return [self._mapped(name, offsets_fault, tokens) for name, tokens in sides]

    @cached_property
    def lines(self) -> np.ndarray:
        """int64[pairs]: the line of the corpus that each pair comes from, counted from 1."""
        return self._mapped("lines", lines_fault)

    @cached_property
    def documents(self) -> np.ndarray:
        """int64[documents + 1]: the first row of each document, and the end."""
        return self._mapped(DOCUMENTS, offsets_fault, self.pairs)

    def _mapped(self, name: str, fault: Callable[..., str], *expected: Any) -> np.ndarray:
        """Memory-map the numbers of a file that pass the check `fault`, as a plain array, since
        np.memmap is slow to index. Batches read a few numbers in random places: of shards larger
        than memory, the kernel's read-ahead would read 20 times as much without `madvise`.
        """
        self.check_sizes(name)  # a file truncated since it was opened must not be mapped
        path = self.folder / name
        if words := fault(path, *expected):
            raise Damaged(path, words)
        with open(path, "rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        pages.madvise(mmap.MADV_RANDOM)
        return np.frombuffer(pages, self.files[name][0])

    def piece(self, side: int, row: int, limit: int | None = None) -> np.ndarray:
        """Return a view of the tokens of one side of a pair, uint16[L], cut to `limit`."""
        offsets = self.offsets[side]
        return self.ids[side][offsets[row] : offsets[row + 1]][:limit]


class ShardRow(NamedTuple):
    shard: Shard
    row: int


def check_sizes(shards: Sequence[Shard]) -> None:
    for shard in shards:
        shard.check_sizes()


def verify_shards(shards: Sequence[Shard]) -> None:
    """Compare all checksums. Raises `Damaged` for the first file that has changed."""
    files = [(shard, shard.folder / name) for shard in shards for name in shard.files]
    sizes = {path: path.stat().st_size for _, path in files}
    progress = Progress("verify shards", sum(sizes.values()), "bytes")
    for shard, path in progress.over(files, lambda file: sizes[file[1]]):
        check_sha256(path, shard.sha256.get(path.name), "the manifest")


def allow_open_files(count: int) -> None:
    """Raise the limit of open files by `count`, since Python keeps a file open for each map."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and count + OTHERS > hard:
        raise mistake("too many shards", count=count, hard=hard)
    if soft != resource.RLIM_INFINITY:
        wanted = soft + count if hard == resource.RLIM_INFINITY else min(soft + count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# --- checks of the numbers of a file: return what is wrong, "" if nothing


def ids_fault(path: Path, pieces: int, offsets: np.ndarray) -> str:
    """Check that token ids are below `pieces`; offsets int64[pairs + 1] give the row."""
    for start, block in _blocks(path, np.uint16):
        if block.max() >= pieces:
            at = int(np.argmax(block >= pieces))
            row = int(np.searchsorted(offsets, start + at, side="right")) - 1
            return f"row {row:,}: expected token ids below {pieces:,}, found {block[at]:,}"
    return ""


def offsets_fault(path: Path, tokens: int) -> str:
    """Check that offsets start at 0, increase strictly and end at the number of `tokens`."""
    last = 0
    for start, block in _blocks(path, np.int64):
        if start == 0 and block[0] != 0:
            return f"expected 0 as its first offset, found {block[0]:,}"
        begins = np.concatenate([[last if start else -1], block[:-1]])
        wrong = (block <= begins) | (block > tokens)
        if wrong.any():
            at = int(np.argmax(wrong))
            end = f"expected its end above that and up to {tokens:,}, found {block[at]:,}"
            return f"row {start + at - 1:,} begins at {begins[at]:,}: {end}"
        last = int(block[-1])
    if last != tokens:
        return f"expected {tokens:,}, the number of ids, as its last offset, found {last:,}"
    return ""


def lines_fault(path: Path) -> str:
    for start, block in _blocks(path, np.int64):
        if block.min() < 1:
            at = int(np.argmax(block < 1))
            return f"row {start + at:,}: expected a line of the corpus, from 1, found {block[at]:,}"
    return ""


def _blocks(path: Path, dtype: type) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (index of the first number, block) of a file."""
    size = np.dtype(dtype).itemsize
    for start in range(0, path.stat().st_size // size, NUMBERS):
        yield start, np.fromfile(path, dtype, NUMBERS, offset=start * size)
