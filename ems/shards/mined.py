"""Mined pairs of similar sentences: what `ems mine-documents` writes, and batches out of it.

    pairs.npy       a row per pair (PAIR), language pair by language pair, there the best first
    manifest.json   languages, pairs by language pair, sha256 of the file, of the vocabulary and of
                    the shards of documents that its rows are of

A pair of the batch is a mined pair, its language pair drawn with p ~ n^alpha. Its two texts are the
sentences in exchanged places: the second in the context of the first, the first in that of the
second. Both have the similarity of the sentences as their target (Wang et al., CCL 2019, 3.2).
"""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np

from ems.base.damaged import Damaged
from ems.base.errors import EmsError
from ems.base.files import atomic_path, read_json, sha256_file, write_json
from ems.config.settings import Json
from ems.shards.documents import DocumentStore, Place
from ems.shards.index import MANIFEST, MINED, PAIRS, is_mined
from ems.shards.reader import Batch, PairStore

PAIR = np.dtype(
    [
        ("languages", "<i2", 2),  # of both sentences, by their place in `languages`
        ("rows", "<i8", 2),  # of both, counted through the shards of the language
        ("round", "<i8"),
        ("score", "<f8"),  # CSLS
        ("similarity", "<f8"),  # the cosine
    ]
)
TARGETS = {"cosine": "similarity", "csls": "score"}


class MinedPairs:
    """A folder of mined pairs of a store of documents.

    Raises `EmsError` when it is not whole, or the documents are others.
    """

    def __init__(self, folder: Path, documents: DocumentStore) -> None:
        manifest = read_json(folder / MANIFEST, MINED)
        self.folder, self.sha256 = folder, str(manifest["sha256"])
        self.languages: list[str] = manifest["languages"]
        if sha256_file(folder / PAIRS) != self.sha256:
            raise Damaged(folder / PAIRS, f"its sha256 is not the one in {MANIFEST} beside it")
        self.rows = np.load(folder / PAIRS)  # PAIR[pairs]
        mine = documents.fingerprint, documents.vocabulary_sha256, languages_of(documents)
        if (manifest["shards"], manifest["vocabulary_sha256"], self.languages) != mine:
            raise Damaged(folder, "mined in other documents than those of the shards")
        self.starts = _starts(self.rows)  # of each language pair, and the end

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The language pairs, in the order of the rows."""
        firsts = self.rows["languages"][self.starts[:-1]].tolist()
        return [tuple(self.languages[at] for at in pair) for pair in firsts]

    def of(self, pair: str | None) -> np.ndarray:
        """Return the rows of a language pair, like "de-en", or all. Raises `EmsError` for another
        pair.
        """
        if pair is None:
            return self.rows
        names = ["-".join(codes) for codes in self.groups]
        asked = {"-".join(codes) for codes in permutations(pair.split("-"))}
        for at, name in enumerate(names):
            if name in asked:
                return self.rows[self.starts[at] : self.starts[at + 1]]
        raise EmsError(f"--pair {pair}: nothing was mined for it; there are {', '.join(names)}")


def _starts(rows: np.ndarray) -> np.ndarray:
    """Return where each language pair starts, and the end of the last, int64[pairs + 1]."""
    codes = rows["languages"]
    changes = np.flatnonzero((codes[1:] != codes[:-1]).any(axis=1)) + 1
    return np.concatenate([[0], changes, [len(rows)]])


def languages_of(documents: DocumentStore) -> list[str]:
    """Return the languages that there are documents of, in the order of the store's groups."""
    return [code for (code,) in documents.groups]


def write_mined(out: Path, documents: DocumentStore, rows: np.ndarray, more: Json) -> Json:
    """Write the folder of mined pairs PAIR[pairs], and return its manifest, which has `more`."""
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
            **more,
        }
        write_json(folder / MANIFEST, manifest)
    return manifest


class MinedStore(DocumentStore):
    """Mined pairs in the contexts of their documents, as a source of batches."""

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
        self.mined, self.target = MinedPairs(mined, self), TARGETS[target]
        self.groups = dict.fromkeys(self.mined.groups)
        self.sizes = np.diff(self.mined.starts)

    draw = PairStore.draw

    @property
    def contents(self) -> str:
        """How many pairs there are, and their hash and that of the documents."""
        return f"{super().contents}, mined {self.mined.sha256}"

    def assemble(self, groups: np.ndarray, within: np.ndarray, others: None = None) -> Batch:
        """Return the batch of mined pairs `within[i]` of language pair `groups[i]`."""
        first, second = self.exchanged(groups, within)
        targets = self._rows(groups, within)[self.target].astype(np.float32)
        return self.batch([*first, *second], [*second, *first], np.tile(targets, 2))

    def exchanged(self, groups: np.ndarray, within: np.ndarray) -> tuple[list[Place], list[Place]]:
        """Return the places of both sentences of mined pairs."""
        rows = self._rows(groups, within)
        first, second = (self.located(rows, side) for side in (0, 1))
        return first, second

    def located(self, rows: np.ndarray, side: int) -> list[Place]:
        """Return the place of one sentence of each pair of PAIR[P]."""
        return super().places(rows["languages"][:, side].astype(np.int64), rows["rows"][:, side])

    def places(self, groups: np.ndarray, within: np.ndarray) -> Sequence[Place]:
        """Return the place of the first sentence of mined pairs."""
        return self.exchanged(groups, within)[0]

    def _rows(self, groups: np.ndarray, within: np.ndarray) -> np.ndarray:
        return self.mined.rows[self.mined.starts[groups] + within]
