"""Batches from shards: memory-mapped, vectorised, a pure function of (seed, step).

A batch mixes language pairs: each of its pairs draws a language pair with p ~ n^alpha (n: number of
its pairs in all corpora), then one of its pairs uniformly, with replacement. The generator of step
t is keyed with (seed, t), so any step can be repeated without the steps before it. Batches do not
depend on the sizes of shards, because pairs are numbered through all shards of a language pair.
"""

import os
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from ems.base.errors import Damaged, EmsError, check, mistake
from ems.base.files import sha256_file
from ems.base.progress import Progress
from ems.base.provenance import digest
from ems.shards.shard import Shard, ShardRow, allow_open_files

Array = TypeVar("Array")
Places = tuple[np.ndarray, np.ndarray]  # int64[B]: group (language pair), position in it
MAPS = 4  # files of a shard that stay open during training


@dataclass
class Batch(Generic[Array]):
    """B pairs as 2B sentences, packed without padding, in arrays of NumPy or tensors.

    `tokens[T]` are the token ids of all sentences, shortest sentence first, so that attention works
    on groups of similar length; `lengths[2B]` are their lengths in this order. `rows[2B]` are their
    rows: i < B is the first side of pair i, B + i its second side. `languages[2B]` has the language
    index of each row. For documents (`ems.shards.documents`), each sentence is a text, and
    `targets[2B]` say for each row how well the sentence in its middle fits.

    Training adds the inputs of its objectives: `inputs[T]` are the tokens masked at `places`,
    `keys[2B]` by row are equal for equal sentences, and `step` is the number of the step.
    """

    tokens: Array
    lengths: Array
    rows: Array
    languages: Array
    targets: Array | None = None
    inputs: Array | None = None
    places: Array | None = None
    keys: Array | None = None
    step: int = 0

    @property
    def pairs(self) -> int:
        return len(self.lengths) // 2


def packed(
    sentences: list[np.ndarray], languages: np.ndarray, targets: np.ndarray | None = None
) -> Batch:
    """Pack sentences (arrays of token ids, by row) into a batch."""
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    rows = np.argsort(lengths, kind="stable")  # by length, ties by row
    tokens = np.concatenate([sentences[row] for row in rows.tolist()]).astype(np.int64)
    return Batch(tokens, lengths[rows], rows, languages, targets)


class PairStore:
    """All shards of training or validation data, or an evenly spaced `share` of their pairs."""

    documents = False  # True if its sentences are texts of documents

    def __init__(
        self, folders: list[Path], languages: list[str], max_tokens: int, share: float = 1.0
    ) -> None:
        self.shards = [Shard(folder) for folder in folders]
        self.languages, self.max_tokens, self.share = languages, max_tokens, share
        if not folders:
            raise EmsError(f"expected shards of {', '.join(languages)}, found none in the index")
        for shard in self.shards:
            self._check_usable(shard)
        vocabularies = {shard.vocabulary_sha256 for shard in self.shards}
        if len(vocabularies) > 1:
            folder = Path(os.path.commonpath(folders))
            raise Damaged(folder, f"expected shards of one vocabulary, found {len(vocabularies)}")
        self.vocabulary_sha256 = vocabularies.pop()
        allow_open_files(MAPS * len(self.shards))
        self._count()

    @property
    def fingerprint(self) -> str:
        return digest([shard.sha256 for shard in self.shards])

    @property
    def contents(self) -> str:
        return f"{int(self.sizes.sum()):,} pairs, sha256 {self.fingerprint}"

    def _count(self) -> None:
        """Number the pairs through, by language pair, then by shard."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for at, shard in enumerate(self.shards):
            groups.setdefault(shard.languages, []).append(at)
        self.groups = dict(sorted(groups.items()))  # language pair -> its shards
        pairs = np.array([shard.pairs for shard in self.shards])
        whole = np.array([pairs[shards].sum() for shards in self.groups.values()])
        shares = np.maximum(1, (whole * self.share).astype(np.int64))
        self.sizes = np.minimum(whole, shares)  # pairs used of each group, int64[groups]
        self._begins = np.cumsum(whole) - whole  # first pair of each group, int64[groups]
        self._order = np.concatenate(list(self.groups.values()))  # shards in this order
        self._ends = np.cumsum(pairs[self._order])  # end of each of these shards
        codes = [[self.languages.index(code) for code in pair] for pair in self.groups]
        self._codes = np.array(codes)  # language index of both sides, int64[groups, 2]

    def _check_usable(self, shard: Shard) -> None:
        if missing := sorted({*shard.languages} - {*self.languages}):
            pair = "-".join(shard.languages)
            raise mistake("shard of other languages", this=shard, pair=pair, missing=missing)
        documents = len(shard.languages) == 1
        wrong = documents != self.documents
        check({"pairs expected": wrong and documents, "documents expected": wrong}, this=shard)
        if not shard.pairs:
            raise Damaged(shard.folder, "expected pairs of sentences, found none")

    def check_vocabulary(self, path: Path, advice: str) -> None:
        """Raise `EmsError`, ending in `advice`, if `path` is not the vocabulary of the shards."""
        if sha256_file(path) != self.vocabulary_sha256:
            raise mistake("another vocabulary", path=path, this=self, advice=advice)

    def check(self, pieces: int) -> None:
        """Map all shards; check their numbers, and that token ids are below `pieces`."""
        for shard in Progress("check shards", len(self.shards), "shards").over(self.shards):
            shard.pieces = pieces
            _ = shard.ids  # is checked on first use

    def draw(
        self, seed: int, step: int, batch_pairs: int, alpha: float, share: slice = slice(None)
    ) -> Batch:
        """Return the batch of a step, or the `share` of it that one of several processes gets."""
        chosen, within = self.draw_indices(seed, step, batch_pairs, alpha)
        return self.assemble(chosen[share], within[share])

    def draw_indices(self, seed: int, step: int, batch_pairs: int, alpha: float) -> Places:
        """Draw B pairs, with replacement."""
        random = np.random.Generator(np.random.Philox(key=[seed, step]))
        weights = self.sizes.astype(np.float64) ** alpha
        chosen = random.choice(len(weights), size=batch_pairs, p=weights / weights.sum())
        within = (random.random(batch_pairs) * self.sizes[chosen]).astype(np.int64)
        return chosen, within

    def by_corpus(self) -> dict[str, "PairStore"]:
        stores = {}
        for name in sorted({shard.corpus for shard in self.shards}):
            stores[name] = own = copy(self)
            own.shards = [shard for shard in self.shards if shard.corpus == name]
            own._count()
        return stores

    def places_in_order(self, batch_pairs: int, limit: int | None = None) -> Iterator[Places]:
        """Yield arguments of `assemble` for all pairs, or the first `limit` of each group."""
        for group, size in enumerate(self.sizes.tolist()):
            end = size if limit is None else min(size, limit)
            for start in range(0, end, batch_pairs):
                within = np.arange(start, min(start + batch_pairs, end))
                yield np.full(len(within), group), within

    def assemble(self, groups: np.ndarray, within: np.ndarray) -> Batch:
        """Return the batch of pairs, each at position `within[i]` of group `groups[i]`."""
        places, most = self.places(groups, within), self.max_tokens
        # many shards with few rows each: slices are faster than indexing by shard
        pieces = [shard.piece(side, row, most) for side in (0, 1) for shard, row in places]
        return packed(pieces, self._codes[groups].T.flatten())  # languages[2B]

    def places(self, groups: np.ndarray, within: np.ndarray) -> list[ShardRow]:
        located = (numbers.tolist() for numbers in self._locate(groups, within))
        return [ShardRow(self.shards[at], row) for at, row in zip(*located, strict=True)]

    def _locate(self, groups: np.ndarray, within: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the index of the shard and the row in it of each pair, both int64[len(groups)]."""
        within = (within / self.share).astype(np.int64)  # evenly spaced among all pairs
        place = self._begins[groups] + within
        which = np.searchsorted(self._ends, place, side="right")
        starts = np.concatenate([[0], self._ends])[which]
        return self._order[which], place - starts
