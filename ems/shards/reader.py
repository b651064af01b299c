"""Shards -> batches: memory-mapped, vectorised, a pure function of (seed, step).

A batch mixes language pairs: each of its pairs draws its language pair with p ~ n^alpha (n: its
sentence pairs over all corpora), then a sentence pair uniformly, with replacement. The generator of
step t is keyed with (seed, t), so any step can be made again without those before it. How the pairs
of a language pair are cut into shards changes nothing: they are counted through.

Of a mapped file that another program cuts short, the rest of the last page reads as zeros, and what
lies beyond kills the process (SIGBUS). Nothing of ours does so: shards are written beside their
place and renamed. A training looks at the sizes again before it saves anything.
"""

import mmap
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.damaged import Damaged
from ems.base.errors import EmsError
from ems.base.files import read_json, sha256_file
from ems.base.progress import Progress
from ems.base.provenance import digest
from ems.base.shapes import BELOW, COUNT, TEXT, Shape, listing, mapping, record
from ems.shards.checks import ids_fault, lines_fault, offsets_fault
from ems.shards.index import MANIFEST

MAPS = 4  # files of a shard that are open while it is trained on
DOCUMENTS = "documents"  # file of a shard of one language: where each of its documents begins
OTHERS = 64  # files that a process may have open besides
CODE: Shape = {"type": "string", "pattern": r"\A\w+\Z", "description": "the code of a language"}
SHARD = record(  # of the manifest of one shard
    {
        "languages": {**listing(CODE), "minItems": 1, "maxItems": 2, "uniqueItems": True},
        "pairs": COUNT,
        "tokens": mapping(COUNT),
        "vocabulary_sha256": TEXT,
        "sha256": mapping(TEXT, BELOW),
    },
    {"documents": COUNT},
)


class Shard:
    """One memory-mapped shard folder, sides in the order of their codes.

    Raises `EmsError` when it is not whole, and when a file is first used and its numbers cannot be
    right.
    """

    pieces = 1 << 16  # of the vocabulary, where that is known: token ids are below it

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest = read_json(folder / MANIFEST, SHARD)
        self.languages: tuple[str, ...] = tuple(sorted(manifest["languages"]))
        self.pairs: int = manifest["pairs"]
        self.tokens: dict[str, int] = manifest["tokens"]
        self.vocabulary_sha256: str = manifest["vocabulary_sha256"]
        self.sha256: dict[str, str] = manifest["sha256"]
        if self.tokens.keys() != set(self.languages):
            raise Damaged(folder / MANIFEST, "its `tokens` are not of its `languages`")
        self.files: dict[str, tuple[type, int]] = {}  # name -> type and number of its numbers
        for code in self.languages:
            self.files[f"{code}.ids"] = np.uint16, self.tokens[code]
            self.files[f"{code}.offsets"] = np.int64, self.pairs + 1
        self.files["lines"] = np.int64, self.pairs
        if len(self.languages) == 1:
            if "documents" not in manifest:
                raise Damaged(folder / MANIFEST, "of one language, but without `documents`")
            self.files[DOCUMENTS] = np.int64, manifest["documents"] + 1
        self.check_sizes()

    @property
    def corpus(self) -> str:
        """The corpus by its path, without its part: `<corpus>+<part>/<version>/<pair>/<shard>`."""
        return self.folder.resolve().parts[-4:][0].partition("+")[0]

    def check_sizes(self) -> None:
        """Raise `Damaged` for a file that has not as many bytes as its manifest says."""
        for name in self.files:
            self._check_size(name)

    def _check_size(self, name: str) -> None:
        path, (dtype, count) = self.folder / name, self.files[name]
        expected = count * np.dtype(dtype).itemsize
        size = path.stat().st_size if path.exists() else 0
        if size != expected:
            raise Damaged(path, f"expected {expected:,} bytes by its manifest, found {size:,}")

    def verify(self) -> None:
        """Read every byte. Raises `Damaged` for a file that is not the one of the manifest."""
        for name in self.files:
            path = self.folder / name
            if sha256_file(path) != self.sha256.get(name):
                raise Damaged(path, "its sha256 is not the one in the manifest beside it")

    @cached_property
    def ids(self) -> list[np.ndarray]:
        """uint16[tokens] of both sides."""
        return [
            self._mapped(f"{code}.ids", ids_fault, self.pieces, offsets)
            for code, offsets in zip(self.languages, self.offsets, strict=True)
        ]

    @cached_property
    def offsets(self) -> list[np.ndarray]:
        """int64[pairs + 1] of both sides."""
        return [
            self._mapped(f"{code}.offsets", offsets_fault, self.tokens[code])
            for code in self.languages
        ]

    @cached_property
    def lines(self) -> np.ndarray:
        """int64[pairs]: the line of the corpus that each pair comes from, counted from 1."""
        return self._mapped("lines", lines_fault)

    @cached_property
    def documents(self) -> np.ndarray:
        """int64[documents + 1]: the row at which each document of one language begins, and the
        end.
        """
        return self._mapped(DOCUMENTS, offsets_fault, self.pairs)

    def _mapped(self, name: str, fault: Callable[..., str], *expected: Any) -> np.ndarray:
        """Memory-map the numbers of a file once they have passed the check `fault`.

        Its size is looked at again: a file cut short since it was opened must not be mapped.
        """
        self._check_size(name)
        path = self.folder / name
        if words := fault(path, *expected):
            raise Damaged(path, words)
        return mapped(path, self.files[name][0])

    def sentence(self, side: int, row: int) -> list[int]:
        """Return the tokens of one side of one pair."""
        start, end = self.offsets[side][row : row + 2]
        return self.ids[side][start:end].tolist()

    def piece(self, side: int, row: int, limit: int) -> np.ndarray:
        """Return the tokens uint16[L] of one side of one pair, cut to `limit`, not copied."""
        offsets = self.offsets[side]
        start = offsets[row]
        return self.ids[side][start : min(offsets[row + 1], start + limit)]


def check_sizes(shards: Sequence[Shard]) -> None:
    """Look at the sizes of all files of some shards again, after they were read.

    Of a mapped file that was cut short meanwhile, the rest of the last page reads as zeros. Raises
    `Damaged` for the first such file.
    """
    for shard in shards:
        shard.check_sizes()


def verify_shards(shards: Sequence[Shard]) -> None:
    """Read every byte of some shards. Raises `Damaged` for the first file that is another one."""
    sizes = [sum((s.folder / name).stat().st_size for name in s.sha256) for s in shards]
    progress = Progress("verify shards", sum(sizes), "bytes")
    for shard, size in zip(shards, sizes, strict=True):
        shard.verify()
        progress.add(size)
    progress.close()


def mapped(path: Path, dtype: type) -> np.ndarray:
    """Memory-map the numbers of a file as a plain array, since np.memmap is slow to index.

    Batches read a few numbers here and there. Without the advice the kernel reads its read-ahead
    with each, often 128 KB: as long as shards are larger than memory, 20 times what is needed.
    """
    with open(path, "rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    pages.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(pages, dtype)


def allow_open_files(more: int) -> None:
    """Raise this process's limit of open files by `more`: Python keeps a file open for each map.

    Raises `EmsError` when even the hard limit is too low for as many files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and more + OTHERS > hard:
        raise EmsError(
            f"the shards are {more:,} files, but a process may open only {hard:,} here (ulimit "
            "-Hn); have that limit raised, or make the shards again with more pairs each"
        )
    if soft != resource.RLIM_INFINITY:
        wanted = soft + more if hard == resource.RLIM_INFINITY else min(soft + more, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@dataclass
class Batch:
    """B sentence pairs as 2B sentences, packed: no padding anywhere.

    `tokens[T]` are the token ids of all sentences, shortest sentence first, so that attention can
    work on groups of like length; `lengths[2B]` their lengths in that order; `rows[2B]` says which
    sentence each is: i < B is the first side of pair i, B + i its second side; `languages[2B]` is
    the language index of sentence i (in the order of `rows` values, not of `tokens`).

    Of documents (`ems.shards.documents`) a sentence is a text, and `targets[2B]` by row say how
    well the sentence in its middle fits there, 1 or 0.

    Training adds what its objectives need: `inputs[T]` are the tokens with those at `places`
    masked, `keys[2B]` by row are equal for equal sentences, `step` is the number of the step.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray
    languages: np.ndarray
    targets: np.ndarray | None = None
    inputs: np.ndarray | None = None
    places: np.ndarray | None = None
    keys: np.ndarray | None = None
    step: int = 0

    @property
    def pairs(self) -> int:
        """B, the number of sentence pairs."""
        return len(self.lengths) // 2


def packed(
    sentences: list[np.ndarray], languages: np.ndarray, targets: np.ndarray | None = None
) -> Batch:
    """Return sentences by row, arrays of token ids, as a batch."""
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    rows = np.argsort(lengths, kind="stable")  # by length, ties by row
    tokens = np.concatenate([sentences[row] for row in rows.tolist()]).astype(np.int64)
    return Batch(tokens, lengths[rows], rows, languages, targets)


class PairStore:
    """All shards of an experiment's training (or validation) data, as one source of batches.

    With a `share` below 1 only that share of each language pair is used, at even distances.
    """

    documents = False  # whether its sentences are texts of documents

    def __init__(
        self, folders: list[Path], languages: list[str], max_tokens: int, share: float = 1.0
    ) -> None:
        self.shards = [Shard(folder) for folder in folders]
        self.languages = languages
        self.max_tokens = max_tokens
        self.share = share
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
        """The hash of all shards."""
        return digest([shard.sha256 for shard in self.shards])

    @property
    def contents(self) -> str:
        """How many pairs are used, and the hash of the shards."""
        return f"{int(self.sizes.sum()):,} pairs, sha256 {self.fingerprint}"

    def _count(self) -> None:
        """Count the pairs through, language pair by language pair and there shard by shard."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for at, shard in enumerate(self.shards):
            groups.setdefault(shard.languages, []).append(at)
        self.groups = dict(sorted(groups.items()))  # language pair -> its shards
        pairs = np.array([shard.pairs for shard in self.shards])
        whole = np.array([pairs[shards].sum() for shards in self.groups.values()])
        shares = np.maximum(1, (whole * self.share).astype(np.int64))
        self.sizes = np.minimum(whole, shares)  # pairs of each group that are used, int64[groups]
        self._begins = np.cumsum(whole) - whole  # where each group begins, int64[groups]
        self._order = np.concatenate(list(self.groups.values()))  # shards as they are counted
        self._ends = np.cumsum(pairs[self._order])  # where each of them ends
        self._codes = np.array(  # language index of both sides, int64[shards, 2]
            [[self.languages.index(code) for code in shard.languages] for shard in self.shards]
        )

    def _check_usable(self, shard: Shard) -> None:
        missing = ", ".join(sorted({*shard.languages} - {*self.languages}))
        if missing:
            raise EmsError(
                f"{shard.folder}: holds pairs of {'-'.join(shard.languages)}, the experiment has "
                f"no {missing}; leave it out of the index"
            )
        if (len(shard.languages) == 1) != self.documents:
            kinds = ["pairs", "documents of one language"]
            expected, found = kinds[self.documents], kinds[not self.documents]
            raise EmsError(f"{shard.folder}: expected shards of {expected}, found {found}")
        if not shard.pairs:
            raise Damaged(shard.folder, "expected pairs of sentences, found none")

    def check_vocabulary(self, path: Path, advice: str) -> None:
        """Raise `EmsError` that ends in `advice` if `path` is not the vocabulary of the shards."""
        if sha256_file(path) != self.vocabulary_sha256:
            raise EmsError(
                f"{path}: expected the vocabulary of the shards in {self.shards[0].folder.parent}, "
                f"found another one; {advice}"
            )

    def check(self, pieces: int) -> None:
        """Check the sentences of all shards, whose ids are below `pieces`, and map them.

        Raises `EmsError` for the first that is wrong.
        """
        progress = Progress("check shards", len(self.shards), "shards")
        for shard in self.shards:
            shard.pieces = pieces
            _ = shard.ids  # checked when it is first used
            progress.add()
        progress.close()

    def draw(
        self, seed: int, step: int, batch_pairs: int, alpha: float, share: slice = slice(None)
    ) -> Batch:
        """Return the batch of a training step; `share`: the pairs of one of several processes."""
        chosen, within = self.drawn(seed, step, batch_pairs, alpha)
        return self.assemble(chosen[share], within[share])

    def drawn(
        self, seed: int, step: int, batch_pairs: int, alpha: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the language pair of each pair of a step, and its place in that, both int64[B]."""
        random = np.random.Generator(np.random.Philox(key=[seed, step]))
        weights = self.sizes.astype(np.float64) ** alpha
        chosen = random.choice(len(weights), size=batch_pairs, p=weights / weights.sum())
        within = (random.random(batch_pairs) * self.sizes[chosen]).astype(np.int64)
        return chosen, within

    def by_corpus(self) -> dict[str, "PairStore"]:
        """Return the pairs of each corpus as a source of their own, by its name."""
        stores = {}
        for name in sorted({shard.corpus for shard in self.shards}):
            stores[name] = own = copy(self)
            own.shards = [shard for shard in self.shards if shard.corpus == name]
            own._count()
        return stores

    def in_order(self, batch_pairs: int) -> Iterator[Batch]:
        """Yield every pair once, language pair by language pair."""
        for places in self.places_in_order(batch_pairs):
            yield self.assemble(*places)

    def places_in_order(
        self, batch_pairs: int, most: int | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield what `assemble` takes for each batch of `in_order`; of a language pair at most its
        `most` first pairs.
        """
        for group, size in enumerate(self.sizes.tolist()):
            end = size if most is None else min(size, most)
            for start in range(0, end, batch_pairs):
                within = np.arange(start, min(start + batch_pairs, end))
                yield np.full(len(within), group), within

    def assemble(self, groups: np.ndarray, within: np.ndarray) -> Batch:
        """Return the batch of pairs `within[i]` of language pair `groups[i]`."""
        shard_of, row_of = self._locate(groups, within)
        places = list(zip(shard_of.tolist(), row_of.tolist(), strict=True))
        pieces = [  # few of each of many shards: slices cost less than indexing shard by shard
            self.shards[at].piece(side, row, self.max_tokens)
            for side in (0, 1)
            for at, row in places
        ]
        return packed(pieces, self._codes[shard_of].T.flatten())  # languages[2B]

    def places(self, groups: np.ndarray, within: np.ndarray) -> list[tuple[Shard, int]]:
        """Return the shard of each pair and its row there."""
        shards, rows = self._locate(groups, within)
        return [(self.shards[at], row) for at, row in zip(shards, rows.tolist(), strict=True)]

    def _locate(self, groups: np.ndarray, within: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (shard, row in it) of each pair, both int64[len(groups)]."""
        within = (within / self.share).astype(np.int64)  # of all pairs: at even distances
        place = self._begins[groups] + within
        which = np.searchsorted(self._ends, place, side="right")
        starts = np.concatenate([[0], self._ends])[which]
        return self._order[which], place - starts
