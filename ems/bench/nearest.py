"""Exact nearest neighbours by cosine between two large sets, in both directions at once.

Each tile of similarities is made once and serves both directions; FAISS's IndexFlatIP makes it for
each, copies the candidates and leaves open which of equals comes first. The sets are not copied
(they may be memory maps); the search needs memory for one tile (134 MB) and 8 bytes per neighbour.

A neighbour is one int64 key: its similarity above, as an integer of the same order, and its index
below, the lower the larger. So the largest key is the nearest, of equals the first, whatever the
tiles. The best k of a row lie in the k groups of GROUP columns with the highest maxima.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ems.base.progress import Progress
from ems.model.devices import choose_device

ROWS, COLUMNS = 8192, 4096  # of a tile; multiples of GROUP
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
        """Mean similarity of each row to its neighbours, float64[N]."""
        return self.similarity.mean(axis=1, dtype=np.float64)


@torch.inference_mode()
def nearest(
    first: np.ndarray, second: np.ndarray, k: int, device: str = "auto", what: str = "search"
) -> tuple[Neighbours, Neighbours]:
    """Return the k nearest rows in `second` of each row of `first`, and the reverse.

    first[N, d] and second[M, d] are float32 with rows of length 1, in memory or mapped, fewer than
    2^32 rows. Of fewer than k rows all are neighbours. Of equally near ones the first is nearer.
    Progress is logged as `what`, and not at all for "".
    """
    place = choose_device(device)
    nothing = partial(torch.full, fill_value=_NONE, dtype=torch.int64, device=place)
    of_second = nothing((len(second), min(k, len(first))))
    of_first = []
    tiles = -(-len(first) // ROWS) * -(-len(second) // COLUMNS)
    about = what and f"{what}: {len(first):,} x {len(second):,}"
    progress = Progress(about, tiles, "tiles")
    for top in range(0, len(first), ROWS):
        queries = block(first, top, ROWS, place)
        keys = nothing((len(queries), min(k, len(second))))
        for left in range(0, len(second), COLUMNS):
            candidates = block(second, left, COLUMNS, place)
            tile = queries @ candidates.T  # [ROWS, COLUMNS], less at the ends
            missing = [-size % GROUP for size in tile.shape]
            if any(missing):
                tile = pad(tile, (0, missing[1], 0, missing[0]), value=-torch.inf)
            keys = _nearer(keys, tile[: len(queries)], left)
            part = slice(left, left + len(candidates))
            of_second[part] = _nearer(of_second[part], tile.T[: len(candidates)], top)
            del tile  # before the next one is made
            progress.add()
        of_first.append(keys)
    progress.close()
    return _decoded(torch.cat(of_first)), _decoded(of_second)


def merged(one: Neighbours, other: Neighbours, k: int) -> Neighbours:
    """Return the k nearest of two sets of neighbours of the same rows, as `nearest` has them."""
    both = [map(torch.from_numpy, (each.similarity, each.index)) for each in (one, other)]
    keys = torch.cat([keys_of(*each) for each in both], 1)  # [N, up to 2k]
    return _decoded(keys.topk(min(k, keys.shape[1])).values)


def block(vectors: np.ndarray, start: int, size: int, place: torch.device) -> Tensor:
    """Copy rows `start` to `start + size` of float32[N, d] to a device."""
    return torch.from_numpy(np.array(vectors[start : start + size], np.float32)).to(place)


def _nearer(known: Tensor, tile: Tensor, start: int) -> Tensor:
    """Return the k best of `known` keys int64[R, k] and a tile float32[R, C], largest first.

    The first column of the tile is row `start` of the other set.
    """
    k = known.shape[1]
    groups = tile.unflatten(1, (-1, GROUP))  # [R, C] -> [R, C / GROUP, GROUP]
    # [R, C / GROUP]; a transposed tile is read row by row as it lies: ten times as fast
    maxima = groups.amax(2) if tile.is_contiguous() else tile.T.unflatten(0, (-1, GROUP)).amax(1).T
    places = torch.arange(groups.shape[1], device=tile.device)
    _, chosen = parts_of(_largest(maxima, places, k))  # [R, up to k]
    within = chosen[:, :, None].expand(-1, -1, GROUP)
    values = groups.gather(1, within).flatten(1)  # [R, up to k * GROUP]
    columns = within * GROUP + torch.arange(GROUP, device=tile.device)
    return torch.cat([known, _largest(values, columns.flatten(1) + start, k)], 1).topk(k).values


def _largest(values: Tensor, index: Tensor, k: int) -> Tensor:
    """Return the keys of the k largest of each row of values[R, C], or of all for fewer.

    Keys of all values take long: only those of the largest are made, unless others equal the last.
    """
    k = min(k, values.shape[1])
    largest, at = values.topk(k)
    index = index.expand_as(values)
    if ((values >= largest[:, -1:]).sum(1) > k).any():
        return keys_of(values, index).topk(k).values
    return keys_of(largest, index.gather(1, at))


def keys_of(values: Tensor, index: Tensor) -> Tensor:
    """Return int64 keys of float32 values and their indices: larger value, then lower index."""
    bits = (values + 0.0).view(torch.int32)  # -0 becomes 0
    return (_turned(bits).long() << 32) + (_LOW - index)


def parts_of(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return the values float32 and the indices int64 of keys."""
    bits = _turned((keys >> 32).int())
    return bits.view(torch.float32), _LOW - (keys & _LOW)


def _turned(bits: Tensor) -> Tensor:
    """Turn int32 bits of floats into integers of the same order, and back."""
    return bits ^ (bits >> 31 & 0x7FFFFFFF)


def _decoded(keys: Tensor) -> Neighbours:
    values, index = parts_of(keys)
    return Neighbours(values.cpu().numpy(), index.cpu().numpy())
