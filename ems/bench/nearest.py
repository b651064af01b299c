"""Exact nearest neighbours by cosine between two large sets, in both directions at once.

One tile of similarities serves both directions; FAISS's IndexFlatIP computes it for each, copies
the candidates and leaves the order of ties open. The sets are not copied (they may be memory maps);
the search needs memory for one tile (134 MB) and 8 bytes per neighbour.

A neighbour is one int64 key. The high half is its similarity as an order-preserving integer, the
low half is larger for a lower index. So the largest key is the nearest neighbour, the first on
ties, for any tiling. The best k of a row lie in the k groups of GROUP columns with the highest
maxima.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ems.base.progress import Progress
from ems.model.devices import choose_device

ROWS, COLUMNS = 8192, 4096  # size of a tile; multiples of GROUP
GROUP = 32
_LOW = (1 << 32) - 1  # the half of a key that holds the index
_NONE = -(1 << 63)  # below every key


@dataclass(frozen=True)
class Neighbours:
    """The k nearest rows of the other set, nearest first."""

    similarity: np.ndarray  # float32[N, k]
    index: np.ndarray  # int64[N, k]

    @property
    def mean(self) -> np.ndarray:
        """The mean similarity of each row to its neighbours, float64[N]."""
        return self.similarity.sum(axis=1, dtype=np.float64) / max(self.similarity.shape[1], 1)


class Distinct:
    """The distinct rows of vectors[N, d], without rows of zeros; slicing reads them.

    `rows` int64[U] are the first copies. `number` int64[N] says which of them each row equals (U
    for zeros), by 64-bit hashes. Rows of equal `texts` are equal: in another batch, the same text
    has other bits.
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


@torch.inference_mode()
def nearest(
    first: np.ndarray, second: np.ndarray, k: int, device: str = "auto", what: str = "search"
) -> tuple[Neighbours, Neighbours]:
    """Return the k nearest rows in `second` of each row of `first`, and the reverse.

    first[N, d] and second[M, d] are float32 with rows of length 1, in memory or mapped, with fewer
    than 2^32 rows. A set of fewer than k rows gives fewer neighbours. On ties the first row is
    nearer. Progress is logged as `what`; "" logs nothing.
    """
    chosen = choose_device(device)
    nothing = partial(torch.full, fill_value=_NONE, dtype=torch.int64, device=chosen)
    of_second = nothing((len(second), min(k, len(first))))
    of_first = [nothing((0, min(k, len(second))))]
    tiles = -(-len(first) // ROWS) * -(-len(second) // COLUMNS)
    about = what and f"{what}: {len(first):,} x {len(second):,}"
    progress = Progress(about, tiles, "tiles")
    for top in range(0, len(first), ROWS):
        queries = block(first, top, ROWS, chosen)
        keys = nothing((len(queries), min(k, len(second))))
        for left in range(0, len(second), COLUMNS):
            candidates = block(second, left, COLUMNS, chosen)
            tile = queries @ candidates.T  # at most [ROWS, COLUMNS]
            missing = [-size % GROUP for size in tile.shape]
            if any(missing):
                tile = pad(tile, (0, missing[1], 0, missing[0]), value=-torch.inf)
            keys = _nearer(keys, tile[: len(queries)], left)
            part = slice(left, left + len(candidates))
            of_second[part] = _nearer(of_second[part], tile.T[: len(candidates)], top)
            del tile  # frees memory for the next one
            progress.add()
        of_first.append(keys)
    progress.close()
    return _decoded(torch.cat(of_first)), _decoded(of_second)


def merged(one: Neighbours, other: Neighbours, k: int) -> Neighbours:
    """Merge two sets of neighbours of the same rows into the k nearest, ordered as by `nearest`."""
    both = [map(torch.from_numpy, (each.similarity, each.index)) for each in (one, other)]
    keys = torch.cat([keys_of(*each) for each in both], 1)  # [N, up to 2k]
    return _decoded(keys.topk(min(k, keys.shape[1])).values)


def block(vectors: np.ndarray, start: int, size: int, device: torch.device) -> Tensor:
    """Copy rows `start` to `start + size` of float32[N, d] to a device."""
    return torch.from_numpy(np.array(vectors[start : start + size], np.float32)).to(device)


def _nearer(keys: Tensor, tile: Tensor, start: int) -> Tensor:
    """Return the k best of `keys` int64[R, k] and a tile float32[R, C], largest first.

    The first column of the tile is row `start` of the other set.
    """
    k = keys.shape[1]
    groups = tile.unflatten(1, (-1, GROUP))  # [R, C] -> [R, C / GROUP, GROUP]
    # [R, C / GROUP]; a transposed tile is read in memory order: ten times as fast
    maxima = groups.amax(2) if tile.is_contiguous() else tile.T.unflatten(0, (-1, GROUP)).amax(1).T
    places = torch.arange(groups.shape[1], device=tile.device)
    _, chosen = parts_of(_largest(maxima, places, k))  # [R, up to k]
    within = chosen[:, :, None].expand(-1, -1, GROUP)
    values = groups.gather(1, within).flatten(1)  # [R, up to k * GROUP]
    columns = within * GROUP + torch.arange(GROUP, device=tile.device)
    return torch.cat([keys, _largest(values, columns.flatten(1) + start, k)], 1).topk(k).values


def _largest(values: Tensor, index: Tensor, k: int) -> Tensor:
    """Return the keys of the k largest of each row of values[R, C], or of all if C < k.

    Keys of all values are slow, so they are computed only if other values tie with the k-th.
    """
    k = min(k, values.shape[1])
    largest, columns = values.topk(k)
    index = index.expand_as(values)
    if ((values >= largest[:, -1:]).sum(1) > k).any():
        return keys_of(values, index).topk(k).values
    return keys_of(largest, index.gather(1, columns))


def keys_of(values: Tensor, index: Tensor) -> Tensor:
    """Encode float32 values and indices as int64 keys that order by value, then by lower index."""
    bits = (values + 0.0).view(torch.int32)  # -0 becomes 0
    return (_turned(bits).long() << 32) + (_LOW - index)


def parts_of(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Decode keys to float32 values and int64 indices."""
    bits = _turned((keys >> 32).int())
    return bits.view(torch.float32), _LOW - (keys & _LOW)


def _turned(bits: Tensor) -> Tensor:
    """Map the int32 bits of floats to integers in the same order, and back."""
    return bits ^ (bits >> 31 & 0x7FFFFFFF)


def _decoded(keys: Tensor) -> Neighbours:
    values, index = parts_of(keys)
    return Neighbours(values.cpu().numpy(), index.cpu().numpy())
