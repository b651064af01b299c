"""Shards of documents -> batches: sentences in their contexts, and other sentences there.

A pair of the batch is a sentence drawn as `PairStore` draws pairs, a language with p ~ n^alpha. Its
two texts are the up to k sentences before it, the sentence, and the up to k after it (C_k of Wang
et al., CCL 2019, section 3.1), and the same with another sentence of the language in its place.
"""

from pathlib import Path

import numpy as np

from ems.base.errors import EmsError
from ems.shards.reader import Batch, PairStore, Shard, packed

TRUE, REPLACED = 1.0, 0.0  # targets
STREAM = [0, 0, 0, 2]  # of random numbers, far from those of the draw and of masks
Place = tuple[Shard, int]  # a sentence: its shard and its row there


class DocumentStore(PairStore):
    """All shards of documents of an experiment, as one source of batches.

    Contexts have up to `k` sentences on each side and never leave their document.
    """

    documents = True

    def __init__(
        self, folders: list[Path], languages: list[str], max_tokens: int, k: int, share: float = 1.0
    ) -> None:
        super().__init__(folders, languages, max_tokens, share)
        self.k = k
        for (code,), size in zip(self.groups, self.sizes.tolist(), strict=True):
            if size < 2:
                raise EmsError(
                    f"documents of {code}: expected two sentences or more, one to take the place "
                    f"of the other, found {size}; add text, or raise train.corpus_share"
                )

    def check(self, pieces: int) -> None:
        """Check the sentences and the documents of all shards, and map them."""
        super().check(pieces)
        for shard in self.shards:
            _ = shard.documents  # checked when it is first used

    def draw(
        self, seed: int, step: int, batch_pairs: int, alpha: float, share: slice = slice(None)
    ) -> Batch:
        """Return the batch of a training step; `share`: the pairs of one of several processes."""
        chosen, within = self.drawn(seed, step, batch_pairs, alpha)
        others = self._others(chosen, within, seed, step)
        return self.assemble(chosen[share], within[share], others[share])

    def assemble(
        self, groups: np.ndarray, within: np.ndarray, others: np.ndarray | None = None
    ) -> Batch:
        """Return the batch of sentences `within[i]` of language `groups[i]`, and replaced by
        `others[i]` of it (default: always the same ones, for validation).
        """
        if others is None:
            others = self._others(groups, within, 0, int(within[0]))
        places, replacing = self.places(groups, within), self.places(groups, others)
        targets = np.repeat(np.float32([TRUE, REPLACED]), len(places))
        return self.batch([*places, *places], [*places, *replacing], targets)

    def batch(self, places: list[Place], middles: list[Place], targets: np.ndarray) -> Batch:
        """Return the batch of the contexts of `places[2B]` around the sentences at `middles[2B]`.

        `targets[2B]` say how well each fits: first those of all first texts of a pair.
        """
        sentences = (shard.piece(0, row, self.max_tokens) for shard, row in middles)
        texts = [self.text(*at, middle) for at, middle in zip(places, sentences, strict=True)]
        codes = [self.languages.index(shard.languages[0]) for shard, _ in places]
        return packed(texts, np.array(codes), targets)

    def text(self, shard: Shard, row: int, middle: np.ndarray) -> np.ndarray:
        """Return the context of a row around the sentence `middle`, uint16[L], L <= max_tokens.

        A text that is too long loses the far ends of its context, the longer side first.
        """
        start, end = self.document(shard, row)
        ids, offsets = shard.ids[0], shard.offsets[0]
        before = ids[offsets[max(start, row - self.k)] : offsets[row]]
        after = ids[offsets[row + 1] : offsets[min(end, row + 1 + self.k)]]
        room = self.max_tokens - len(middle)
        left = min(len(before), max(room - len(after), room // 2))
        return np.concatenate([before[len(before) - left :], middle, after[: room - left]])

    @staticmethod
    def document(shard: Shard, row: int) -> tuple[int, int]:
        """Return the first row of the document of a row, and its end."""
        at = int(np.searchsorted(shard.documents, row, side="right"))
        return int(shard.documents[at - 1]), int(shard.documents[at])

    def _others(self, groups: np.ndarray, within: np.ndarray, *key: int) -> np.ndarray:
        """Return another sentence of the language of each one, all alike, by a random key."""
        random = np.random.Generator(np.random.Philox(key=key, counter=STREAM))
        sizes = self.sizes[groups]
        steps = 1 + (random.random(len(groups)) * (sizes - 1)).astype(np.int64)
        return (within + steps) % sizes
