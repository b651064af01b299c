"""Batches of sentences in context, from shards of documents (Wang et al., CCL 2019).

`DocumentStore` (section 3.1): each pair of a batch is a sentence, drawn like a pair of `PairStore`
with p ~ n^alpha for its language. Its two texts are up to k sentences before it, the sentence, and
up to k after it (C_k); and the same with another sentence of the language in its place.

`MinedStore` (section 3.2): each pair is a mined pair of similar sentences, with p ~ n^alpha for its
language pair. Its two texts are the second sentence in the context of the first, and the first in
the context of the second. The target of both is the similarity of the sentences.

Mined pairs are a folder, written by `ems mine-documents`:

    pairs.npy       one row per pair (PAIR), by language pair, best first
    manifest.json   languages, pairs by language pair, sha256 of the file, vocabulary and shards
"""

from pathlib import Path

import numpy as np

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import atomic_path, check_sha256, read_json, sha256_file, write_json
from ems.base.records import Json
from ems.shards.index import MANIFEST, PAIRS, MinedManifest, is_mined
from ems.shards.reader import Batch, PairStore, packed
from ems.shards.shard import Shard, ShardRow

TRUE, REPLACED = 1.0, 0.0  # targets
STREAM = [0, 0, 0, 2]  # random stream, apart from the streams of the draw and of masks
PAIR = np.dtype(
    [
        ("languages", "<i2", 2),  # indices into the manifest's `languages`
        ("rows", "<i8", 2),  # numbered through the shards of the language
        ("round", "<i8"),
        ("score", "<f8"),  # CSLS
        ("similarity", "<f8"),  # the cosine
    ]
)
TARGETS = {"cosine": "similarity", "csls": "score"}


class DocumentStore(PairStore):
    """A `PairStore` of documents; contexts have up to `k` sentences on each side."""

    documents = True

    def __init__(
        self, folders: list[Path], languages: list[str], max_tokens: int, k: int, share: float = 1.0
    ) -> None:
        super().__init__(folders, languages, max_tokens, share)
        self.k = k
        for (code,), size in zip(self.groups, self.sizes.tolist(), strict=True):
            if size < 2:
                raise mistake("too few sentences", code=code, size=size)

    def check(self, pieces: int) -> None:
        super().check(pieces)
        for shard in self.shards:
            _ = shard.documents  # is checked on first use

    def draw(
        self, seed: int, step: int, batch_pairs: int, alpha: float, share: slice = slice(None)
    ) -> Batch:
        chosen, within = self.draw_indices(seed, step, batch_pairs, alpha)
        others = self._others(chosen, within, seed, step)
        return self.assemble(chosen[share], within[share], others[share])

    def assemble(
        self, groups: np.ndarray, within: np.ndarray, others: np.ndarray | None = None
    ) -> Batch:
        """Return the batch of sentences `within[i]` of language `groups[i]`, each also replaced by
        sentence `others[i]` (default: a fixed choice, for validation).
        """
        if others is None:
            others = self._others(groups, within, 0, int(within[0]))
        places, replacing = self.places(groups, within), self.places(groups, others)
        targets = np.repeat(np.float32([TRUE, REPLACED]), len(places))
        return self.batch([*places, *places], [*places, *replacing], targets)

    def batch(self, places: list[ShardRow], middles: list[ShardRow], targets: np.ndarray) -> Batch:
        """Return the batch of contexts of `places` around the sentences at `middles`, [2B] each."""
        sentences = (shard.piece(0, row, self.max_tokens) for shard, row in middles)
        texts = [self.text(*at, middle) for at, middle in zip(places, sentences, strict=True)]
        codes = [self.languages.index(shard.languages[0]) for shard, _ in places]
        return packed(texts, np.array(codes), targets)

    def text(self, shard: Shard, row: int, middle: np.ndarray) -> np.ndarray:
        """Return the context of a row around the sentence `middle`, uint16[L], L <= max_tokens. A
        text that is too long is cut at the ends, on the longer side first.
        """
        at = int(np.searchsorted(shard.documents, row, side="right"))
        start, end = shard.documents[at - 1 : at + 1].tolist()
        ids, offsets = shard.ids[0], shard.offsets[0]
        before = ids[offsets[max(start, row - self.k)] : offsets[row]]
        after = ids[offsets[row + 1] : offsets[min(end, row + 1 + self.k)]]
        room = self.max_tokens - len(middle)
        left = min(len(before), max(room - len(after), room // 2))
        return np.concatenate([before[len(before) - left :], middle, after[: room - left]])

    def _others(self, groups: np.ndarray, within: np.ndarray, *key: int) -> np.ndarray:
        """Draw another sentence of its language for each sentence, uniformly, by a random key."""
        random = np.random.Generator(np.random.Philox(key=key, counter=STREAM))
        sizes = self.sizes[groups]
        steps = 1 + (random.random(len(groups)) * (sizes - 1)).astype(np.int64)
        return (within + steps) % sizes


def _starts(rows: np.ndarray) -> np.ndarray:
    """Return the first row of each language pair, and the end, int64[language pairs + 1]."""
    codes = rows["languages"]
    changes = np.flatnonzero((codes[1:] != codes[:-1]).any(axis=1)) + 1
    return np.concatenate([[0], changes, [len(rows)]])


def languages_of(documents: DocumentStore) -> list[str]:
    return [code for (code,) in documents.groups]


def write_mined(out: Path, documents: DocumentStore, rows: np.ndarray, extra: Json) -> Json:
    """Write a folder of mined pairs PAIR[pairs]; return its manifest, which includes `extra`."""
    rows = rows[np.lexsort((*rows["rows"].T[::-1], -rows["score"], *rows["languages"].T[::-1]))]
    languages, starts = languages_of(documents), _starts(rows)
    names = ["-".join(languages[at] for at in rows["languages"][start]) for start in starts[:-1]]
    with atomic_path(out, is_mined) as folder:
        folder.mkdir()
        np.save(folder / PAIRS, rows)
        manifest = {
            "languages": languages,
            "pairs": dict(zip(names, np.diff(starts).tolist(), strict=True)),
            "sha256": sha256_file(folder / PAIRS),
            "shards": documents.fingerprint,
            "vocabulary_sha256": documents.vocabulary_sha256,
            **extra,
        }
        write_json(folder / MANIFEST, manifest)
    return manifest


class MinedStore(DocumentStore):
    """A folder of mined pairs. Raises `EmsError` if it is damaged or from other documents."""

    def __init__(
        self,
        mined: Path,
        folders: list[Path],
        languages: list[str],
        max_tokens: int,
        k: int,
        target: str = "cosine",
    ) -> None:
        super().__init__(folders, languages, max_tokens, k)
        manifest, self.target = read_json(mined / MANIFEST, MinedManifest), TARGETS[target]
        self.sha256 = manifest.sha256
        check_sha256(mined / PAIRS, self.sha256, MANIFEST)
        self.rows = np.load(mined / PAIRS)  # PAIR[pairs]
        codes = languages_of(self)
        mine = self.fingerprint, self.vocabulary_sha256, codes
        if (manifest.shards, manifest.vocabulary_sha256, manifest.languages) != mine:
            raise Damaged(mined, "mined in other documents than these shards")
        self.starts = _starts(self.rows)  # first row of each language pair, and the end
        firsts = self.rows["languages"][self.starts[:-1]].tolist()
        self.groups = dict.fromkeys(tuple(codes[at] for at in pair) for pair in firsts)
        self.sizes = np.diff(self.starts)

    draw = PairStore.draw

    def select(self, pair: str | None) -> np.ndarray:
        """Return the rows of a language pair like "de-en" (None: all). Raises `EmsError` for 0."""
        if pair is None:
            return self.rows
        for at, codes in enumerate(self.groups):
            if sorted(codes) == sorted(pair.split("-")):
                return self.rows[self.starts[at] : self.starts[at + 1]]
        names = ", ".join("-".join(codes) for codes in self.groups)
        raise EmsError(f"--pair {pair}: no mined pairs; the language pairs are {names}")

    @property
    def contents(self) -> str:
        return f"{super().contents}, mined {self.sha256}"

    def assemble(self, groups: np.ndarray, within: np.ndarray, others: None = None) -> Batch:
        first, second = (self.places(groups, within, side) for side in (0, 1))
        targets = self._rows(groups, within)[self.target].astype(np.float32)
        return self.batch([*first, *second], [*second, *first], np.tile(targets, 2))

    def places(self, groups: np.ndarray, within: np.ndarray, side: int = 0) -> list[ShardRow]:
        rows = self._rows(groups, within)
        return super().places(rows["languages"][:, side].astype(np.int64), rows["rows"][:, side])

    def _rows(self, groups: np.ndarray, within: np.ndarray) -> np.ndarray:
        return self.rows[self.starts[groups] + within]
