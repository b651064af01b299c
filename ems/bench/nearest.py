"""Exact nearest neighbours by cosine between two large sets, in both directions at once.

One tile of similarities serves both directions; FAISS's IndexFlatIP computes it for each, copies
the candidates and leaves the order of ties open. The sets are not copied (they may be memory maps);
the search needs memory for one tile (17 MB) and 8 bytes per neighbour.

A neighbour is one int64 key. The high half is its similarity as an order-preserving integer, the
low half is larger for a lower index. So the largest key is the nearest neighbour, the first on
ties, for any tiling. Of a tile, only groups of GROUP columns whose maximum is above the k-th key so
far are looked at, and at most those with the k highest maxima and their equals.

The products are numpy's, or PyTorch's on a GPU, and so are the maxima of groups.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any

import numpy as np

from ems.base.errors import needs_extra
from ems.base.progress import Progress

ROWS, COLUMNS = 8192, 4096  # rows that are read at once, of either set; multiples of GROUP
STRIP = 1024  # rows of a tile on a CPU, whose cache holds the tile; on a GPU it has ROWS
GROUP = 32
DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # files that drivers of GPUs make
_LOW = (1 << 32) - 1  # the half of a key that holds the index
_NONE = -(1 << 63)  # below every key


@dataclass(frozen=True)
class Neighbours:
    similarity: np.ndarray  # float32[N, k]
    index: np.ndarray  # int64[N, k]

    @property
    def mean(self) -> np.ndarray:
        """The mean similarity of each row to its neighbours, float64[N]."""
        return self.similarity.sum(axis=1, dtype=np.float64) / max(self.similarity.shape[1], 1)


class Distinct:
    """The distinct rows of vectors[N, d], without rows of zeros; slicing reads them. `rows`
    int64[U] are the first copies. `number` int64[N] says which of them each row equals (U for
    zeros), by 64-bit hashes. Rows of equal `texts` are equal, whose bits depend on their batch.
    """

    def __init__(self, vectors: np.ndarray, texts: Iterable[str] = ()) -> None:
        self.vectors = vectors
        keys = np.concatenate([_hashes(rows + 0) * rows.any(axis=1) for rows in blocks(vectors)])
        said = _hashes(text.strip().encode(errors="surrogatepass") for text in texts)
        if len(said):
            _, first, number = np.unique(said, return_index=True, return_inverse=True)
            keys = keys[first][number]
        text = np.flatnonzero(keys)
        _, first, number = np.unique(keys[text], return_index=True, return_inverse=True)
        order = np.argsort(first)
        self.rows, self.number = text[first[order]], np.full(len(keys), len(first))
        self.number[text] = np.argsort(order)[number]
        self._copies = np.argsort(self.number, kind="stable")  # the copies of each side by side
        self._counts = np.bincount(self.number, minlength=len(first) + 1)
        self._begins = np.cumsum(self._counts) - self._counts
        self._place = np.arange(len(keys))[np.argsort(self._copies)] - self._begins[self.number]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, span: slice) -> np.ndarray:
        if len(self.rows) == len(self.vectors):
            return self.vectors[span]
        parts, rows = [self.vectors[:0]], self.rows[span]
        for start in np.unique(rows // ROWS) * ROWS:
            own = rows[(start <= rows) & (rows < start + ROWS)]
            parts.append(self.vectors[start : start + ROWS][own - start])
        return np.concatenate(parts)

    def of_all(self, values: np.ndarray, zeros: float = 0) -> np.ndarray:
        """Repeat values[U, ...] of the distinct rows for all rows, [N, ...]."""
        last = np.full_like(values, zeros, shape=(1, *values.shape[1:]))
        return np.concatenate([values, last])[self.number]

    def matched(
        self, other: "Distinct", best: np.ndarray, score: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Match copies: of the distinct row best[U] the first with the first, and over again.
        Return a row of `other` and the score of each row; zeros have nan.
        """
        number = self.of_all(best)
        places = other._begins[number] + self._place % other._counts[number]
        return other._copies[places], self.of_all(score, np.nan)


def _hashes(items: Iterable[Any]) -> np.ndarray:
    digests = b"".join(blake2b(item, digest_size=8).digest() for item in items)
    return np.frombuffer(digests, np.uint64)


def blocks(vectors: np.ndarray) -> Iterator[np.ndarray]:
    """Yield all rows, ROWS at a time; one empty block if there are none."""
    return (vectors[start : start + ROWS] for start in range(0, len(vectors) or 1, ROWS))


def spread(found: Sequence[Neighbours], sides: Sequence[Distinct]) -> list[Neighbours]:
    """Give all rows the neighbours of their distinct row; the first copy stands for its copies."""
    return [
        Neighbours(own.of_all(each.similarity), own.of_all(other.rows[each.index]))
        for each, own, other in zip(found, sides, sides[::-1], strict=True)
    ]


def nearest_distinct(
    first: np.ndarray, second: np.ndarray, k: int, device: str = "auto", what: str = "search"
) -> list[Neighbours]:
    """Return the neighbours of all rows, as `nearest` does, among the distinct rows."""
    sides = Distinct(first), Distinct(second)
    return spread(nearest(*sides, k, device, what), sides)


def nearest(
    first: np.ndarray, second: np.ndarray, k: int, device: str = "auto", what: str = "search"
) -> tuple[Neighbours, Neighbours]:
    """Return the k nearest rows in `second` of each row of `first`, and the reverse. first[N, d]
    and second[M, d] are float32 with rows of length 1, in memory or mapped, with fewer than 2^32
    rows. A set of fewer than k rows gives fewer neighbours. On ties the first row is nearer.
    Progress is logged as `what`; "" logs nothing.
    """
    gpu = gpu_of(device)
    height = ROWS if gpu else min(ROWS, STRIP)
    of_first = np.full((len(first), min(k, len(second))), _NONE)
    of_second = np.full((len(second), min(k, len(first))), _NONE)
    tiles = -(-len(first) // ROWS) * -(-len(second) // COLUMNS)
    progress = Progress(what and f"{what}: {len(first):,} x {len(second):,}", tiles, "tiles")
    for top in range(0, len(first), ROWS):
        queries = block(first, top, ROWS, gpu)
        for left in range(0, len(second), COLUMNS):
            candidates = block(second, left, COLUMNS, gpu).T
            for at in range(0, len(queries), height):
                tile = queries[at : at + height] @ candidates  # at most [height, COLUMNS]
                _improve(of_first[top + at : top + at + len(tile)], tile, left)
                _improve(of_second[left : left + COLUMNS], tile.T, top + at)
                del tile  # frees memory for the next one
            progress.add()
    progress.close()
    return Neighbours(*parts_of(of_first)), Neighbours(*parts_of(of_second))


def merged(one: Neighbours, other: Neighbours, k: int) -> Neighbours:
    """Merge two sets of neighbours of the same rows into the k nearest, ordered as by `nearest`."""
    keys = np.concatenate([keys_of(each.similarity, each.index) for each in (one, other)], 1)
    return Neighbours(*parts_of(_largest(keys, min(k, keys.shape[1]))))


def gpu_of(setting: str) -> Any:
    """Return PyTorch's device for `cuda`, and for `auto` if there is a GPU; None is a CPU."""
    # to import PyTorch takes longer than most searches, so `auto` does not without a driver
    driver = any(map(os.path.exists, DRIVERS)) and find_spec("torch")
    if setting == "cpu" or (setting == "auto" and not (driver or sys.modules.get("torch"))):
        return None
    with needs_extra("a search on a GPU", "layers"):
        from ems.model.devices import choose_device
    chosen = choose_device(setting)
    return chosen if chosen.type == "cuda" else None


def block(vectors: np.ndarray, start: int, size: int, gpu: Any) -> Any:
    """Return rows `start` to `start + size` of float32[N, d], copied to a GPU if there is one."""
    rows = np.asarray(vectors[start : start + size], np.float32)
    return sys.modules["torch"].from_numpy(rows.copy()).to(gpu) if gpu else rows


def on_host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def _improve(keys: np.ndarray, tile: Any, start: int) -> None:
    """Keep in `keys` int64[R, k], sorted, the best of them and a tile[R, C] from row `start` on."""
    k = keys.shape[1]
    groups = _grouped(tile)  # [R, GROUP, C / GROUP]
    maxima = on_host(groups.max(1) if isinstance(tile, np.ndarray) else groups.amax(1))
    above, _ = parts_of(keys[:, -1:])  # [R, 1]; nan while there are fewer than k
    many = np.flatnonzero((~(maxima <= above)).sum(1) > k)
    if len(many):
        highest = np.partition(maxima[many], -k, axis=1)[:, -k, None]
        above[many] = np.nextafter(highest, np.float32(-np.inf))
    rows, places = np.nonzero(~(maxima <= above))
    if not len(rows):
        return
    values = on_host(groups[rows, :, places])  # [n, GROUP]
    near, within = np.nonzero(~(values <= above[rows]))
    found = keys_of(values[near, within], start + within * maxima.shape[1] + places[near])
    rows = rows[near]
    counts = np.bincount(rows, minlength=len(keys))
    column = k + np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    pool = np.full((len(keys), k + counts.max()), _NONE)
    pool[:, :k], pool[rows, column] = keys, found
    keys[:] = _largest(pool, k)


def _grouped(tile: Any) -> Any:
    """View a tile[R, C] as [R, GROUP, C / GROUP], with columns of -inf as needed if C > GROUP."""
    rows, columns = tile.shape
    size = min(GROUP, columns)
    if missing := -columns % size:
        part, shape = tile, (rows, columns + missing)
        host = isinstance(part, np.ndarray)
        tile = np.full(shape, -np.inf, np.float32) if host else part.new_full(shape, -np.inf)
        tile[:, :columns] = part
    return tile.reshape(rows, size, -1)


def _largest(keys: np.ndarray, k: int) -> np.ndarray:
    return np.sort(keys, axis=1)[:, : -k - 1 : -1]


def keys_of(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Encode float32 values and indices as int64 keys that order by value, then by lower index."""
    bits = (values + np.float32(0)).view(np.int32)  # -0 becomes 0
    return (_turned(bits).astype(np.int64) << 32) + (_LOW - index)


def parts_of(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decode keys to float32 values and int64 indices."""
    bits = _turned((keys >> 32).astype(np.int32))
    return bits.view(np.float32), _LOW - (keys & _LOW)


def _turned(bits: np.ndarray) -> np.ndarray:
    """Map the int32 bits of floats to integers in the same order, and back."""
    return bits ^ (bits >> 31 & 0x7FFFFFFF)
